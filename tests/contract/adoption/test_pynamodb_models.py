"""Models for the tables of PynamoDB classes: each program reads and writes the items of the other, in the same form."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pynamodb.attributes import MapAttribute as PynamoDBMap

from dynamo_single import models
from dynamo_single.exceptions import StaleObject
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests
from tests.contract.adoption import pynamodb_classes as theirs
from tests.contract.adoption.foreign import ALIAS, Foreign, foreign_table
from tests.unit.declaring import declare, forgotten

TEXT, NUMBER, KEY = models.UnicodeAttribute, models.NumberAttribute, models.IndexKey
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def moment(**options: Any) -> Any:
    return models.TimestampAttribute(stored_as="pynamodb", **options)


class Address(models.MapAttribute):
    street: Any = TEXT()
    number: Any = NUMBER(null=True)


class Employee(models.MapAttribute):
    name: Any = TEXT()
    office_address: Any = Address(attr_name="officeAddress", null=True)


def thread() -> dict[str, Any]:
    return {
        "forum_name": TEXT(),
        "subject": TEXT(),
        "views": NUMBER(default=0),
        "answered": models.BooleanAttribute(default=False),
        "tags": models.UnicodeSetAttribute(null=True),
        "last_post": moment(null=True),
    }


def user() -> dict[str, Any]:
    return {
        "email": TEXT(),
        "first_name": TEXT(null=True),
        "last_name": TEXT(null=True, attr_name="lastName"),
        "notes": models.JSONAttribute(null=True),
    }


def game() -> dict[str, Any]:
    points = models.NumberSetAttribute(null=True)
    return {"player_id": TEXT(), "created_time": moment(), "winner_id": TEXT(null=True), "points": points}


def office() -> dict[str, Any]:
    employees, free = models.ListAttribute(of=Employee), models.MapAttribute(null=True)
    return {"office_id": TEXT(), "address": Address(), "employees": employees, "free": free}


def statement() -> dict[str, Any]:
    return {
        "user_id": TEXT(),
        "number": NUMBER(),
        "balance": NUMBER(default=0),
        "is_active": models.BooleanAttribute(),
    }


def document() -> dict[str, Any]:
    expires, version = models.TTLAttribute(null=True), models.VersionAttribute()
    return {"document_id": TEXT(), "title": TEXT(), "expires": expires, "version": version}


def blob() -> dict[str, Any]:
    return {
        "digest": models.BinaryAttribute(),
        "content": models.BinaryAttribute(null=True),
        "old_content": models.BinaryAttribute(null=True, stored_as="base64"),
        "parts": models.BinarySetAttribute(null=True),
        "color": TEXT(null=True),
        "caption": TEXT(null=True, attr_name="label"),
    }


VIEWS = {"name": "by-views", "partition": "views:N"}
RECENT = {"name": "by-last-post", "partition": "forum_name", "sort": "last_post", "local": True}
#: The class of each PynamoDB class's model: the settings of its table, its keys and its attributes.
MODELS: dict[type[Any], tuple[dict[str, Any], tuple[str, ...], dict[str, Any], Callable[[], dict[str, Any]]]] = {
    theirs.Thread: (
        {"PARTITION_KEY": "forum_name", "SORT_KEY": "subject", "INDEXES": {"views": VIEWS, "recent": RECENT}},
        ("{forum_name}", "{subject}"),
        {"by_views": KEY("views", "{views}"), "by_last_post": KEY("recent", "{forum_name}", "{last_post}")},
        thread,
    ),
    theirs.User: ({"PARTITION_KEY": "email", "SORT_KEY": None}, ("{email}", ""), {}, user),
    theirs.Game: (
        {"PARTITION_KEY": "player_id", "SORT_KEY": "created_time"},
        ("{player_id}", "{created_time}"),
        {},
        game,
    ),
    theirs.Office: ({"PARTITION_KEY": "office_id", "SORT_KEY": None}, ("{office_id}", ""), {}, office),
    theirs.Statement: (
        {"PARTITION_KEY": "user_id", "SORT_KEY": "number:N"},
        ("{user_id}", "{number}"),
        {},
        statement,
    ),
    theirs.Document: (
        {"PARTITION_KEY": "document_id", "SORT_KEY": None, "TTL_ATTRIBUTE": "ttl"},
        ("{document_id}", ""),
        {},
        document,
    ),
    theirs.Blob: ({"PARTITION_KEY": "digest:B", "SORT_KEY": None}, ("{digest}", ""), {}, blob),
}


class Pair:
    """A PynamoDB class and our model of the same table."""

    def __init__(self, their: type[Any], our: Any, table: Foreign) -> None:
        self.their, self.our, self.table = their, our, table
        meta: Any = their.Meta
        meta.table_name = table.table.name
        theirs.connect(str(table.table.settings.endpoint_url))

    def values(self, obj: Any) -> dict[str, Any]:
        """The values of an object by our names, with plain documents."""
        names = [name for name in MODELS[self.their][3]() if name != "version"]
        return {name: plain(getattr(obj, name, None) if name != "caption" else label(obj)) for name in names}


def label(obj: Any) -> Any:
    """An attribute whose name is taken in the tests' modules."""
    return obj.caption if hasattr(obj, "caption") else obj.label


def plain(value: Any) -> Any:
    """A value without the classes of either library; the keys of maps are the stored ones."""
    if isinstance(value, PynamoDBMap):
        named = {each.attr_name: getattr(value, name) for name, each in value.get_attributes().items()}
        value = named or value.as_dict()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items() if each is not None}
    if isinstance(value, theirs.Color):
        return value.value
    return [*map(plain, value)] if isinstance(value, list) else value


def same(values: dict[str, Any]) -> str:
    """Return a string that is the same for equal values."""
    return json.dumps(comparable(values), sort_keys=True, default=str)


def comparable(value: Any) -> Any:
    if isinstance(value, set):
        return sorted(comparable(each) for each in value)
    if isinstance(value, dict):
        return {name: comparable(each) for name, each in value.items()}
    if isinstance(value, list):
        return [*map(comparable, value)]
    return float(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else value


def normal(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return items with normalized JSON strings and sets."""
    found = json.loads(json.dumps(items, default=lambda value: value.hex()))
    for item in found:
        if "notes" in item:
            item["notes"] = json.loads(item["notes"]["S"])
        for value in item.values():
            if isinstance(value, dict):
                value.update({kind: sorted(inner) for kind, inner in value.items() if kind in ("SS", "NS", "BS")})
    return sorted(found, key=lambda item: json.dumps(item, sort_keys=True))


@pytest.fixture(params=[*MODELS], ids=lambda each: each.__name__, scope="module")
def pair(request: Any, engine: Table) -> Iterator[Pair]:
    shape, key, keys, attributes = MODELS[request.param]
    with foreign_table(TYPE_ATTRIBUTE=None, RAW_KEYS=True, **shape) as table, forgotten():
        own = declare(request.param.__name__, (key[0], key[1]), keys, options={"table": ALIAS}, **attributes())
        yield Pair(request.param, own, table)


@pytest.fixture
def stored(pair: Pair) -> Pair:
    """Return the table with PynamoDB's saved objects."""
    for each in pair.their.scan():
        each.delete()
    for each in theirs.objects(pair.their):
        each.save()
    return pair


def test_what_pynamodb_wrote_is_read(stored: Pair) -> None:
    expected = [stored.values(each) for each in theirs.objects(stored.their)]
    found = [stored.values(each) for each in stored.our.objects.allow_scan()]
    listed = [stored.values(stored.our.objects.get(pk=each.pk)) for each in stored.our.objects.allow_scan()]
    assert sorted(map(same, found)) == sorted(map(same, expected))
    assert listed == found


def test_a_save_leaves_the_item_as_it_is(stored: Pair) -> None:
    before = stored.table.items()
    for each in stored.our.objects.allow_scan():
        with assert_requests(0):
            each.save()
    assert stored.table.items() == before


def test_both_store_the_same_items(stored: Pair) -> None:
    expected = stored.table.items()
    objects = theirs.objects(stored.their)
    for each in stored.our.objects.allow_scan():
        each.delete()
    assert stored.table.items() == []
    for each in objects:
        given = {name: value for name, value in stored.values(each).items() if value is not None}
        stored.our.objects.create(**given)
    assert normal(stored.table.items()) == normal(expected)


def test_pynamodb_reads_what_is_written(stored: Pair) -> None:
    before = sorted(same(stored.values(each)) for each in stored.their.scan())
    for each in stored.our.objects.allow_scan():
        each.delete()
    for each in theirs.objects(stored.their):
        given = {name: value for name, value in stored.values(each).items() if value is not None}
        stored.our.objects.create(**given)
    assert sorted(same(stored.values(each)) for each in stored.their.scan()) == before


# Queries by the keys of the classes.


def only(their: type[Any]) -> Any:
    return pytest.mark.parametrize("pair", [their], indirect=True)


@only(theirs.Thread)
def test_indexes_answer_queries(stored: Pair) -> None:
    with assert_requests(["Query"]):
        assert {each.subject for each in stored.our.objects.filter(views=1)} == {"How to #1?", "How to #4?"}
    recent = stored.our.objects.filter(forum_name="Forum 0", last_post__isnull=False).order_by("-last_post")
    with assert_requests(["Query"]):
        assert [each.subject for each in recent] == ["How to #4?", "How to #2?", "How to #0?"]
    since = stored.our.objects.filter(forum_name="Forum 1", last_post__gte=NOON + timedelta(days=2))
    with assert_requests(["Query"]):
        assert [each.subject for each in since.order_by("last_post")] == ["How to #3?", "How to #5?"]


@only(theirs.Game)
def test_a_datetime_is_a_sort_key(stored: Pair) -> None:
    games = stored.our.objects.filter(player_id="p0", created_time__gt=NOON + timedelta(hours=1))
    with assert_requests(["Query"]):
        assert [each.created_time.hour for each in games] == [14, 16]


@only(theirs.Statement)
def test_a_number_is_a_sort_key(stored: Pair) -> None:
    with assert_requests(["Query"]):
        found = [each.number for each in stored.our.objects.filter(user_id="u0", number__gte=0)]
    assert found == [3, 200]


@only(theirs.Office)
def test_typed_maps_have_attributes(stored: Pair) -> None:
    found = stored.our.objects.get(pk="o1")
    assert (found.address.street, found.employees[0].name) == ("Main #1", "Ada")
    assert found.employees[0].office_address.street == ""
    found.address.street = "Side"
    found.save()
    assert stored.their.get("o1").address.street == "Side"


@only(theirs.Document)
def test_versions_of_both_are_one(stored: Pair) -> None:
    ours, other = stored.our.objects.get(pk="d0"), stored.their.get("d0")
    other.title = "theirs"
    other.save()
    ours.title = "ours"
    with pytest.raises(StaleObject):
        ours.save()
    ours.refresh_from_db()
    ours.title = "ours"
    ours.save()
    assert (stored.their.get("d0").title, stored.their.get("d0").version) == ("ours", 3)


def test_a_discriminator_is_the_type(engine: Table) -> None:
    shape = {"PARTITION_KEY": "animal_id", "SORT_KEY": None, "TYPE_ATTRIBUTE": "cls", "RAW_KEYS": True}
    with foreign_table(**shape) as table, forgotten():
        options = {"table": ALIAS}
        cat = declare("Cat", ("{animal_id}", ""), {}, options=options, animal_id=TEXT(), lives=NUMBER())
        tricks = models.UnicodeSetAttribute(null=True)
        dog = declare("Dog", ("{animal_id}", ""), {}, options=options, animal_id=TEXT(), tricks=tricks)
        for each in (theirs.Animal, theirs.Cat, theirs.Dog):
            meta: Any = each.Meta
            meta.table_name = table.table.name
        theirs.connect(str(table.table.settings.endpoint_url))
        for animal in theirs.objects(theirs.Animal):
            animal.save()
        before = table.items()
        assert [(each.pk, each.lives) for each in cat.objects.allow_scan()] == [("a1", 9)]
        assert {each.pk: each.tricks for each in dog.objects.allow_scan()} == {"a2": {"sit"}, "a3": None}
        for each in (*cat.objects.allow_scan(), *dog.objects.allow_scan()):
            each.save()
        assert table.items() == before
        cat.objects.create(animal_id="a4", lives=7)
        found: Any = theirs.Animal.get("a4")
        assert (type(found), found.lives) == (theirs.Cat, 7)
