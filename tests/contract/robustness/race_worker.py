"""A process in a race: it reads its race from the standard input, runs its part, and prints the outcome.

Each function of ``RACES`` is one part. It gets the number of the process, and returns its results as JSON; expected
errors are part of the outcome, and any other error ends the process.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import django

django.setup()

from django.db.models import F
from django.test import override_settings

from accounts.models import User
from dynamo_single import (
    models,
    transactions,
)
from dynamo_single.contrib.accounts.ways import LastWay
from dynamo_single.exceptions import (
    AlreadyExists,
    BulkError,
    ConditionNotMet,
    Conflict,
    DynamoSingleError,
    InvalidValue,
    MissingReference,
    StaleObject,
    UniqueViolation,
)
from tests.catalog.chat import ChatChannel, ChatMembership, ChatServer, ChatUser
from tests.catalog.clubs import Club
from tests.catalog.models import Member, Order
from tests.catalog.seats import Seat
from tests.catalog.servers import GameFan, GameGuild, GamePlayer, GameServer, GameTag
from tests.catalog.stocks import Ledger, Stock
from tests.contract.robustness.race_processes import FANS, SUMS, WANTED
from tests.deep import examples

#: How people log in while they race for it.
WAYS = {"LOGIN_WITH": ["email", "phone", "google"]}
#: How often each process tries to have the same value, and how often it renames something.
SAME, RENAMES = examples(16, 64), examples(30, 60)
#: How often each one takes a place.
TAKEN = examples(25, 50)
#: How often each one changes edges.
EDGES = examples(8, 40)
#: The errors of a lost race.
LOST = (UniqueViolation, AlreadyExists, StaleObject, ConditionNotMet)


def attempt(write: Callable[[], Any], *lost: type[DynamoSingleError]) -> bool:
    """Return whether a write was executed instead of losing its race."""
    expected = (*(lost or LOST), Conflict)
    try:
        write()
    except expected:
        return False
    return True


def loaded(model: Any, pk: str, **values: Any) -> Any:
    """Return a stored object, live or in the trash, with other values."""
    obj = model._base_manager.consistent().get(pk=pk)
    for name, value in values.items():
        setattr(obj, name, value)
    return obj


def same_value(process: int) -> int:
    """Create objects with one unique value; return the number of created ones."""
    return sum(
        attempt(lambda: Member.objects.create(email="same@example.org", name=f"{process}"), UniqueViolation)
        for _ in range(SAME)
    )


def many_values(process: int) -> list[int]:
    """Create an object with each of some values, in the same order everywhere; return the created ones."""
    return [
        number
        for number in range(20)
        if attempt(lambda number=number: Member.objects.create(email=f"{number}@example.org"), UniqueViolation)
    ]


def crossing(process: int) -> int:
    """Give each object the other one's value in both directions; return the number of changes."""
    own, other = ("a", "b") if process % 2 else ("b", "a")
    return sum(
        attempt(lambda: loaded(Member, own, email=f"{other}@example.org").save(), UniqueViolation, StaleObject)
        for _ in range(20)
    )


def rotating(process: int) -> int:
    """Give any of eight objects any of ten values; return the number of changes."""
    chosen = random.Random(process)

    def rename() -> None:
        pk, value = str(chosen.randrange(8)), chosen.randrange(10)
        loaded(Member, pk, badge=value, email=f"{value}@example.org").save()

    return sum(attempt(rename) for _ in range(RENAMES))


def renamed_and_deleted(process: int) -> int:
    """Half of the processes rename an object, the others delete and restore it, or delete it permanently."""
    done = 0
    for number in range(32):
        if process % 2:
            done += attempt(lambda n=number: _rename(process, n), *LOST, Member.DoesNotExist)
        else:
            done += attempt(lambda n=number: _delete(process, n), *LOST, Member.DoesNotExist)
    return done


def _rename(process: int, number: int) -> None:
    loaded(Member, "a", email=f"{process}-{number}@example.org").save()


def _delete(process: int, number: int) -> None:
    if number == 31:
        loaded(Member, "a").hard_delete()
    elif number % 2:
        loaded(Member, "a").restore()
    else:
        loaded(Member, "a").delete()


def restored_and_created(process: int) -> list[int]:
    """Half of the processes bring objects back whose values are free, the others create objects with these."""
    won = []
    for number in range(15):
        if process % 2:
            # Another process may have brought it back.
            lost = (UniqueViolation, Member.DoesNotExist)
            done = attempt(lambda n=number: Member.deleted_objects.get(pk=f"old{n}").restore(), *lost)
        else:
            done = attempt(lambda n=number: Member.objects.create(email=f"{n}@example.org"), UniqueViolation)
        won += [number] if done and not process % 2 else []
    return won


def counted(process: int) -> int:
    """Add one to a number in three ways; how often."""
    for number in range(SUMS):
        if number % 3 == 0:
            Stock.objects.filter(code="s").update(qty=F("qty") + 1)
        elif number % 3 == 1:
            stock = Stock(code="s", qty=F("qty") + 1)
            stock.save(update_fields=["qty"])
        else:
            with transactions.atomic():
                loaded(Stock, "s", qty=F("qty") + 1).save()
    return SUMS


def appended(process: int) -> list[str]:
    """Append to a list; what."""
    marks = [f"{process}-{number}" for number in range(10)]
    for mark in marks:
        Stock.objects.filter(code="s").update(tags=models.Append([mark]), labels=models.AddToSet({mark}))
    return marks


def children_counted(process: int) -> int:
    """Create, delete and restore children, and give channels to another parent; how many are live in the end."""
    for number in range(8):
        ChatMembership.objects.create(server_id="1", user_id=f"{process}-{number}")
        if number % 2:
            loaded(ChatMembership, f"1~~{process}-{number}").delete()
        if number % 4 == 1:
            loaded(ChatMembership, f"1~~{process}-{number}").restore()
        if number % 4 == 0:
            loaded(ChatMembership, f"1~~{process}-{number}").hard_delete()
        attempt(lambda: loaded(ChatChannel, "shared", server_id=str(1 + process % 2)).save(), StaleObject)
    return 4


def joined_and_deleted(process: int) -> int:
    """Half of the processes let fans join guilds, from either side; the others delete guilds and make them again."""

    def join(guild: str, fan: str, *, reverse: bool) -> None:
        joined, joining = loaded(GameGuild, guild), loaded(GameFan, fan)
        # Long enough for a whole deletion.
        time.sleep(random.uniform(0, 0.1))
        if reverse:
            joining.guilds.add(joined)
        else:
            joined.fans.add(joining)

    done = 0
    for number in range(SAME):
        guild = str(number % 2)
        if process % 2:
            done += attempt(lambda pk=guild: loaded(GameGuild, pk).hard_delete(), *LOST, GameGuild.DoesNotExist)
            attempt(lambda pk=guild: GameGuild.objects.create(guild_id=pk))
        else:
            add = partial(join, guild, f"{process}-{number % 4}", reverse=number % 3 == 0)
            done += attempt(add, MissingReference, GameGuild.DoesNotExist)
    return done


def edges_changed(process: int) -> int:
    """Add, remove, set and clear the same edges, of three kinds and from either side; return the number of changes."""
    chosen, done = random.Random(process), 0
    managers = [
        (loaded(GameGuild, "0").fans, GameFan),
        (loaded(GameServer, "0").players, GamePlayer),
        (loaded(GameServer, "0").tags, GameTag),
    ]
    for number in range(EDGES):
        manager, model = managers[number % 3]
        some = [f"{each:03}" for each in chosen.sample(range(FANS), chosen.randrange(2, FANS))]
        change = chosen.choice(["add", "add", "remove", "set", "clear", "reverse"])
        if change == "reverse":
            obj = loaded(model, some[0])
            other = getattr(obj, "guilds" if model is GameFan else "servers")
            done += attempt(partial(other.set, ["0"] if number % 2 else []), BulkError)
        else:
            given = {"set": (some,), "clear": ()}.get(change, some)
            done += attempt(partial(getattr(manager, change), *given), BulkError)
    return done


def versioned(process: int) -> tuple[int, int]:
    """Read a number, add one, and save; retry after a conflict; return the numbers of saves and conflicts."""
    done = refused = 0
    while done < 20:
        ledger = loaded(Ledger, "l")
        ledger.total += 1
        saved = attempt(ledger.save, StaleObject)
        done, refused = done + saved, refused + (not saved)
    return done, refused


def conditional(process: int) -> int:
    """Take one of a few things while there are any; return the number of taken ones."""
    return sum(
        attempt(lambda: loaded(Stock, "s", qty=F("qty") - 1).save(condition=Stock.qty > 0), ConditionNotMet)
        for _ in range(20)
    )


def moved(process: int) -> list[int]:
    """Move objects to a key of this process; which arrived."""
    return [
        number
        for number in range(10)
        if attempt(
            lambda n=number: loaded(Order, f"start~~{n}").move(customer=f"to{process}"), *LOST, Order.DoesNotExist
        )
    ]


def moved_to_one(process: int) -> list[int]:
    """Move an object of this process to a key that all move theirs to; which arrived."""
    return [
        number
        for number in range(10)
        if attempt(lambda n=number: loaded(Order, f"from{process}~~{n}").move(customer="one"), AlreadyExists)
    ]


def source_and_holders(process: int) -> int:
    """Half of the processes rename a user, the others give it memberships."""
    done = 0
    for number in range(10):
        if process % 2:
            done += attempt(lambda n=number: loaded(ChatUser, "1", username=f"{process}-{n}").save(), StaleObject)
        else:
            ChatServer.objects.create(server_id=f"{process}-{number}", name="A")
            ChatMembership.objects.create(server_id=f"{process}-{number}", user_id="1")
            done += 1
    return done


def seats_taken(process: int) -> int:
    """Take any of three places for any of four guests, one each; return the number of changes."""
    chosen = random.Random(process)

    def take() -> None:
        status = chosen.choice(("taken", "free"))
        loaded(Seat, str(chosen.randrange(6)), guest=f"g{chosen.randrange(4)}", status=status).save()

    return sum(attempt(take, UniqueViolation, StaleObject) for _ in range(TAKEN))


def bulk_created(process: int) -> int:
    """Create the same fifty objects in parallel, and skip existing ones; return the number of created ones."""
    objects = [Member(member_id=f"m{n}", email=f"m{n}@example.org", name=str(process)) for n in range(50)]
    return 50 - len(Member.objects.bulk_create(objects, ignore_conflicts=True).skipped)


def swapped(process: int) -> int:
    """Move an amount between two objects in one transaction; return the number of moves."""
    chosen = random.Random(process)

    def transfer() -> None:
        one, other = chosen.sample(["a", "b", "c"], 2)
        with transactions.atomic():
            giver, taker = loaded(Ledger, one), loaded(Ledger, other)
            giver.total -= 1
            taker.total += 1
            giver.save()
            taker.save()

    return sum(attempt(transfer, StaleObject) for _ in range(30))


def endless(process: int) -> None:
    """Write all kinds of things until the process is killed."""
    steps: list[Callable[[int], Any]] = [
        lambda n: loaded(Club, "c").delete(),
        lambda n: loaded(ChatUser, "1", username=f"{process}-{n}").save(),
        lambda n: loaded(Member, "a", email=f"{process}-{n}@example.org").save(),
        lambda n: loaded(Club, "c").restore(),
        lambda n: loaded(Member, "b").delete(),
        lambda n: Member.objects.create(email=f"{process}-{n}@example.net"),
        lambda n: loaded(Member, "b").restore(),
        lambda n: Member.objects.filter(email__startswith=f"{process}-{n}@").delete(),
    ]
    for number in itertools.count():
        attempt(lambda n=number: steps[n % len(steps)](n))
        if number % len(steps) == 0:
            print("still here", flush=True)


def ways_wanted(process: int) -> list[str]:
    """Create a user who wants shared identifiers; return the acquired ones in order."""
    chosen = random.Random(process)
    wanted = [(kind, f"{n}{host}") for kind, host in (("email", "@example.org"), ("google", "")) for n in range(WANTED)]
    chosen.shuffle(wanted)
    with override_settings(ACCOUNTS=WAYS):
        user: Any = User.objects.create_user(f"racer{process}", f"racer{process}@example.org", "secret")
        add: Any = user.logins.add
        won = [each for each in wanted if attempt(lambda each=each: add(*each), UniqueViolation, InvalidValue)]
        for number in ("+15550100", "+15550101"):
            if user.phone is None and attempt(lambda number=number: add("phone", number), UniqueViolation):
                won.append(("phone", number))
    return [identifier for _, identifier in won]


def ways_removed(process: int) -> int:
    """Remove one of each user's three methods, a different one per process; return the number of removals."""
    done = 0
    with override_settings(ACCOUNTS=WAYS):
        for number in range(20):
            way = (("email",), ("phone",), ("google", f"{number}"))[process % 3]
            logins: Any = loaded(User, f"{number}").logins
            done += attempt(lambda logins=logins, way=way: logins.remove(*way), LastWay, StaleObject, ConditionNotMet)
    return done


RACES: dict[str, Callable[[int], Any]] = {
    race.__name__: race
    for race in (
        same_value,
        many_values,
        crossing,
        rotating,
        renamed_and_deleted,
        restored_and_created,
        counted,
        appended,
        children_counted,
        joined_and_deleted,
        edges_changed,
        versioned,
        conditional,
        moved,
        moved_to_one,
        source_and_holders,
        seats_taken,
        bulk_created,
        swapped,
        ways_wanted,
        ways_removed,
        endless,
    )
}


def main() -> None:
    """Run the races named in each line, and print their outcomes, until the input ends."""
    process = int(sys.argv[1])
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(RACES[line.strip()](process)), flush=True)


if __name__ == "__main__":
    main()
