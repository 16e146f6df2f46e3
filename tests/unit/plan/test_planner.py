"""The key and the keys of a query, and its remaining filter."""

from __future__ import annotations

from datetime import date
from typing import Any
from uuid import UUID

import pytest

from dynamo_single.orm.conditions.terms import And, Compare, Not, Nothing, Or
from dynamo_single.orm.conditions.wording import condition_text
from dynamo_single.orm.plan.plan import KeyCondition
from dynamo_single.orm.plan.planner import plan
from tests.unit.factories import ACCOUNT, COMPANY, EVENT, ORDER_LINE, PERSON, ask, moment

ALIVE = "deleted_at__isnull=True"
TOKEN = UUID(int=7)

GETS = [
    (COMPANY, {"company_id": "1"}, ("COMPANY#1", "#METADATA"), ALIVE),
    (COMPANY, {"company_id__in": ["1"]}, ("COMPANY#1", "#METADATA"), ALIVE),
    (COMPANY, {"company_id": "a#b"}, ("COMPANY#a$sb", "#METADATA"), ALIVE),
    (COMPANY, {"company_id": "1", "name": "Acme"}, ("COMPANY#1", "#METADATA"), f"name='Acme', {ALIVE}"),
    (COMPANY, {"company_id": "1", "company_id__in": ["1", "2"]}, ("COMPANY#1", "#METADATA"), ALIVE),
    (COMPANY, {"company_id__in": ["1", "2"], "company_id__gt": "1"}, ("COMPANY#2", "#METADATA"), ALIVE),
    (PERSON, {"company_id": "1", "person_id": "9"}, ("COMPANY#1", "PEOPLE#9"), ALIVE),
    (EVENT, {"stream": "s", "number": 12}, ("EVENT#s", "p50112"), "everything"),
    (EVENT, {"stream": "s", "number": -1.0}, ("EVENT#s", "n4998~"), "everything"),
    (ORDER_LINE, {"order": "1", "line": "2"}, ("ORDER#1", "LINE#2#END"), "everything"),
    (ACCOUNT, {"email": "A@X"}, ("ACCOUNT#a@x", "#METADATA"), "email='A@X'"),
    (ACCOUNT, {"email__canonical": " A@X"}, ("ACCOUNT#a@x", "#METADATA"), "everything"),
    (PERSON, {"identity__in": ({"company_id": "1", "person_id": "9"},)}, ("COMPANY#1", "PEOPLE#9"), ALIVE),
]


@pytest.mark.parametrize(("layout", "where", "key", "left"), GETS)
def test_a_whole_primary_key_is_one_get(layout: Any, where: Any, key: tuple[str, str], left: str) -> None:
    """All values of the primary key give one GetItem, and the rest is checked afterwards."""
    if "identity__in" in where:
        where = And((Compare("identity", "in", where["identity__in"]),))
    found = plan(ask(layout, where))
    assert (found.kind, found.keys, found.key) == ("get", (key,), layout.primary)
    assert condition_text(found.filter) == left


BATCHES = [
    (COMPANY, {"company_id__in": ["1", "2", "1"]}, [("COMPANY#1", "#METADATA"), ("COMPANY#2", "#METADATA")]),
    (PERSON, {"company_id": "1", "person_id__in": ["8", "9"]}, [("COMPANY#1", "PEOPLE#8"), ("COMPANY#1", "PEOPLE#9")]),
    (
        PERSON,
        {"company_id__in": ["1", "2"], "person_id__in": ["8", "9"]},
        [("COMPANY#1", "PEOPLE#8"), ("COMPANY#1", "PEOPLE#9"), ("COMPANY#2", "PEOPLE#8"), ("COMPANY#2", "PEOPLE#9")],
    ),
    (
        PERSON,
        {"identity__in": ({"company_id": "1", "person_id": "9"}, {"company_id": "2", "person_id": "8"})},
        [("COMPANY#1", "PEOPLE#9"), ("COMPANY#2", "PEOPLE#8")],
    ),
    (EVENT, {"stream": "s", "number__in": [1, 1.0, 2]}, [("EVENT#s", "p5001"), ("EVENT#s", "p5002")]),
]


@pytest.mark.parametrize(("layout", "where", "keys"), BATCHES)
def test_several_whole_primary_keys_are_a_batch(layout: Any, where: Any, keys: list[tuple[str, str]]) -> None:
    """Lists of values give one batch of all their keys, each once, with nothing but visibility left to look at."""
    if "identity__in" in where:
        where = And((Compare("identity", "in", where["identity__in"]),))
    found = plan(ask(layout, where))
    assert (found.kind, list(found.keys)) == ("batch_get", keys)
    assert condition_text(found.filter) in (ALIVE, "everything")


JANUARY, FEBRUARY = moment("2024-01-01"), moment("2024-02-01")
QUERIES = [
    # Whole item collections, and other models' items kept out of them.
    (COMPANY, {}, "by_name", ("COMPANY",), "everything"),
    (COMPANY, {"stock": "A"}, "by_name", ("COMPANY",), "stock='A'"),
    (PERSON, {"company_id": "1"}, "primary", ("COMPANY#1", "begins_with", "PEOPLE#"), ALIVE),
    (ORDER_LINE, {"order": "1"}, "primary", ("ORDER#1",), "everything"),
    (PERSON, {"person_id": "9"}, "by_id", ("PERSON#9", "=", "#METADATA"), "everything"),
    (EVENT, {"kind": "k"}, "by_time", ("EVENTS#k",), "everything"),
    # Prefixes.
    (COMPANY, {"name__startswith": "Ac"}, "by_name", ("COMPANY", "begins_with", "Ac"), "everything"),
    (COMPANY, {"name__startswith": "A c#"}, "by_name", ("COMPANY", "begins_with", "A$_c$s"), "everything"),
    (COMPANY, {"name": "Acme"}, "by_name", ("COMPANY", "begins_with", "Acme#"), "everything"),
    (COMPANY, {"name__startswith": ""}, "by_name", ("COMPANY",), "name__startswith=''"),
    (
        PERSON,
        {"company_id": "1", "person_id__startswith": "9"},
        "primary",
        ("COMPANY#1", "begins_with", "PEOPLE#9"),
        ALIVE,
    ),
    (
        COMPANY,
        {"name__startswith": "A", "name__gt": "Ab"},
        "by_name",
        ("COMPANY", "begins_with", "A"),
        "name__gt='Ab'",
    ),
    (COMPANY, {"name__contains": "c"}, "by_name", ("COMPANY",), "name__contains='c'"),
    # Ranges of a part in front of others.
    (COMPANY, {"name__gte": "B"}, "by_name", ("COMPANY", ">=", "B"), "everything"),
    (COMPANY, {"name__gt": "B"}, "by_name", ("COMPANY", ">=", "B$"), "everything"),
    (COMPANY, {"name__lte": "B"}, "by_name", ("COMPANY", "<=", "B$"), "everything"),
    (COMPANY, {"name__lt": "B"}, "by_name", ("COMPANY", "<=", "B"), "everything"),
    (COMPANY, {"name__range": ("B", "C")}, "by_name", ("COMPANY", "between", "B", "C$"), "everything"),
    (COMPANY, {"name__gt": "B", "name__lte": "C"}, "by_name", ("COMPANY", "between", "B$", "C$"), "everything"),
    (COMPANY, {"name__gte": "A", "name__gt": "B"}, "by_name", ("COMPANY", ">=", "B$"), "everything"),
    # Ranges of the last part.
    (EVENT, {"stream": "s", "number__gte": 5}, "primary", ("EVENT#s", ">=", "p5005"), "everything"),
    (EVENT, {"stream": "s", "number__gt": 5}, "primary", ("EVENT#s", ">=", "p5005$"), "everything"),
    (EVENT, {"stream": "s", "number__lte": 5}, "primary", ("EVENT#s", "<=", "p5005"), "everything"),
    (EVENT, {"stream": "s", "number__lt": 5}, "primary", ("EVENT#s", "<", "p5005"), "everything"),
    (
        EVENT,
        {"stream": "s", "number__gte": 1, "number__lt": 5},
        "primary",
        ("EVENT#s", "between", "p5001", "p5005"),
        "number__lt=5",
    ),
    (
        EVENT,
        {"stream": "s", "number__range": (-5, 5)},
        "primary",
        ("EVENT#s", "between", "n4994~", "p5005"),
        "everything",
    ),
    # Ranges after a literal.
    (
        EVENT,
        {"kind": "k", "at__gte": JANUARY},
        "by_time",
        ("EVENTS#k", "between", "AT#2024-01-01T00:00:00.000Z", "AT$"),
        "everything",
    ),
    (
        EVENT,
        {"kind": "k", "at__lt": FEBRUARY},
        "by_time",
        ("EVENTS#k", "between", "AT#", "AT#2024-02-01T00:00:00.000Z"),
        "everything",
    ),
    (
        EVENT,
        {"kind": "k", "at": JANUARY, "number__gt": 5},
        "by_time",
        ("EVENTS#k", "between", "AT#2024-01-01T00:00:00.000Z#p5005$", "AT#2024-01-01T00:00:00.000Z$"),
        "everything",
    ),
    (EVENT, {"kind": "k", "number__gt": 5}, "by_time", ("EVENTS#k",), "number__gt=5"),
    # Parts given by a list, by a format, in front of another separator.
    (COMPANY, {"name__in": ["A", "B"]}, "by_name", ("COMPANY",), "name__in=('A', 'B')"),
    (EVENT, {"stream": "s", "kind": "k"}, "by_kind", ("STREAM#s", "begins_with", "k#"), "everything"),
    (EVENT, {"stream": "s", "kind": "k", "score": 7}, "by_kind", ("STREAM#s", "=", "k#0007"), "everything"),
    (
        EVENT,
        {"stream": "s", "kind": "k", "score__lt": 7},
        "by_kind",
        ("STREAM#s", "between", "k#", "k#0007"),
        "score__lt=7",
    ),
    (
        EVENT,
        {"stream": "s", "kind": "k", "score__lt": 10**9},
        "by_kind",
        ("STREAM#s", "begins_with", "k#"),
        "score__lt=1000000000",
    ),
    (EVENT, {"city": "c"}, "by_city", ("CITY#c",), "everything"),
    (EVENT, {"city": "c", "kind__gt": "k"}, "by_city", ("CITY#c",), "kind__gt='k'"),
    (EVENT, {"city": "c", "kind__startswith": "k_"}, "by_city", ("CITY#c", "begins_with", "k$u00005f"), "everything"),
    (EVENT, {"city": "c", "kind": "k", "score": 7}, "by_city", ("CITY#c", "=", "k_0007"), "everything"),
    (ACCOUNT, {"token": TOKEN}, "by_token", ("TOKEN", "begins_with", f"{TOKEN}#"), "everything"),
    (
        ACCOUNT,
        {"token": TOKEN, "joined__gte": date(2024, 1, 1)},
        "by_token",
        ("TOKEN", "between", f"{TOKEN}#2024-01-01", f"{TOKEN}$"),
        "everything",
    ),
    # Lookups that never narrow a key.
    (COMPANY, Not(Compare("name", "exact", "A")), "by_name", ("COMPANY",), "not (name='A')"),
    (
        COMPANY,
        Or((Compare("name", "exact", "A"), Compare("stock", "exact", "B"))),
        "by_name",
        ("COMPANY",),
        "(name='A' | stock='B')",
    ),
    (
        PERSON,
        {"company_id": "1", "data__price__gt": 5},
        "primary",
        ("COMPANY#1", "begins_with", "PEOPLE#"),
        f"data__price__gt=5, {ALIVE}",
    ),
]


@pytest.mark.parametrize(("layout", "where", "key", "condition", "left"), QUERIES)
def test_one_query(layout: Any, where: Any, key: str, condition: tuple[str, ...], left: str) -> None:
    """The query has a partition, the given part of the sort key, and a filter."""
    found = plan(ask(layout, where))
    partition, operator, operands = condition[0], "".join(condition[1:2]), condition[2:]
    assert found.key is not None
    assert (found.kind, found.key.name) == ("query", key)
    assert found.conditions == (KeyCondition(partition, operator, operands),)  # type: ignore[arg-type]  # from a table
    assert condition_text(found.filter) == left


NOTHING = [
    (COMPANY, Nothing()),
    (COMPANY, Not(And())),
    (COMPANY, {"company_id__in": []}),
    (COMPANY, {"stock__in": ()}),
    (COMPANY, And((Compare("name", "exact", "A"), Compare("name", "exact", "B")))),
    (COMPANY, {"name": "A", "name__startswith": "B"}),
    (COMPANY, {"name": "A", "name__isnull": True}),
    (COMPANY, {"company_id": ""}),
    (COMPANY, {"company_id": "x" * 2048}),
    (PERSON, {"company_id": "1", "person_id": "x" * 1024}),
    (COMPANY, {"name__gt": "B", "name__lt": "A"}),
    (COMPANY, {"name__range": ("B", "A")}),
    (COMPANY, {"name__lt": ""}),
    (EVENT, {"stream": "s", "number__gte": 2, "number__lte": 1}),
    (COMPANY, And((Compare("identity", "in", ()),))),
    (
        PERSON,
        And((Compare("identity", "in", ({"company_id": "1", "person_id": "9"},)), Compare("company_id", "exact", "2"))),
    ),
]


@pytest.mark.parametrize(("layout", "where"), NOTHING)
def test_what_no_item_can_meet_sends_nothing(layout: Any, where: Any) -> None:
    """Contradictions, empty lists and keys that cannot exist need no request."""
    assert plan(ask(layout, where)).kind == "empty"


def test_several_partitions() -> None:
    """A list of values of the partition gives one condition for each."""
    found = plan(ask(PERSON, {"company_id__in": ["1", "2"], "name": "M"}))
    assert found.conditions == (
        KeyCondition("COMPANY#1", "begins_with", ("PEOPLE#",)),
        KeyCondition("COMPANY#2", "begins_with", ("PEOPLE#",)),
    )
    assert condition_text(found.filter) == f"name='M', {ALIVE}"


def test_identities_on_another_key_become_a_filter() -> None:
    """Without the primary key, several identities are compared one by one."""
    identities = ({"company_id": "1", "person_id": "9"}, {"company_id": "2", "person_id": "9"})
    found = plan(ask(PERSON, And((Compare("identity", "in", identities),)), using_index="by_id"))
    assert found.conditions == (KeyCondition("PERSON#9", "=", ("#METADATA",)),)
    assert "identity__in" in condition_text(found.filter)
