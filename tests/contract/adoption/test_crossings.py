"""Features of models in tables with names of their own, with and without a type, and with attributes as keys."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db.models import F
from django.utils import timezone

from dynamo_single import models, transactions
from dynamo_single.exceptions import InvalidCursor, UniqueViolation
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests, frozen_time
from tests.contract.adoption.foreign import ALIAS, Foreign, foreign_table, stored
from tests.unit.declaring import declare, forgotten, messages

TEXT, NUMBER, KEY = models.UnicodeAttribute, models.IntegerAttribute, models.IndexKey
REFERENCE = models.ReferenceAttribute
COMPOSED: dict[str, Any] = {
    "PARTITION_KEY": "PK",
    "SORT_KEY": "SK",
    "TTL_ATTRIBUTE": "ttl",
    "INDEXES": {
        "gs1": {"name": "GSI1", "partition": "GSI1PK", "sort": "GSI1SK"},
        "gs2": {"name": "GSI2", "partition": "GSI2PK", "sort": "GSI2SK"},
    },
}
UNTYPED: dict[str, Any] = {"TYPE_ATTRIBUTE": None, "RAW_KEYS": True}
KINDS: dict[str, dict[str, Any]] = {
    "typed": {**COMPOSED, "TYPE_ATTRIBUTE": "_type"},
    "untyped": {**COMPOSED, **UNTYPED},
}
ATTRIBUTES: dict[str, Any] = {
    "PARTITION_KEY": "forum",
    "SORT_KEY": "number:N",
    "INDEXES": {"views": {"name": "by-views", "partition": "views:N"}},
    **UNTYPED,
}


def model(
    label: str,
    key: tuple[str, str],
    keys: dict[str, Any] | None = None,
    bases: tuple[type, ...] = (models.Model,),
    **attributes: Any,
) -> Any:
    """A model of the table."""
    return declare(label, key, keys, options={"table": ALIAS}, bases=bases, **attributes)


@pytest.fixture(params=KINDS)
def table(request: Any, engine: Table) -> Iterator[Foreign]:
    """A table with composed keys."""
    with foreign_table(**KINDS[request.param]) as found, forgotten():
        yield found


@pytest.fixture
def attributes(engine: Table) -> Iterator[Foreign]:
    """A table whose keys are attributes, two of them numbers."""
    with foreign_table(**ATTRIBUTES) as found, forgotten():
        yield found


@pytest.fixture
def chat(table: Foreign) -> tuple[Any, Any, Any]:
    """People, rooms with their number of seats, and seats with a copy of the person's name."""
    person = model("Inmate", ("P#{person_id}", "#P"), person_id=TEXT(), name=TEXT())
    room = model(
        "Chamber",
        ("R#{room_id}", "#R"),
        room_id=TEXT(),
        seats=models.Children("Bench"),
        seat_count=models.CounterAttribute("seats"),
    )
    seat = model(
        "Bench",
        ("R#{room_id}", "P#{person_id}"),
        {"by_person": KEY("gs1", "P#{person_id}", "R#{room_id}")},
        room=REFERENCE(room, on_delete=models.CASCADE),
        person=REFERENCE(person, on_delete=models.CASCADE, related_name="benches"),
        role=TEXT(default=""),
        person_name=models.CopiedAttribute("person", "name"),
    )
    return person, room, seat


def test_references_are_followed_both_ways(chat: tuple[Any, Any, Any]) -> None:
    person, room, seat = chat
    jane, hall = person.objects.create(person_id="jane d", name="Jane"), room.objects.create(room_id="1")
    seat.objects.create(room=hall, person=jane, role="Guest")
    assert [each.role for each in jane.benches.all()] == ["Guest"]
    assert [each.room.room_id for each in seat.objects.filter(person=jane).select_related("room")] == ["1"]
    assert jane.delete()[0] == 2
    assert seat.objects.filter(room=hall).count() == 0


def test_copies_and_counters_follow(chat: tuple[Any, Any, Any]) -> None:
    person, room, seat = chat
    jane, hall = person.objects.create(person_id="jane d", name="Jane"), room.objects.create(room_id="1")
    seat.objects.create(room=hall, person=jane)
    jane.name = "Janet"
    jane.save()
    assert [each.person_name for each in seat.objects.filter(room=hall)] == ["Janet"]
    assert room.objects.get(room_id="1").seat_count == 1
    seat.objects.get(room=hall, person=jane).delete()
    assert room.objects.get(room_id="1").seat_count == 0


def test_fixture_restores_every_item(table: Foreign, tmp_path: Path) -> None:
    order = model(
        "Errand",
        ("C#{customer}", "O#{number}"),
        {"by_number": KEY("gs1", "O#{number}", "{placed}")},
        customer=TEXT(),
        number=TEXT(),
        placed=models.TimestampAttribute(stored_as="seconds"),
        ends=models.TTLAttribute(null=True),
    )
    when = datetime(2030, 1, 1, tzinfo=UTC)
    order.objects.bulk_create(order(customer="jane d", number=f"{n}", placed=when, ends=when) for n in range(3))
    _restored(table, order, tmp_path)


def test_fixture_restores_keys_of_numbers(attributes: Foreign, tmp_path: Path) -> None:
    post = model(
        "Notice",
        ("{forum}", "{number}"),
        {"by_views": KEY("views", "{views}", "")},
        forum=TEXT(),
        number=NUMBER(),
        views=NUMBER(),
    )
    post.objects.bulk_create(post(forum="f#~ g", number=n, views=-n) for n in (-5, 0, 10**20))
    _restored(attributes, post, tmp_path)


def _restored(table: Foreign, kind: Any, folder: Path) -> None:
    before, text = table.items(), io.StringIO()
    call_command("dumpdata", kind._meta.label, stdout=text)
    (folder / "items.json").write_text(text.getvalue())
    for each in kind.objects.allow_scan():
        each.delete()
    assert table.items() == []
    call_command("loaddata", str(folder / "items.json"), verbosity=0)
    assert table.items() == before


@pytest.fixture
def note(table: Foreign) -> Any:
    """Notes with a trash, an expiry, a secret and a folded unique value."""
    return model(
        "Memo",
        ("M#{owner}", "N#{number}"),
        {"by_title": KEY("gs1", "T#{title_canonical}", "{number}")},
        bases=(models.SoftDeleteModel,),
        owner=TEXT(),
        number=TEXT(),
        title=TEXT(),
        title_canonical=models.CanonicalAttribute(source="title"),
        pin=TEXT(null=True, secret=True),
        address=TEXT(null=True),
        address_canonical=models.CanonicalAttribute(source="address", unique=True),
        ends=models.TTLAttribute(null=True),
    )


def test_trash_hides_and_restores(note: Any, table: Foreign) -> None:
    found = note.objects.create(owner="o", number="1", title="A b")
    before = table.items()
    found.delete()
    assert [*note.objects.filter(owner="o")] == [*note.objects.filter(title__iexact="a B")] == []
    assert [each.number for each in note.deleted_objects.all()] == ["1"]
    note.deleted_objects.get(owner="o", number="1").restore()
    assert table.items() == before


def test_expired_item_is_hidden(note: Any) -> None:
    note.objects.create(owner="o", number="1", title="t", ends=timezone.now() + timedelta(hours=1))
    assert note.objects.filter(owner="o").count() == 1
    with frozen_time(timezone.now() + timedelta(hours=2)):
        assert note.objects.filter(owner="o").count() == 0
        assert not note.objects.filter(owner="o", number="1").exists()


def test_folded_value_is_found_and_unique(note: Any) -> None:
    note.objects.create(owner="o", number="1", title="Ünder Way", address="Ünn@Example.com")
    assert note.objects.get(title__iexact="üNDER wAY").number == "1"
    with pytest.raises(UniqueViolation):
        note.objects.create(owner="o", number="2", title="t", address="üNN@example.com")


def test_secret_is_masked_in_plans(note: Any) -> None:
    text = note.objects.filter(owner="o", pin="1234").explain()
    assert "1234" not in text
    assert "M#o" in text


def test_block_writes_all_or_nothing(note: Any, table: Foreign) -> None:
    with transactions.atomic():
        note.objects.create(owner="o", number="1", title="t", address="a@example.com")
        note.objects.create(owner="o", number="2", title="t")
    before = table.items()
    with pytest.raises(UniqueViolation), transactions.atomic():
        note.objects.create(owner="o", number="3", title="t")
        note.objects.create(owner="o", number="4", title="t", address="a@example.com")
    assert table.items() == before


def test_bulk_methods_write_many(table: Foreign) -> None:
    line = model("Stripe", ("C#{customer}", "L#{number}"), customer=TEXT(), number=TEXT(), total=NUMBER(default=0))
    with assert_requests(["BatchExecuteStatement"] * 2):
        line.objects.bulk_create(line(customer="jo", number=f"{n:02d}") for n in range(30))
    found = list(line.objects.filter(customer="jo"))
    for each in found:
        each.total = 7
    assert line.objects.bulk_update(found, ["total"]) == 30
    assert line.objects.filter(customer="jo", total=7).update(total=F("total") + 1) == 30
    assert {each.total for each in line.objects.filter(customer="jo")} == {8}
    assert line.objects.filter(customer="jo").delete()[0] == 30
    assert table.items() == []


def test_pynamodbs_api_reads_and_writes(note: Any, table: Foreign) -> None:
    note.objects.create(owner="o", number="1", title="t")
    note.objects.create(owner="o", number="2", title="u").delete()
    assert [each.number for each in note.query("M#o")] == ["1"]
    assert [each.number for each in note.query("M#o", note.sort_key.startswith("N#"), note.title == "t")] == ["1"]
    assert [each.number for each in note.scan(note.title.startswith("t") | note.title.startswith("x"))] == ["1"]
    assert note.count("M#o") == 1
    found = note.get("M#o", "N#1")
    found.title = "v"
    found.save(condition=note.title == "t")
    assert note.objects.get(owner="o", number="1").title == "v"
    assert [each.number for each in note.batch_get([("M#o", "N#1"), ("M#o", "N#2")])] == ["1"]


def test_pynamodbs_api_with_keys_of_numbers(attributes: Foreign) -> None:
    post = model(
        "Notice", ("{forum}", "{number}"), {"by_views": KEY("views", "{views}", "")}, forum=TEXT(), number=NUMBER(),
        views=NUMBER(),
    )  # fmt: skip
    post.objects.bulk_create(post(forum="f", number=n, views=n * 2) for n in range(3))
    assert [each.number for each in post.query("f")] == [0, 1, 2]
    assert [each.number for each in post.scan(post.views > 2)] == [2]
    assert [each.number for each in post.query("f", None, post.views == 2)] == [1]


def test_cursor_of_another_shape_is_refused(engine: Table) -> None:
    """A cursor contains keys of the table, and another shape may have others."""
    found: list[Any] = []
    for shape in (KINDS["typed"], KINDS["untyped"]):
        with foreign_table(**shape) as table, forgotten():
            line = model("Stripe", ("C#{customer}", "L#{number}"), customer=TEXT(), number=TEXT())
            for n in range(4):
                key = stored(PK="C#a b" if table.table.settings.shape.raw_keys else "C#a$_b", SK=f"L#{n}")
                table.put({**key, **stored(customer="a b", number=f"{n}", _type="Stripe")})
            lines = line.objects.filter(customer="a b")
            if found:
                with pytest.raises(InvalidCursor):
                    lines.page(size=2, cursor=found[0])
            found.append(lines.page(size=2).next_cursor)


def test_pending_write_of_an_attribute_that_is_a_key(attributes: Foreign) -> None:
    post = model(
        "Notice", ("{forum}", "{number}"), {"by_views": KEY("views", "{views}", "")}, forum=TEXT(), number=NUMBER(),
        views=NUMBER(),
    )  # fmt: skip
    assert messages(post) == []
    with transactions.atomic():
        post.objects.create(forum="f", number=1, views=1)
        post.objects.create(forum="f", number=2, views=2)
    with transactions.atomic():
        for each in post.objects.filter(forum="f"):
            each.views += 10
            each.save()
    assert [each.number for each in post.objects.filter(views=12)] == [2]
    post.objects.get(forum="f", number=1).move(number=5)
    assert [(item["number"], item["views"]) for item in attributes.items()] == [
        ({"N": "2"}, {"N": "12"}),
        ({"N": "5"}, {"N": "11"}),
    ]


def test_key_of_numbers_needs_no_items_of_the_app(engine: Table) -> None:
    """A table that cannot store the state is read without it, and set up like any other."""
    with foreign_table(**ATTRIBUTES, MIGRATIONS="check") as table, forgotten():
        post = model("Notice", ("{forum}", "{number}"), forum=TEXT(), number=NUMBER())
        post.objects.create(forum="f", number=1)
        call_command("dynamo_setup", alias=ALIAS, stdout=io.StringIO())
        assert [each.number for each in post.objects.filter(forum="f")] == [1]
        assert table.items() == [stored(forum="f", number=1)]
