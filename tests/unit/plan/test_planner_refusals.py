"""Queries without a supporting key: the text of the error."""

from __future__ import annotations

import re
from typing import Any

import pytest

from dynamo_single.exceptions import NoAccessPattern
from dynamo_single.orm.plan.planner import plan
from tests.unit.factories import ACCOUNT, COMPANY, EVENT, ORDER_LINE, PERSON, Space, ask


def test_the_whole_message() -> None:
    """The message contains the query, the missing part of each key, and the alternatives."""
    with pytest.raises(NoAccessPattern) as caught:
        plan(ask(PERSON, {"name": "Mike"}))
    assert str(caught.value) == "\n".join(
        [
            "directory.Person: no key supports filter(name='Mike').",
            "  primary 'COMPANY#{company_id}' / 'PEOPLE#{person_id}': the query does not set company_id.",
            "  by_id (gs1) 'PERSON#{person_id}' / '#METADATA': the query does not set person_id.",
            "To fix this, do one of the following:",
            "  - filter by one of the keys above",
            "  - add a key to Person.Keys: by_name = "
            'models.IndexKey("gs2", "PERSON", "{name}#{company_id}#{person_id}")',
            "    To add stored items to it, run manage.py makemigrations and migrate in an app "
            "with migrations, or manage.py dynamo_rebuild directory.Person in another app",
            "  - call .allow_scan() to read, and pay for, every item of the table",
        ]
    )


REASONS = [
    (PERSON, {}, (), {}, "primary", "the query does not set company_id"),
    (PERSON, {"company_id__startswith": "1"}, (), {}, "primary", "the query filters company_id by 'startswith'"),
    (
        EVENT,
        {"stream__gt": "s"},
        (),
        {},
        "by_kind",
        "the query filters stream by 'gt'; its partition 'STREAM#{stream}'",
    ),
    (COMPANY, {}, ("stock",), {}, "by_name", "its order is name, company_id, not stock"),
    (COMPANY, {}, ("company_id",), {}, "by_name", "its order is name, company_id, not company_id"),
    (
        COMPANY,
        {},
        ("name", "-company_id"),
        {},
        "by_name",
        "a Query reads it in one direction, so it cannot order by name, -com",
    ),
    (PERSON, {"company_id": "1"}, ("name",), {}, "primary", "its order is person_id, not name"),
    (EVENT, {"city": "c"}, ("kind",), {}, "by_city", "the stored form of kind does not sort like its values"),
    (ORDER_LINE, {"order__in": ["1", "2"]}, ("note",), {}, "primary", "its order is line, not note"),
    (COMPANY, {}, (), {"consistent": True}, "by_name", "an index does not support consistent reads"),
    (COMPANY, {}, (), {"visibility": "all", "using_index": "by_name"}, "by_name", "it does not hold soft-deleted"),
    (COMPANY, {}, ("name",), {"without": ("by_name",)}, "by_name", "without_index() leaves it out"),
    (COMPANY, {"name": "A"}, (), {"visibility": "deleted", "using_index": "by_name"}, "by_name", "soft-deleted items"),
    (COMPANY, {}, (), {"using_index": "trash"}, "trash", "it does not hold live items"),
    (
        PERSON,
        {"company_id__in": [str(i) for i in range(10_001)]},
        (),
        {},
        "primary",
        "it would read 10001 partitions; the limit is 10000",
    ),
    (
        PERSON,
        {"company_id__in": [str(i) for i in range(101)], "person_id__in": [str(i) for i in range(100)]},
        (),
        {"using_index": "primary"},
        "primary",
        "it would read 10100 items individually; the limit is 10000",
    ),
    (COMPANY, {"name": ""}, (), {}, "by_name", "it does not contain items whose key has an empty part"),
    (
        COMPANY,
        {"company_id__in": ["1", "2"]},
        ("stock",),
        {"in_pages": True},
        "primary",
        "a page starts at the end of the previous page, so the app cannot sort results in memory",
    ),
    (PERSON, {"company_id": "1", "person_id__in": "12"}, ("data",), {}, "primary", "the values of data have no order"),
    (
        ACCOUNT,
        {"token__gt": "x", "email__contains": "A"},
        (),
        {"using_index": "primary"},
        "primary",
        "the query filters email by",
    ),
    (EVENT, {"stream": "s", "kind": "k", "score": 12345}, (), {"using_index": "gs2"}, "by_kind", "ends at 9999"),
]


@pytest.mark.parametrize(("layout", "where", "order", "options", "key", "reason"), REASONS)
def test_each_key_says_what_is_missing(
    layout: Any, where: Any, order: Any, options: Any, key: str, reason: str
) -> None:
    """The line of a key names its missing part."""
    with pytest.raises(NoAccessPattern) as caught:
        plan(ask(layout, where, order, **options))
    line = next(line for line in str(caught.value).splitlines() if line.startswith(f"  {key} "))
    assert reason in line


def test_an_index_that_may_lack_items_is_refused() -> None:
    """An index with an optional part does not contain all items, unless the query excludes those without it."""
    layout = Space().model("x.A", {"a": "text", "b": "text?"}, ("A#{a}", "M"), {"by_b": ("gs1", "ALL", "{b}#{a}")})
    with pytest.raises(
        NoAccessPattern, match="items without b are not in it, and the query does not exclude them; b__gt='' does"
    ):
        plan(ask(layout))
    for where in (
        {"b__lt": "x"},
        {"b__lte": "x"},
        {"b__startswith": ""},
        {"b__isnull": False},
        {"b__range": ("", "x")},
    ):
        with pytest.raises(NoAccessPattern, match="items without b"):
            plan(ask(layout, where))
    for where in ({"b": "x"}, {"b__gt": ""}, {"b__gte": "a"}, {"b__startswith": "x"}, {"b__contains": "x"}):
        assert plan(ask(layout, where)).kind == "query"


def test_an_index_of_numbers_needs_them_present_only() -> None:
    """A number has no empty value, so any comparison leaves out the items without one."""
    layout = Space().model("x.A", {"a": "text", "b": "number?"}, ("A#{a}", "M"), {"by_b": ("gs1", "ALL", "{b}")})
    for where in ({"b__lt": 5}, {"b__isnull": False}, {"b__range": (0, 5)}):
        assert plan(ask(layout, where)).kind == "query"
    with pytest.raises(NoAccessPattern, match="items without b"):
        plan(ask(layout, {"b__isnull": True}))


def test_canonical_comparison_needs_a_canonical_key() -> None:
    """Comparing canonical forms is no filter of DynamoDB's, with or without a scan."""
    with pytest.raises(NoAccessPattern, match="it does not contain the canonical form that the query compares"):
        plan(ask(COMPANY, {"name__canonical": "a"}))
    with pytest.raises(NoAccessPattern, match=r"compare exactly: the filter of the scan that allow_scan\(\) allows"):
        plan(ask(COMPANY, {"name__canonical": "a"}, allow_scan=True))


def test_a_scan_has_no_order() -> None:
    """Allowing a scan does not allow an order that nothing keeps."""
    with pytest.raises(NoAccessPattern, match=r"the scan that allow_scan\(\) allows has no order"):
        plan(ask(PERSON, {"name": "Mike"}, ["name"], allow_scan=True))
    with pytest.raises(NoAccessPattern, match=r"call .allow_scan\(\) and omit order_by\(\)"):
        plan(ask(PERSON, {"name": "Mike"}, ["name"]))


def test_an_unknown_key_is_named_with_the_known_ones() -> None:
    """The error for an unknown key lists the known ones."""
    with pytest.raises(NoAccessPattern, match=r"no key or index 'gs9'; it has primary, by_name \(gs1\), trash \(gs1\)"):
        plan(ask(COMPANY, using_index="gs9"))


def test_a_named_key_is_the_only_one_that_counts() -> None:
    """A named key without support raises an error, even if another key would work."""
    with pytest.raises(NoAccessPattern, match=r"omit using_index\('by_id'\)"):
        plan(ask(PERSON, {"company_id": "1"}, using_index="by_id", allow_scan=True))


PROPOSALS = [
    ({"name": "M"}, (), 'by_name = models.IndexKey("gs2", "PERSON", "{name}#{company_id}#{person_id}")'),
    ({"name__startswith": "M"}, (), 'by_name = models.IndexKey("gs2", "PERSON", "{name}#{company_id}#{person_id}")'),
    ({}, (), 'listing = models.IndexKey("gs2", "PERSON", "{company_id}#{person_id}")'),
    ({}, ("-name",), 'by_name = models.IndexKey("gs2", "PERSON", "{name}#{company_id}#{person_id}")'),
    (
        {"name": "M", "age__gt": 5},
        (),
        'by_name_and_age = models.IndexKey("gs2", "PERSON#{name}", "{age}#{company_id}#{person_id}")',
    ),
    (
        {"company_id": "1"},
        ("name",),
        'by_company_id_and_name = models.IndexKey("gs2", "PERSON#{company_id}", "{name}#{person_id}")',
    ),
    ({"email": "x"}, (), 'by_email = models.IndexKey("gs2", "PERSON", "{email}#{company_id}#{person_id}")'),
    (
        {"email__canonical": "X"},
        (),
        'by_email = models.IndexKey("gs2", "PERSON", "{email:canonical}#{company_id}#{person_id}")',
    ),
    (
        {"email__canonical": "X"},
        ("name",),
        'by_email_and_name = models.IndexKey("gs2", "PERSON#{email:canonical}", "{name}#{company_id}#{person_id}")',
    ),
    # The key keeps missing and empty values at the position that the order needs.
    ({}, ("email",), 'by_email = models.IndexKey("gs2", "PERSON", "{email:last}#{company_id}#{person_id}")'),
    ({}, ("-email",), 'by_email = models.IndexKey("gs2", "PERSON", "{email:last}#{company_id}#{person_id}")'),
    ({"email": ""}, (), 'by_email = models.IndexKey("gs2", "PERSON", "{email:first}#{company_id}#{person_id}")'),
    (
        {"email__isnull": True},
        (),
        'by_email = models.IndexKey("gs2", "PERSON", "{email:first}#{company_id}#{person_id}")',
    ),
    (
        {"email": ""},
        ("name",),
        'by_email_and_name = models.IndexKey("gs2", "PERSON#{email:first}", "{name}#{company_id}#{person_id}")',
    ),
]


@pytest.mark.parametrize(("where", "order", "proposal"), PROPOSALS)
def test_the_missing_key_is_spelled_out(where: Any, order: Any, proposal: str) -> None:
    """The error contains the line to add to the model."""
    with pytest.raises(NoAccessPattern) as caught:
        plan(ask(PERSON, where, order))
    assert f"add a key to Person.Keys: {proposal}" in str(caught.value)


@pytest.mark.parametrize(
    ("key", "order"),
    [
        (("gs2", "PERSON", "{email:canonical}#{company_id}#{person_id}"), ()),
        (("gs2", "PERSON#{email:canonical}", "{name}#{company_id}#{person_id}"), ("name",)),
    ],
)
def test_the_canonical_key_that_is_proposed_answers(key: tuple[str, str, str], order: tuple[str, ...]) -> None:
    """With the suggested key, one Query finds another spelling."""
    attributes = {"company_id": "text", "person_id": "text", "name": "text", "email": "text?"}
    primary = ("COMPANY#{company_id}", "PEOPLE#{person_id}")
    person = Space().model("directory.Person", attributes, primary, {"by_email": key})
    found = plan(ask(person, {"email__canonical": "X"}, order))
    assert (found.kind, found.key) == ("query", person.indexes[0])


@pytest.mark.parametrize(("where", "order", "proposal"), PROPOSALS)
def test_what_is_proposed_answers_by_one_query(where: Any, order: Any, proposal: str) -> None:
    """With the suggested line, the query uses the new key in its order."""
    index, partition, sort = re.findall(r'"([^"]*)"', proposal)
    attributes = {"company_id": "text", "person_id": "text", "name": "text", "email": "text?", "age": "number"}
    primary = ("COMPANY#{company_id}", "PEOPLE#{person_id}")
    person = Space().model("directory.Person", attributes, primary, {"added": (index, partition, sort)})
    found = plan(ask(person, where, order))
    assert (found.kind, found.key, len(found.conditions)) == ("query", person.indexes[0], 1)


def test_a_key_that_lacks_only_the_place_of_missing_values_is_named() -> None:
    """The existing index is suggested, because it can contain missing values."""
    layout = Space().model(
        "x.A", {"a": "text", "b": "number?"}, ("A#{a}", "M"), {"by_b": ("gs1", "ALL", "{b:08d}#{a}")}
    )
    with pytest.raises(NoAccessPattern, match=r"let by_b \(gs1\) also contain .* write \{b:08d:last\} in it"):
        plan(ask(layout, {}, ["b"]))
    with pytest.raises(NoAccessPattern) as caught:
        plan(ask(layout, {"b__lt": 5}, ["a"]))
    assert "also contain objects without a value" not in str(caught.value)


@pytest.mark.parametrize(
    ("where", "order", "options"),
    [
        ({}, ("name", "-age"), {}),
        ({"data": {"a": 1}}, (), {}),
        ({"name": "M"}, (), {"visibility": "all"}),
        ({"name": "M"}, (), {"consistent": True}),
    ],
)
def test_no_key_is_proposed_that_would_not_help(where: Any, order: Any, options: Any) -> None:
    """If no index can support the query, none is suggested."""
    with pytest.raises(NoAccessPattern) as caught:
        plan(ask(PERSON, where, order, **options))
    assert "IndexKey" not in str(caught.value)


def test_the_message_stays_readable() -> None:
    """A thousand values do not drown the rest of the message."""
    with pytest.raises(NoAccessPattern, match="… 1000 in all") as caught:
        plan(ask(PERSON, {"name__in": [str(number) for number in range(1000)]}))
    assert len(str(caught.value)) < 800
