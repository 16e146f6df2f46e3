"""Plans with several keys, sequential or merged."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_single.exceptions import NoAccessPattern
from dynamo_single.orm.conditions.terms import EVERYTHING, And, Compare, Not, Or, Stored
from dynamo_single.orm.plan.plan import Plan
from dynamo_single.orm.plan.planner import plan
from tests.unit.factories import COMPANY, EVENT, PERSON, ask

NAMED = Compare("name", "exact", "A")
FIRST = Compare("company_id", "exact", "1")


def shape(found: Plan) -> list[tuple[str, str]]:
    """The kind and the key of each part."""
    return [(part.kind, part.key.name if part.key else "") for part in found.parts]


UNIONS = [
    (COMPANY, Or((FIRST, NAMED)), (), "live", [("get", "primary"), ("query", "by_name")]),
    (
        COMPANY,
        Or((NAMED, Compare("name", "startswith", "B"))),
        ("name",),
        "live",
        [("query", "by_name"), ("query", "by_name")],
    ),
    (COMPANY, Or((NAMED, Compare("stock", "exact", "X"))), (), "live", None),
    (
        COMPANY,
        Or((FIRST, And((NAMED, Compare("stock", "exact", "X"))))),
        (),
        "live",
        [("get", "primary"), ("query", "by_name")],
    ),
    (COMPANY, NAMED, (), "all", [("query", "by_name"), ("query", "trash")]),
    (
        COMPANY,
        Or((FIRST, NAMED)),
        (),
        "all",
        [("get", "primary"), ("query", "by_name"), ("query", "trash")],
    ),
    (
        PERSON,
        Or((Compare("company_id", "exact", "1"), Compare("person_id", "exact", "9"))),
        (),
        "live",
        [("query", "primary"), ("query", "by_id")],
    ),
    (
        PERSON,
        Or((Compare("company_id", "exact", "1"), Compare("person_id", "in", ("8", "9")))),
        ("person_id",),
        "live",
        [("query", "primary"), ("query", "by_id")],
    ),
    (
        EVENT,
        Or((Compare("city", "exact", "c"), And((Compare("stream", "exact", "s"), Compare("number", "gt", 1))))),
        (),
        "live",
        [("query", "by_city"), ("query", "primary")],
    ),
]


@pytest.mark.parametrize(("layout", "where", "order", "visibility", "parts"), UNIONS)
def test_alternatives_are_read_by_a_key_each(
    layout: Any, where: Any, order: Any, visibility: Any, parts: list[tuple[str, str]] | None
) -> None:
    """A query without a single key is split at its ``|``, or into live and deleted; each part has its own key."""
    found = plan(ask(layout, where, order, visibility=visibility))
    if parts is None:
        assert found.kind == "query"
    else:
        assert (found.kind, shape(found)) == ("union", parts)


MEMBERSHIPS = [
    (COMPANY, Or((FIRST, Compare("company_id", "in", ("2", "3")))), "batch_get", 3),
    (
        PERSON,
        Or(
            tuple(
                And((Compare("company_id", "exact", company), Compare("person_id", "exact", "9"))) for company in "123"
            )
        ),
        "batch_get",
        3,
    ),
    (PERSON, Or((Compare("company_id", "exact", "1"), Compare("company_id", "exact", "2"))), "query", 2),
]


@pytest.mark.parametrize(("layout", "where", "kind", "count"), MEMBERSHIPS)
def test_equalities_of_one_attribute_are_a_membership(layout: Any, where: Any, kind: str, count: int) -> None:
    """``a = 1 | a = 2`` is planned as ``a in (1, 2)``, and complete identities too."""
    found = plan(ask(layout, where))
    assert (found.kind, len(found.keys) or len(found.conditions)) == (kind, count)


def test_two_alternations_are_taken_apart_one_after_the_other() -> None:
    """A part with a filter is split again if that narrows its read."""
    where = And(
        (
            Or((Compare("stream", "exact", "s"), Compare("city", "exact", "c"))),
            Or((Compare("kind", "exact", "k"), Compare("number", "exact", 1))),
        )
    )
    found = plan(ask(EVENT, where))
    assert shape(found) == [("query", "by_kind"), ("get", "primary"), ("query", "by_city")]


def test_one_alternative_without_a_key_refuses_the_whole() -> None:
    """If one side of ``|`` has no key, the whole query has none."""
    with pytest.raises(NoAccessPattern, match=r"no key supports filter\(\(company_id='1' \| name='A'\)\)"):
        plan(ask(PERSON, Or((FIRST, NAMED))))


def test_impossible_alternatives_send_nothing() -> None:
    """An alternative that no item can meet is no part of the plan."""
    found = plan(ask(COMPANY, Or((NAMED, And((FIRST, Compare("company_id", "exact", "2")))))))
    assert shape(found) == [("query", "by_name")]


def test_a_part_leaves_out_what_an_earlier_one_gives() -> None:
    """Each part knows the conditions of the parts before it, deleted objects left out of the live ones."""
    found = plan(ask(COMPANY, Or((FIRST, NAMED))))
    live = Or((Stored("deletedAt", "missing"), Stored("deletedAt", "=", ({"NULL": True},))))
    assert found.parts[0].exclusions == ()
    assert found.parts[1].exclusions == (And((Stored("companyId", "=", ({"S": "1"},)), live)),)


def test_an_order_that_an_item_may_lack_is_not_merged() -> None:
    """A merge compares values, so an optional attribute raises an error."""
    with pytest.raises(NoAccessPattern):
        plan(ask(COMPANY, Or((FIRST, Compare("company_id", "exact", "2"), NAMED)), ("stock",)))


def test_backwards_turns_every_part_but_not_what_it_leaves_out() -> None:
    """A union without an order is read backwards part by part, and each item comes from the same part."""
    found = plan(ask(COMPANY, Or((FIRST, NAMED))))
    turned = found.backwards()
    assert shape(turned) == shape(found)[::-1]
    assert [part.exclusions for part in turned.parts] == [part.exclusions for part in found.parts[::-1]]
    assert [part.forward for part in turned.parts] == [False, False]


def test_a_negated_alternation_stays_a_filter() -> None:
    """``not (a | b)`` has no parts of its own."""
    found = plan(ask(COMPANY, Not(Or((NAMED, Compare("stock", "exact", "X"))))))
    assert (found.kind, found.filter == EVERYTHING) == ("query", False)
