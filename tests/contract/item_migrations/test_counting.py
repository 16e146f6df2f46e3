"""A migration counts existing items after code without counts is blocked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from django.core.management import CommandError
from django.db.models import Q

from dynamo_single import models
from dynamo_single.contrib.doctor import verify
from dynamo_single.evolution.backfill import counts, rehearse
from dynamo_single.exceptions import FormNotApplied, KeyNotFilled
from dynamo_single.orm.effects import counters, recount
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema.keys.values import item_size
from dynamo_single.table import Request, Table, intercept, names
from dynamo_single.table.request import MAX_ITEM_SIZE
from dynamo_single.testing import assert_requests
from tests.contract.item_migrations.test_migrate import fill, form, item, shop
from tests.contract.robustness.crashing import Crash, crash_behind
from tests.histories.app import Beginning, History, history


@Beginning
def begin(app: History) -> None:
    """Its first migration."""
    shop(app)
    app.make()
    app.migrate()


@pytest.fixture
def app(tmp_path: Path, table: Table) -> Iterator[History]:
    """The app with a model, and its first migration applied."""
    with history(tmp_path) as found:
        begin(found)
        shop(found)
        yield found


SHOP_A = {"pk": {"S": "SHOP#a"}, "sk": {"S": "#METADATA"}}
HOME_KEYS = {"by_home": models.IndexKey("gs2", "HOME#{home_id}", "{shop_id}")}


def member(app: History, keys: dict[str, Any] | None = None, **options: Any) -> Any:
    """Return a model that refers to shops, and three members of the first one, one of them in the trash."""
    home = models.ReferenceAttribute("histories.Shop", **options)
    return app.model("Member", keys=keys, bases=(models.SoftDeleteModel,), home=home)


def shop_with_members(app: History, **options: Any) -> Any:
    """The model that counts them."""
    counter = models.CounterAttribute("members", **options)
    return shop(app, members=models.Children("Member"), member_count=counter)


def join(model: Any, *names: str, home: str = "a") -> None:
    """Members of a shop."""
    for name in names:
        model.objects.create(shop_id=name, home_id=home)


def numbers(name: str) -> list[str | None]:
    """Return the values of an attribute in the items of the three shops."""
    return [item(shop_id).get(name) for shop_id in "abc"]


def checked_since(app: History, *names: str) -> Any:
    """Return a model whose reference is now checked by all code, and members that are not counted yet."""
    fill(shop(app))
    people = member(app, HOME_KEYS, on_delete=models.PROTECT)
    app.make()
    app.migrate()
    join(people, *names)
    people = member(app, HOME_KEYS, on_delete=models.PROTECT, checked=True)
    app.make()
    app.migrate(until=1)
    return people


def test_a_counter_is_counted(app: History) -> None:
    """Until then, no query uses it; its key may be new too."""
    old, people = shop(app), member(app)
    fill(old)
    app.make()
    app.migrate()
    join(people, "m", "n", "o")
    people.objects.get(shop_id="o").delete()
    new = shop_with_members(app)
    people = member(app, HOME_KEYS)
    app.make()
    assert "Add attribute member_count to Shop; it is counted" in app.migrate(until=1)
    join(people, "p", home="b")
    with pytest.raises(KeyNotFilled):
        new.objects.filter(pk__in=["a", "b"], member_count__gt=0).exists()
    app.migrate()
    assert numbers("member_count") == ["2", "1", None]
    assert [each.pk for each in new.objects.filter(pk__in=["a", "b"], member_count=2)] == ["a"]
    assert list(verify()) == []


def test_a_counter_of_something_else_is_counted_again(app: History) -> None:
    """Code continues in the meantime without queries by it."""
    fill(shop(app))
    shop_with_members(app)
    people = member(app, HOME_KEYS)
    app.make()
    app.migrate()
    join(people, "m", "n")
    new = shop_with_members(app, condition=Q(shop_id="m"))
    member(app, HOME_KEYS)
    app.make()
    assert "Alter attribute member_count of Shop; it is counted" in app.migrate(until=1)
    with pytest.raises(KeyNotFilled):
        new.objects.filter(pk__in=["a", "b"], member_count__gt=0).exists()
    assert new.objects.get(pk="a").name == "A"
    app.migrate()
    assert numbers("member_count") == ["1", None, None]


def test_a_condition_on_what_is_renamed_follows_in_a_process_that_goes_on(app: History) -> None:
    """It uses the items' name in every phase of the rename."""

    def code(state: str) -> tuple[Any, Any]:
        new = shop_with_members(app, condition=Q(**{state: "open"}))
        home = models.ReferenceAttribute("histories.Shop", on_delete=models.DO_NOTHING)
        attributes = {"home": home, state: models.UnicodeAttribute(default="open")}
        return new, app.model("Member", keys=HOME_KEYS, bases=(models.SoftDeleteModel,), **attributes)

    fill(shop(app))
    _, people = code("state")
    app.make()
    app.migrate()
    join(people, "m", "n")
    assert numbers("member_count") == ["2", None, None]
    new, people = code("status")
    app.make(answers=["y"])
    for until in range(4):
        app.migrate(until=until)
        join(people, str(until))
        assert numbers("member_count") == ["3", None, None]
        people.objects.filter(pk=str(until)).update(status="done")
        assert numbers("member_count") == ["2", None, None]
    app.migrate()
    people.objects.filter(pk__in=["m", "n"]).update(status="done")
    assert new.objects.get(pk="a").member_count == 0
    assert list(verify()) == []


def test_a_reference_that_is_checked_is_counted(app: History, table: Table) -> None:
    """Former references were not counted; deletions use the number afterwards."""
    old = shop(app)
    fill(old)
    people = member(app, HOME_KEYS, on_delete=models.PROTECT)
    app.make()
    app.migrate()
    join(people, "m", "n", "o")
    people.objects.get(shop_id="o").delete()
    checked = member(app, HOME_KEYS, on_delete=models.PROTECT, checked=True)
    app.make()
    assert app.operations() == ["Alter attribute home_id of Member; referring objects are counted"]
    app.migrate(until=1)
    join(checked, "p")
    checked.objects.get(shop_id="m").delete()
    assert [each.kind for each in verify()] == ["counter"]
    app.migrate()
    assert numbers("refs:Member.home_id") == ["2", None, None]
    assert list(verify()) == []
    assert form(table, "Member").opened == ()
    assert app.make("--check") == "No changes detected in app 'histories'\n"


def test_a_reference_that_is_counted_under_another_name_is_counted_again(app: History) -> None:
    """The name contains the type of the referring model, which moves."""
    fill(shop(app))
    people = member(app, HOME_KEYS, on_delete=models.PROTECT, checked=True)
    app.make()
    app.migrate()
    join(people, "m", "n")
    app.migrate()
    home = models.ReferenceAttribute("histories.Shop", on_delete=models.PROTECT, checked=True)
    declared = {"bases": (models.SoftDeleteModel,), "options": {"item_type": "Person"}}
    app.model("Member", keys=HOME_KEYS, home=home, **declared)
    app.make()
    app.migrate()
    assert numbers("refs:Person.home_id") == ["2", None, None]


def test_what_an_index_does_not_show_yet_is_counted(
    app: History, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New code has counted it already; the pass waits for the index before it writes another number."""
    people = checked_since(app, "m")
    join(people, "n")
    keys = {"pk": {"S": "MEMBER#n"}, "sk": {"S": "#METADATA"}}
    shown = table.send(Request("GetItem", {"Key": keys}))["Item"]
    behind = {name: value for name, value in shown.items() if not name.startswith("gs2")}
    table.send(Request("PutItem", {"Item": behind}))

    async def follow(seconds: float) -> None:
        table.send(Request("PutItem", {"Item": shown}))

    monkeypatch.setattr(counters.CountTarget, "index_lag", lambda target: 60.0)
    monkeypatch.setattr(recount, "pause", follow)
    app.migrate()
    assert numbers("refs:Member.home_id") == ["2", None, None]


def test_what_is_written_while_it_is_counted_is_counted_too(app: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """This also applies if the number was right for the earlier reads."""
    people = checked_since(app, "m", "o")
    join(people, "n")
    left = ["m", "o"]

    async def leave(seconds: float) -> None:
        if left:
            people.objects.get(shop_id=left.pop()).delete()

    monkeypatch.setattr(counters.CountTarget, "index_lag", lambda target: 60.0)
    monkeypatch.setattr(recount, "pause", leave)
    app.migrate()
    assert numbers("refs:Member.home_id") == ["1", None, None]


def test_who_comes_and_goes_while_it_is_counted_is_not_counted(app: History) -> None:
    """Each Query finds the same number, but of different objects."""
    people = checked_since(app, "m", "o")
    visitors, inside = ["v", "w", "x"], list[Any]()

    def visit(operation: str, params: Any) -> None:
        if operation == "Query" and "HOME#a" in str(params) and visitors:
            inside.append(people.objects.create(shop_id=visitors.pop(), home_id="a"))
        if operation == "UpdateItem" and "SHOP#a" in str(params) and inside:
            inside.pop().delete()

    with intercept(visit):
        app.migrate()
    assert (visitors, inside) == ([], [])
    assert numbers("refs:Member.home_id") == ["2", None, None]


def test_an_item_that_was_counted_has_no_mark(app: History) -> None:
    """The counting process removes its own marker."""
    fill(shop(app))
    shop_with_members(app)
    people = member(app, HOME_KEYS)
    app.make()
    app.migrate()
    join(people, "m")
    app.migrate()
    assert [item(shop_id).get(names.COUNTING) for shop_id in "abc"] == [None] * 3


def test_whoever_writes_takes_a_mark_away(app: History, table: Table) -> None:
    """A killed run has left it."""
    fill(shop(app))
    shop_with_members(app)
    people = member(app, HOME_KEYS)
    app.make()
    app.migrate()
    marked = {**table.send(Request("GetItem", {"Key": SHOP_A}))["Item"], names.COUNTING: {"S": "mark"}}
    table.send(Request("PutItem", {"Item": marked}))
    join(people, "m")
    assert (item("a").get(names.COUNTING), item("a")["member_count"]) == (None, "1")


def test_what_cannot_be_counted_yet_stays_open(app: History, table: Table) -> None:
    """No key finds the objects: no number is written, and the next run continues."""
    fill(shop(app))
    people = member(app, on_delete=models.PROTECT)
    app.make()
    app.migrate()
    join(people, "m")
    member(app, on_delete=models.PROTECT, checked=True)
    app.make()
    with pytest.raises(
        CommandError, match=r"(?s)histories.Member cannot be counted yet\. .* Repeat the command to resume"
    ):
        app.migrate()
    assert len(form(table, "Member").opened) == 1
    member(app, HOME_KEYS, on_delete=models.PROTECT, checked=True)
    app.make()
    app.migrate()
    assert numbers("refs:Member.home_id") == ["1", None, None]


def test_a_rehearsal_counts_what_it_can(app: History, table: Table) -> None:
    """It reports the parts that it cannot test yet, and continues."""
    fill(shop(app))
    people = member(app, on_delete=models.PROTECT)
    app.make()
    app.migrate()
    join(people, "m")
    member(app, HOME_KEYS, on_delete=models.PROTECT, checked=True)
    app.make()
    assert "This cannot be tried yet. histories.Member cannot be counted yet." in app.migrate("--rehearse")
    app.migrate(until=1)
    assert numbers("refs:Member.home_id") == [None] * 3
    said = app.migrate("--rehearse")
    assert "This cannot be tried yet. histories.Member cannot be counted yet." in said
    assert "Add key by_home to Member on gs2" in said
    app.migrate()
    assert numbers("refs:Member.home_id") == ["1", None, None]


def test_a_rehearsal_after_others_counts_as_often(app: History, table: Table) -> None:
    """The writes of earlier tasks are considered without another Query per item."""
    fill(shop(app))
    new = shop_with_members(app)
    people = member(app, HOME_KEYS)
    app.make()
    app.migrate()
    join(people, "m")
    task = counts.count_items("Shop", lambda: counters.CountTarget(new, "member_count", new.members))
    with assert_requests(["Scan", *["Query"] * 3]):
        rehearse(task, table, imagined={("CLAIM#1", "CLAIM"): None})


def test_the_requests_that_count_are_printed(app: History) -> None:
    """This works even if the counted model no longer exists."""
    shop_with_members(app)
    member(app, HOME_KEYS)
    app.make()
    app.forget("Shop")
    app.forget("Member")
    assert "for each with the number two Queries, two UpdateItems" in app.run("sqlmigrate", "histories", "0002")


@pytest.mark.parametrize("restored", [False, True])
def test_a_removed_check_is_counted_again_at_a_revert(app: History, *, restored: bool) -> None:
    """Code without counts is blocked until no code reads the number; a revert names the counting model."""
    fill(shop(app))
    people = member(app, HOME_KEYS, on_delete=models.PROTECT, checked=True)
    app.make()
    app.migrate()
    join(people, "m")
    plain = member(app, HOME_KEYS, on_delete=models.PROTECT)
    app.make()
    app.migrate(until=1)
    with pytest.raises(FormNotApplied, match=r"refs:Member\.home_id"):
        plain.objects.get(pk="m")
    app.migrate()
    join(plain, "n")
    assert numbers("refs:Member.home_id") == ["1", None, None]
    if restored:
        member(app, HOME_KEYS, on_delete=models.PROTECT, checked=True)
    assert "manage.py dynamo_rebuild" in app.migrate("0002")
    assert numbers("refs:Member.home_id") == ["2" if restored else "1", None, None]


def test_numbers_of_what_a_function_changes_are_named(app: History) -> None:
    """Another command counts them again, because a function may have changed the counted objects."""
    fill(shop(app))
    shop_with_members(app, condition=Q(shop_id="m"))
    member(app, HOME_KEYS)
    app.make()
    app.migrate()
    (app.folder / "0003_homes.py").write_text(
        "from django.db import migrations\n"
        "from dynamo_single import migrations as items\n\n\n"
        "class Migration(migrations.Migration):\n"
        f"    dependencies = [('histories', '{app.files[-1]}')]\n"
        "    operations = [items.ChangeItems('Member', dict)]\n"
    )
    said = app.migrate()
    message = "This may have changed values counted by histories.Shop, which the migration does not update."
    assert f"{message} Run manage.py dynamo_rebuild." in said


def test_counting_while_new_code_writes(app: History, table: Table) -> None:
    """Objects that come and go are counted once; a changing number is counted when it is stable."""
    fill(shop(app))
    people = member(app, HOME_KEYS, on_delete=models.PROTECT)
    app.make()
    app.migrate()
    for number in range(40):
        join(people, f"old{number:02}", home="ab"[number % 2])
    people = member(app, HOME_KEYS, on_delete=models.PROTECT, checked=True)
    app.make()
    app.migrate(until=1)
    writers = [Coming(people, name) for name in "xy"]
    for writer in writers:
        writer.start()
    try:
        for writer in writers:
            assert writer.written.wait(30)
        with suppress(CommandError):
            app.migrate()
    finally:
        for writer in writers:
            writer.is_over.set()
            writer.join()
    assert [writer.error for writer in writers] == [None, None]
    if form(table, "Member").opened:
        app.migrate()
    counted = [people.objects.filter(home_id=home).count() for home in "ab"]
    assert numbers("refs:Member.home_id")[:2] == [str(number) for number in counted]
    assert list(verify()) == []


class Coming(Thread):
    """Members of both shops that come, move and go until the end, including former ones."""

    def __init__(self, people: Any, name: str) -> None:
        super().__init__(daemon=True)
        self.people, self.name = people, name
        self.is_over, self.written = Event(), Event()
        self.error: Exception | None = None

    def run(self) -> None:
        """Run until the end or an error."""
        old = [f"old{number:02}" for number in range(40) if ("xy"[number // 20]) == self.name]
        try:
            for number in count():
                if self.is_over.is_set():
                    break
                self.people.objects.create(shop_id=f"{self.name}{number}", home_id="ab"[number % 2])
                if number % 3 == 0:
                    self.people.objects.get(shop_id=f"{self.name}{number}").delete()
                if number % 3 == 1:
                    self.people.objects.filter(shop_id=f"{self.name}{number}").update(home_id="a")
                if old:
                    self.people.objects.get(shop_id=old.pop()).hard_delete()
                if number == 3:
                    self.written.set()
        except Exception as error:
            self.error = error
            self.written.set()


def test_counting_that_was_killed_goes_on(app: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """After any request: the next run leaves what an undisturbed one would have left."""
    monkeypatch.setattr(knowledge, "LOCAL_LEASE", 0.05)
    fill(shop(app))
    people = member(app, HOME_KEYS, on_delete=models.PROTECT)
    app.make()
    app.migrate()
    join(people, "m", "n")
    join(people, "o", home="b")
    member(app, HOME_KEYS, on_delete=models.PROTECT, checked=True)
    app.make()
    app.migrate(until=1)
    killed_after = 0
    while killed_after < 60:
        killed_after += 3
        try:
            with crash_behind(killed_after):
                app.migrate()
            break
        except Crash:
            pass
    assert killed_after > 12
    assert numbers("refs:Member.home_id") == ["2", "1", None]
    assert list(verify()) == []


@pytest.fixture
def large(app: History) -> Any:
    """Create five uncounted members of the first shop that exceed a page, with a key sorted by name."""
    fill(shop(app))
    keys = {"by_home": models.IndexKey("gs2", "HOME#{home_id}", "{name}")}

    def code(**options: Any) -> Any:
        home = models.ReferenceAttribute("histories.Shop", on_delete=models.PROTECT, **options)
        attributes = {"home": home, "name": models.UnicodeAttribute(), "notes": models.UnicodeAttribute()}
        return app.model("Member", keys=keys, **attributes)

    people = code()
    app.make()
    app.migrate()
    for name in "mnopq":
        people.objects.create(shop_id=name, home_id="a", name=name, notes="x" * 380_000)
    people = code(checked=True)
    app.make()
    app.migrate(until=1)
    return people


@contextmanager
def changing(people: Any, places: list[str]) -> Iterator[None]:
    """The last member gets another name after the first page of a Query, as often as there are places."""
    first = False

    def change(operation: str, params: Any) -> None:
        nonlocal first
        if operation == "Query":
            if first and "ExclusiveStartKey" in params and places:
                people.objects.filter(pk="q").update(name=places.pop(0))
            first = "ExclusiveStartKey" not in params

    with intercept(change):
        yield


def test_who_changes_places_while_it_is_counted_is_counted_once(app: History, large: Any) -> None:
    """A member that moves to an already counted place exists all the time."""
    places = ["a"]
    with changing(large, places):
        app.migrate()
    assert places == []
    assert numbers("refs:Member.home_id") == ["5", None, None]


def test_what_never_looks_the_same_is_named(app: History, large: Any) -> None:
    """It is missed and found twice in turns; the same command counts it at a quieter time."""
    with changing(large, ["a", "z"] * 100), pytest.raises(CommandError, match=r"SHOP#a.* The app counted 7 times"):
        app.migrate()
    assert numbers("refs:Member.home_id") == [None, None, None]
    app.migrate()
    assert numbers("refs:Member.home_id") == ["5", None, None]


def test_an_item_that_takes_no_mark_is_named(app: History, table: Table) -> None:
    """Its size is at the maximum; the others are counted."""
    shops = shop(app)
    fill(shops)
    people = member(app, HOME_KEYS, on_delete=models.PROTECT)
    app.make()
    app.migrate()
    join(people, "m")
    join(people, "n", home="b")
    shops.objects.filter(pk="a").update(name="x")
    size = item_size(table.send(Request("GetItem", {"Key": SHOP_A}))["Item"])
    shops.objects.filter(pk="a").update(name="x" * (MAX_ITEM_SIZE - size - 20))
    member(app, HOME_KEYS, on_delete=models.PROTECT, checked=True)
    app.make()
    app.migrate(until=1)
    with pytest.raises(CommandError, match="SHOP#a"):
        app.migrate()
    assert numbers("refs:Member.home_id") == [None, "1", None]


def test_a_relation_that_is_checked_is_counted(app: History, table: Table) -> None:
    """Its edges were not counted before on either side, and edges that old code has added count too."""
    fill(shop(app))
    tag = app.model("Tag")
    plain = shop(app, tags=models.ManyToMany(tag, related_name="shops"))
    app.make()
    app.migrate()
    tags = [tag.objects.create(shop_id=key) for key in "xyz"]
    plain.objects.get(pk="a").tags.add(*tags)
    app.forget("Shop_tags")
    checked = shop(app, tags=models.ManyToMany(tag, related_name="shops", checked=True))
    app.make()
    assert app.operations() == [
        "Alter attribute shop_id of Shop_tags; referring objects are counted",
        "Alter attribute tag_id of Shop_tags; referring objects are counted",
    ]
    app.migrate(until=0)
    plain.objects.get(pk="b").tags.add("y")
    app.migrate(until=1)
    checked.objects.get(pk="b").tags.add("x")
    app.migrate()
    assert numbers("refs:Shop_tags.shop_id") == ["3", "2", None]
    assert list(verify()) == []
    assert checked.objects.get(pk="a").hard_delete()[0] == 4
    assert list(verify()) == []
