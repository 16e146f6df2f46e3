"""Orphans: edges with a missing side, and cascading children of a missing parent."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db.models.signals import post_delete
from django.utils import timezone

from dynamo_single import models
from dynamo_single.conf import TableSettings
from dynamo_single.contrib.doctor import removal, repair, verify
from dynamo_single.orm.requests.compiler import item_key
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.rollout.states import OpenChange, StoredForm
from dynamo_single.orm.schema.fingerprints import attribute_fingerprint, key_fingerprints
from dynamo_single.orm.schema.registry import attributes_of, layout_of
from dynamo_single.table import Request, SentRequest, Table
from dynamo_single.testing import capture_requests
from tests.catalog.clubs import Club, Player, Team, Trophy
from tests.catalog.servers import GameMember, GamePlayer, GameServer, GameTag
from tests.contract.racing import before_write
from tests.contract.tables import assert_consistent, everything
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.usefixtures("table")


def remove(table: Table, obj: Any) -> None:
    """Delete an object's item past everything."""
    table.send(Request("DeleteItem", {"Key": item_key((obj.partition_key, obj.sort_key))}))


def command(*options: str) -> str:
    """Return the output of the command."""
    out = io.StringIO()
    call_command("dynamo_verify", "--repair", *options, stdout=out, stderr=out)
    return out.getvalue()


def kinds() -> list[str]:
    """Return the kinds of the findings."""
    return sorted(finding.kind for finding in verify())


@pytest.fixture
def server(table: Table) -> GameServer:
    """A server with two players, a tag and a link to itself."""
    found = GameServer.objects.create(server_id="s", name="S")
    for name in ("a", "b"):
        found.players.add(GamePlayer.objects.create(player_id=name, username=name))
    found.tags.add(GameTag.objects.create(word="t"))
    found.links.add(found)
    return found


@pytest.mark.parametrize(
    ("gone", "edges"),
    [
        (lambda: GamePlayer.objects.get(pk="a"), 1),
        (lambda: GameTag.objects.get(pk="t"), 1),
        (lambda: GameServer.objects.get(pk="s"), 4),
    ],
    ids=["player", "tag", "server"],
)
def test_edges_of_nobody_are_removed(table: Table, server: GameServer, gone: Callable[[], Any], edges: int) -> None:
    """Declared ones, made ones and those to the object itself; the others stay."""
    before = everything(table)
    remove(table, gone())
    assert kinds() == ["edge without end"] * edges
    assert f"{edges} findings, {edges} repaired" in command()
    assert_consistent()
    assert len(everything(table)) == len(before) - 1 - edges


def test_a_side_in_the_trash_is_not_gone(table: Table) -> None:
    """Restoring the object restores its edges."""
    with forgotten():
        word = declare(
            "Word", ("WORD#{word}", "#METADATA"), bases=(models.SoftDeleteModel,), word=models.UnicodeAttribute()
        )
        text = declare(
            "Text",
            ("TEXT#{text_id}", "#METADATA"),
            text_id=models.UnicodeAttribute(),
            words=models.ManyToMany(word, related_name="texts"),
        )
        one = text.objects.create(text_id="t")
        one.words.add(word.objects.create(word="w"))
        word.objects.get(pk="w").delete()
        assert kinds() == []
        word.deleted_objects.get(pk="w").restore()
        assert one.words.count() == 1


def test_an_edge_of_two_who_are_gone_is_removed_once(table: Table, server: GameServer) -> None:
    """The checker reports the edge once."""
    remove(table, GamePlayer.objects.get(pk="a"))
    remove(table, server)
    assert kinds() == ["edge without end"] * 4
    command()
    assert_consistent()
    assert GameMember.objects.filter(server_id="s").count() == 0


@pytest.mark.parametrize("on_delete", [models.DO_NOTHING, models.PROTECT])
def test_an_edge_is_removed_whatever_its_on_delete_says(table: Table, on_delete: Any) -> None:
    """An edge connects two objects, and only one exists."""
    with forgotten():
        place = declare("Spot", ("PLACE#{place_id}", "#METADATA"), place_id=models.UnicodeAttribute())
        declare(
            "Way",
            ("PLACE#{start_id}", "ROAD#{end_id}"),
            {"back": models.IndexKey("gs1", "ROADTO#{end_id}", "{start_id}")},
            start=models.ReferenceAttribute(place, on_delete=on_delete, related_name="roads"),
            end=models.ReferenceAttribute("catalog.Stop", on_delete=on_delete, related_name="roads"),
        )
        town = declare(
            "Stop",
            ("TOWN#{town_id}", "#METADATA"),
            town_id=models.UnicodeAttribute(),
            until=models.TTLAttribute(null=True),
            places=models.ManyToMany(place, through="catalog.Way", through_fields=("end", "start")),
        )
        one = place.objects.create(place_id="p")
        for name in ("x", "y"):
            town.objects.create(town_id=name).places.add(one)
        if on_delete is models.DO_NOTHING:  # what expires has no other
            town.objects.filter(pk="x").update(until=timezone.now() - timedelta(hours=1))
        else:
            remove(table, town.objects.get(pk="x"))
        assert kinds() == ["edge without end"]
        command()
        assert kinds() == []
        assert one.roads.count() == 1


def test_children_that_go_along_with_nobody_are_removed(table: Table) -> None:
    """This includes unique values, cascading children in and out of the trash, and signals."""
    club = Club.objects.create(club_id="c", name="C")
    Trophy.objects.create(club=club, year=1990)
    for name in ("x", "y"):
        team = Team.objects.create(club=club, team_id=name)
        Player.objects.create(player_id=name, team=team, number=name)
    Team.objects.get(club=club, team_id="y").delete()
    remove(table, club)
    table.send(Request("DeleteItem", {"Key": item_key(("UNIQUE#Club#name#C", "#CLAIM"))}))
    told: list[Any] = []

    def tell(instance: Any, **options: object) -> None:
        told.append(type(instance))

    for model in (Team, Player, Trophy):
        post_delete.connect(tell, sender=model)
    try:
        assert "3 repaired" in command()
    finally:
        for model in (Team, Player, Trophy):
            post_delete.disconnect(tell, sender=model)
    assert sorted(each.__name__ for each in told) == ["Player", "Player", "Team", "Team", "Trophy"]
    assert everything(table) == {}


@pytest.fixture
def loans(table: Table) -> Iterator[tuple[Any, Any, Any]]:
    """Shelves that count their loans, and readers."""
    with forgotten():
        shelf = declare(
            "Rack",
            ("RACK#{rack_id}", "#METADATA"),
            rack_id=models.UnicodeAttribute(),
            number=models.CounterAttribute("loans"),
            loans=models.Children("catalog.Lending"),
        )
        reader = declare("Reader", ("READER#{reader_id}", "#METADATA"), reader_id=models.UnicodeAttribute())
        loan = declare(
            "Lending",
            ("RACK#{rack_id}", "LOAN#{loan_id}"),
            {"by_reader": models.IndexKey("gs1", "READER#{reader_id}", "{loan_id}")},
            rack=models.ReferenceAttribute(shelf, on_delete=models.CASCADE),
            reader=models.ReferenceAttribute(reader, on_delete=models.CASCADE),
            loan_id=models.UnicodeAttribute(),
        )
        rack = shelf.objects.create(rack_id="r")
        for name in ("x", "y"):
            loan.objects.create(rack=rack, reader=reader.objects.create(reader_id=name), loan_id=name)
        yield shelf, reader, loan


def test_what_is_left_is_counted(table: Table, loans: tuple[Any, Any, Any]) -> None:
    """Deleting an orphan updates the other parent's count; the missing parent has no count."""
    shelf, reader, loan = loans
    remove(table, reader.objects.get(pk="x"))
    command()
    assert shelf.objects.get(pk="r").number == 1
    assert_consistent()
    remove(table, shelf.objects.get(pk="r"))
    command()
    assert loan.objects.filter(reader_id="y").count() == 0
    assert_consistent()


RACES: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("parent", lambda reader, loan: reader.objects.create(reader_id="x")),
    ("other parent", lambda reader, loan: loan.objects.filter(pk="r~~x").update(reader_id="y")),
]


@pytest.mark.parametrize("act", [row[1] for row in RACES], ids=[row[0] for row in RACES])
def test_nothing_is_removed_if_it_belongs_to_somebody_again(
    table: Table, loans: tuple[Any, Any, Any], act: Callable[[Any, Any], Any]
) -> None:
    """Another process was faster by a request; the repair reports it, and does not write again."""
    shelf, reader, loan = loans
    remove(table, reader.objects.get(pk="x"))
    with before_write(1, lambda: act(reader, loan)), pytest.raises(CommandError, match="1 findings, 0 repaired"):
        command()
    assert loan.objects.get(pk="r~~x")
    assert shelf.objects.get(pk="r").number == 2
    assert_consistent()


def test_what_was_changed_since_it_was_found_is_left(table: Table, loans: tuple[Any, Any, Any]) -> None:
    """This includes changes of unrelated attributes."""
    _, reader, loan = loans
    remove(table, reader.objects.get(pk="x"))
    (finding,) = verify()
    item = everything(table)[finding.key]
    table.send(Request("PutItem", {"Item": {**item, "note": {"S": "another program's"}}}))
    assert not repair(finding)
    (finding,) = verify()
    assert repair(finding)
    assert not loan.objects.filter(pk="r~~x").exists()
    assert_consistent()


def test_what_protects_an_orphan_is_told(table: Table) -> None:
    """The finding names the item, and explains why it has to stay."""
    with forgotten():
        owner = declare("Keeper", ("KEEPER#{keeper_id}", "#METADATA"), keeper_id=models.UnicodeAttribute())
        pet = declare(
            "Pet",
            ("PET#{pet_id}", "#METADATA"),
            {"by_keeper": models.IndexKey("gs1", "KEEPER#{keeper_id}", "{pet_id}")},
            pet_id=models.UnicodeAttribute(),
            keeper=models.ReferenceAttribute(owner, on_delete=models.CASCADE),
        )
        toy = declare(
            "Toy",
            ("PET#{pet_id}", "TOY#{toy_id}"),
            toy_id=models.UnicodeAttribute(),
            pet=models.ReferenceAttribute(pet, on_delete=models.PROTECT),
        )
        keeper = owner.objects.create(keeper_id="k")
        toy.objects.create(toy_id="t", pet=pet.objects.create(pet_id="p", keeper=keeper))
        remove(table, keeper)
        out = io.StringIO()
        with pytest.raises(CommandError, match="1 findings, 0 repaired"):
            call_command("dynamo_verify", "--repair", stdout=out)
        assert "catalog.Toy objects refer to it by pet" in out.getvalue()
        assert pet.objects.filter(pk="p").exists()


def test_what_moves_is_no_orphan(table: Table, loans: tuple[Any, Any, Any]) -> None:
    """A parent that has moved, and bears the mark of it, has children that still refer to its old place."""
    _, reader, loan = loans
    remove(table, reader.objects.get(pk="x"))
    moved = reader.objects.create(reader_id="z")
    item = everything(table)[moved.partition_key, moved.sort_key]
    table.send(Request("PutItem", {"Item": {**item, "movedFrom": {"S": "x"}}}))
    out = io.StringIO()
    with pytest.raises(CommandError, match="2 findings, 0 repaired"):
        call_command("dynamo_verify", "--repair", stdout=out)
    assert "an object has moved, and some references to it are not updated yet" in out.getvalue()
    reader.objects.get(pk="z").move_tree(reader_id="z")
    assert loan.objects.get(pk="r~~x").reader_id == "z"
    assert_consistent()


def test_what_a_migration_moves_is_no_orphan(
    table: Table, loans: tuple[Any, Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its parents get new keys one by one, and are found under neither key for a time."""
    _, reader, loan = loans
    remove(table, reader.objects.get(pk="x"))
    (finding,) = verify()
    monkeypatch.setattr(knowledge, "has_migrations", lambda app: True)
    layout = layout_of(reader)
    attributes = {each.attr_name: attribute_fingerprint(each, layout) for each in attributes_of(reader).values()}
    form = StoredForm(
        "catalog.reader",
        key_fingerprints(layout)["primary"],
        attributes,
        opened=(OpenChange("MoveKeys", "catalog.0002", {}),),
    )
    knowledge.change(table, lambda state: state.with_form("Reader", form))
    (why,) = removal.delete_orphans(table, [finding])
    assert "a migration gives its items another primary key" in why
    knowledge.change(table, lambda state: state.with_form("Reader", None))
    assert list(removal.delete_orphans(table, [finding])) == [""]
    monkeypatch.undo()
    assert not loan.objects.filter(pk="r~~x").exists()


def test_many_are_removed_after_one_look_for_what_moves(table: Table, server: GameServer) -> None:
    """The Scan of the walk and one more, and a transaction for each."""
    GameTag.objects.bulk_create([GameTag(word=f"w{number}") for number in range(20)])
    server.tags.add(*GameTag.objects.all())
    remove(table, server)
    with capture_requests() as sent:
        assert "24 repaired" in command()
    count = [request.operation for request in sent].count
    assert (count("Scan"), count("TransactWriteItems")) == (2, 24)
    assert_consistent()


def test_an_index_that_is_behind_is_waited_for(
    table: Table, server: GameServer, monkeypatch: pytest.MonkeyPatch, sent: list[SentRequest]
) -> None:
    """A second, once for all; of a local engine nothing is behind."""
    remove(table, server)
    found = list(verify())
    waited: list[float] = []
    monkeypatch.setattr(removal.time, "sleep", waited.append)
    monkeypatch.setattr(TableSettings, "is_local", property(lambda self: False))
    assert list(removal.delete_orphans(table, found)) == [""] * 4
    assert waited == [1.0]


def test_without_repair_nothing_is_removed(table: Table, server: GameServer) -> None:
    """The finding names the repair."""
    remove(table, server)
    before = everything(table)
    out = io.StringIO()
    with pytest.raises(CommandError, match=r"4 findings\. --repair repairs what can be"):
        call_command("dynamo_verify", stdout=out)
    assert "It is an edge to SERVER#s / #METADATA#GAME, by server, but that object is not stored" in out.getvalue()
    assert everything(table) == before


def test_writers_lose_nothing_to_a_repair(table: Table, loans: tuple[Any, Any, Any]) -> None:
    """They create and delete families, change parents and leave orphans, all the time."""
    _, reader, loan = loans
    done = threading.Event()
    kept: list[str] = []

    def write(number: int) -> None:
        for count in range(12):
            name = f"{number}-{count}"
            owner = reader.objects.create(reader_id=name)
            one = loan.objects.create(rack_id="r", reader=owner, loan_id=name)
            if count % 3 == 0:
                owner.delete()
            elif count % 3 == 1:
                one.reader = reader.objects.create(reader_id=f"{name}-new")
                one.save()
                owner.delete()
                kept.append(name)
            else:
                kept.append(name)
            if count % 4 == 0:
                remove(table, reader.objects.create(reader_id=f"{name}-gone"))
                loan.objects.create(rack_id="r", reader_id=f"{name}-gone", loan_id=f"{name}-left")

    def repairs() -> None:
        while not done.is_set():
            held = [finding for finding in verify() if finding.removal is not None]
            list(removal.delete_orphans(table, held))

    with ThreadPoolExecutor(3) as pool:
        repairing = pool.submit(repairs)
        writing = [pool.submit(write, number) for number in range(2)]
        try:
            for each in writing:
                each.result()
        finally:
            done.set()
        repairing.result()
    command()
    assert_consistent()
    assert {each.loan_id for each in loan.objects.filter(rack_id="r")} == {"x", "y", *kept}
