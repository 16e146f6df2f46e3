"""Rows of ``values()`` and ``values_list()`` read only the attributes that they contain."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db.models.signals import post_init
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_single.exceptions import UnexpectedItem, UnknownField
from dynamo_single.orm.items import decode
from dynamo_single.table import Request, Table, get_table
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Office, Person
from tests.catalog.boards import Board, Note
from tests.catalog.models import Order, Sample
from tests.contract.model.test_round_trip import VALUES
from tests.contract.reading.test_only_defer import projection
from tests.other_names import typed

pytestmark = pytest.mark.usefixtures("people")


@pytest.fixture
def people(table: Table) -> None:
    """Two companies, one of them with two people."""
    Company.objects.create(company_id="c1", name="Acme", stock="ACM")
    Company.objects.create(company_id="c2", name="Beta")
    for name in ("Anna", "Mike"):
        Person.objects.create(company_id="c1", person_id=name.lower(), name=name)


C1 = Company.objects.filter(pk="c1")
MIKE = Person.objects.filter(person_id="mike")
ROWS: list[tuple[str, Callable[[], Any], Any, set[str]]] = [
    ("dicts", lambda: C1.values("name", "stock"), [{"name": "Acme", "stock": "ACM"}], {"name", "stock"}),
    ("tuples", lambda: C1.values_list("stock", "name"), [("ACM", "Acme")], {"name", "stock"}),
    ("values", lambda: Company.objects.values_list("stock", flat=True), ["ACM", None], {"stock"}),
    ("a pk", lambda: C1.values("pk", "name"), [{"pk": "c1", "name": "Acme"}], {"name"}),
    ("a joined pk", lambda: MIKE.values_list("pk", flat=True), ["c1~~mike"], set()),
    ("an identity", lambda: MIKE.values_list("identity", "pk"), [("c1~~mike", "c1~~mike")], set()),
    ("a reference", lambda: MIKE.values("company"), [{"company": "c1"}], set()),
    ("its attribute", lambda: MIKE.values("company_id", "role"), [{"company_id": "c1", "role": "member"}], {"role"}),
    ("one that no key has", lambda: MIKE.values_list("email"), [(None,)], {"email"}),
    ("a condition on another", lambda: C1.filter(stock="ACM").values_list("name", flat=True), ["Acme"], {"name"}),
]
ALWAYS = {"pk", "sk", "itemType", "company_id", "person_id", "deletedAt", "gs1pk", "gs1sk", "stock"}


def test_relation_returns_rows() -> None:
    """A manager of a reference knows the object that it began with, and rows do not hold it."""
    people, expected = Company(company_id="c1", name="Acme").person_set, ["Anna", "Mike"]
    with assert_requests(["Query"] * 4):
        assert list(people.values_list("name", flat=True)) == expected
        assert [name for (name,) in people.values_list("name")] == expected
        assert [row["name"] for row in people.values("name")] == expected
        assert [row.name for row in people.values_list("name", named=True)] == expected


@pytest.mark.parametrize(("query", "rows", "names"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_the_rows_hold_what_was_named(query: Any, rows: Any, names: set[str]) -> None:
    """A single request reads the named attributes, and the attributes that the read needs."""
    with assert_requests(1) as sent:
        assert list(query()) == rows
    assert names <= projection(sent[0]) <= names | ALWAYS


def test_without_names_there_is_every_attribute() -> None:
    """``values()`` reads the whole item, and has the attributes by the names of their stored form."""
    with assert_requests(["GetItem"]) as sent:
        (row,) = C1.values()
    company = C1.get()
    assert row == {name: getattr(company, name) for name in company.attribute_values}
    assert "ProjectionExpression" not in sent[0].params


def test_named_rows_are_djangos() -> None:
    """``named=True`` returns named tuples that can be pickled, with one class for the same names."""
    with assert_requests(["GetItem"]):
        (row,) = C1.values_list("pk", "name", named=True)
    assert (row.pk, row.name, tuple(row), row._fields) == ("c1", "Acme", ("c1", "Acme"), ("pk", "name"))
    (other,) = Company.objects.filter(pk="c2").values_list("pk", "name", named=True)
    assert type(other) is type(row)
    assert pickle.loads(pickle.dumps(row)) == row
    (every,) = C1.values_list(named=True)
    assert every._asdict() == C1.values().get()


def test_named_and_flat_exclude_each_other() -> None:
    """A row cannot be both, as in Django."""
    with pytest.raises(TypeError, match="'flat' and 'named' can't be used together"):
        C1.values_list("name", flat=True, named=True)


def test_rows_follow_what_was_asked_last() -> None:
    """``values()`` goes before an earlier ``only()``, and a later ``values()`` before an earlier one."""
    with assert_requests(["GetItem", "GetItem"]) as sent:
        assert C1.only("stock").values_list("name", flat=True).get() == "Acme"
        assert C1.values("stock").values("name").get() == {"name": "Acme"}
    assert projection(sent[0]) == projection(sent[1]) == {"pk", "sk", "itemType", "company_id", "name", "deletedAt"}


def test_rows_are_read_like_objects() -> None:
    """Slices, orders, ``first()``, ``count()``, ``in`` and iteration take the requests that objects take."""
    names = Company.objects.order_by("-name").values_list("name", flat=True)
    with assert_requests(["Query"]) as sent:
        assert list(names[:1]) == ["Beta"]
    assert sent[0].params["Limit"] == 1
    with assert_requests(["Query", "Query", "Query"]):
        assert names.first() == "Beta"
        assert names.count() == 2
        assert list(names.iterator()) == ["Beta", "Acme"]


def test_no_object_is_made() -> None:
    """Rows do not send signals of model instances, as in Django."""
    made = []

    def receive(instance: Any, **_: Any) -> None:
        made.append(instance)

    post_init.connect(receive, sender=Company)
    try:
        assert list(C1.values_list("name", flat=True)) == ["Acme"]
    finally:
        post_init.disconnect(receive, sender=Company)
    assert made == []


def test_a_later_attribute_has_its_default() -> None:
    """An item that is older than an attribute shows the attribute's default, as an object does."""
    Order.objects.create(customer="x", number=1)
    table = get_table()
    key = {"pk": {"S": "CUSTOMER#x"}, "sk": {"S": Order.objects.get(pk="x~~1").sort_key}}
    table.send(
        Request(
            "UpdateItem",
            {"Key": key, "UpdateExpression": "REMOVE #s", "ExpressionAttributeNames": {"#s": "status"}},
        )
    )
    assert Order.objects.values_list("status", "coupon").get(pk="x~~1") == ("open", None)


@typed
def test_a_foreign_item_is_told() -> None:
    """An item of another type with the model's key also raises an error for rows."""
    table = get_table()
    item = {"pk": {"S": "COMPANY#c9"}, "sk": {"S": "#METADATA"}, "itemType": {"S": "Other"}}
    table.send(Request("PutItem", {"Item": item}))
    with pytest.raises(UnexpectedItem, match="itemType 'Other'"):
        Company.objects.values("name").get(pk="c9")


def test_references_to_every_kind_of_key_are_values() -> None:
    """A reference is the other object's pk, or None."""
    Board.objects.create(board_id="b", name="B")
    Note.objects.create(note_id="n1", board_id="b")
    Note.objects.create(note_id="n2")
    rows = Note.objects.filter(pk__in=["n1", "n2"]).values_list("board", "board_id")
    assert list(rows) == [("b", "b"), (None, None)]


def test_unknown_names_are_refused() -> None:
    """An error before any request names the method and the valid attributes."""
    with assert_requests(0), pytest.raises(UnknownField, match="has no attribute 'nme'"):
        Company.objects.values_list("nme", named=True)


@given(values=st.fixed_dictionaries({}, optional=VALUES))
@settings(max_examples=40)
def test_rows_have_the_values_of_objects(values: dict[str, Any]) -> None:
    """For every type of attribute, read alone or with all others, a row holds what the object holds."""
    sample = Sample.objects.create(sample_id=str(uuid.uuid4()), **values)
    found = Sample.objects.get(pk=sample.pk)
    names = [name for name in found.attribute_values if name != "sample_id"]
    expected = {name: getattr(found, name) for name in names}
    asked = Sample.objects.filter(pk=sample.pk)
    assert asked.values(*names).get() == expected
    assert {name: asked.values_list(name, flat=True).get() for name in names[:3]} == {n: expected[n] for n in names[:3]}
    partial = asked.only(*names[1:]).get()
    assert {name: getattr(partial, name) for name in names} == expected
    assert decode.values_of(Sample, partial._stored) == found.attribute_values


def test_distinct_rows_of_references_may_have_documents() -> None:
    """Equal lists of maps are one row."""
    for key, day in (("1", "Monday"), ("2", "Monday"), ("3", "Friday")):
        hours = [{"day": day, "opens": "09:00:00", "closes": "17:00:00"}]
        Office.objects.create(company_id="c1", office_id=key, city="Ulm", hours=hours)
    rows = Office.objects.filter(company="c1").allow_in_memory().values_list("company__name", "hours").distinct()
    assert len(rows) == 2
