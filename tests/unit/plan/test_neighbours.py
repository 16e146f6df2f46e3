"""Decisions about a key's neighbors for all values match the characters of each value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cache, partial
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from dynamo_single import models
from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.conditions.terms import And, Compare, Condition
from dynamo_single.orm.plan.candidates import Candidate, evaluate_key
from dynamo_single.orm.plan.choice import can_contain_others, is_shared
from dynamo_single.orm.plan.constraints import constraints_of
from dynamo_single.orm.plan.neighbours import KEY, PARTITION, KeyRange, Shape, Sharing, find_neighbours, neighbours
from dynamo_single.orm.plan.ordering import UnsuitableKey
from dynamo_single.orm.plan.plan import KeyCondition, Query
from dynamo_single.orm.plan.planner import plan
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.keys.template import Template
from dynamo_single.orm.schema.layout import AccessKey, ModelLayout
from project.directory.models import Company, Person
from tests.deep import examples
from tests.unit.declaring import declare, forgotten
from tests.unit.factories import Space, ask, in_tens
from tests.unit.plan import character_by_character as oracle

#: Strings similar to the literals below, so that decisions depend on values.
texts = st.sampled_from(["A", "A", "x", "X", "A_x", "QUE", "UNIQUE", "A#", "p5001", ""]) | st.text("A#_ x$", max_size=3)
numbers = st.sampled_from([0, 1, 12, 1234, Decimal("-1.5")])
moments = st.sampled_from([datetime(2024, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, 1, 1, 1, tzinfo=UTC)])
VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "text": texts,
    "number": numbers,
    "boolean": st.booleans(),
    "date": st.sampled_from([date(2024, 1, 1), date(1999, 12, 31)]),
    "time": st.sampled_from([time(9, 30), time(23, 59, 59, 999999)]),
    "timestamp": moments,
    "duration": st.sampled_from([timedelta(0), timedelta(hours=-1.5), timedelta(days=12, microseconds=34)]),
    "uuid": st.sampled_from([UUID(int=0), UUID(int=2**128 - 1)]),
    "label": st.sampled_from(["catalog.mineral", "catalog.emblem"]),  # of content types, which only real models have
}


#: The constraint of a query on an attribute. Strategies created for each draw would be validated for each.
OPERATORS = ("exact", "exact", "exact", "in", "lt", "lte", "gt", "gte", "range", "range", "")
operators, operators_of_text = st.sampled_from(OPERATORS), st.sampled_from((*OPERATORS, "startswith"))
LISTS = {kind: st.lists(values, min_size=1, max_size=3) for kind, values in VALUES.items()}

#: Templates of partitions; most make some of the keys of most others.
PARTITIONS = ["A", "A", "{p}", "{p}", "A#{p}", "{p}#{q}", "{p}_{q}", "A_{q}", "UNIQUE#{p}", "UNI{p}#{q}", "{p}#A"]


#: The parts of a template of a sort key: how it begins, how many values it has, what follows each, and how it ends.
beginnings = st.sampled_from(["", "", "A#", "A", "A_", "#", "#X#", "x#"])
placeholders = st.sampled_from([0, 1, 1, 2, 2])
separators = st.sampled_from(["#", "#", "_", " ", "#X#", "_A#"])
endings = st.sampled_from(["", "A", "x"])


@st.composite
def templates(draw: st.DrawFn) -> str:
    """Draw the source of the template of a sort key."""
    source = draw(beginnings)
    for name in ("a", "b")[: draw(placeholders)]:
        source += f"{{{name}}}" + draw(separators)
    source += draw(endings)
    if draw(st.booleans()) and source.endswith(("#", "_", " ")):
        source = source.rstrip("#_ ")
    return source or "{a}"


partitions = st.sampled_from(PARTITIONS)
sort_keys = templates()
kinds_of_values = st.sampled_from(["text", "text", "text", "text", *(kind for kind in VALUES if kind != "label")])


@st.composite
def spaces(draw: st.DrawFn) -> tuple[ModelLayout, ...]:
    """Draw the models of a table, of which many keys can meet."""
    space = Space()
    kinds = {name: draw(kinds_of_values) for name in "pqab"}
    for number in range(draw(st.integers(1, 3))):
        pairs = [(draw(partitions), draw(sort_keys)) for _ in range(4)]
        indexes = {f"key{place}": ("gs1", *pair) for place, pair in enumerate(pairs[1:3])}
        trash = ("gs1", *pairs[3]) if draw(st.booleans()) else None
        space.model(f"x.M{number}", kinds, pairs[0], indexes, trash=trash)
    return tuple(space.layouts)


@st.composite
def comparisons(draw: st.DrawFn, name: str, kind: str) -> Compare | None:
    """Draw the constraint of a query on one attribute."""
    operator = draw(operators_of_text if kind == "text" else operators)
    values = VALUES[kind]
    if operator == "in":
        return Compare(name, operator, tuple(draw(LISTS[kind])))
    if operator == "range":
        return Compare(name, operator, (draw(values), draw(values)))
    return Compare(name, operator, draw(values)) if operator else None


asked_of = cache(comparisons)


@cache
def whole_or_asked_of(name: str, kind: str) -> st.SearchStrategy[Compare | None]:
    """Draw a value of an attribute, or any constraint on it."""
    return VALUES[kind].map(partial(Compare, name, "exact")) | comparisons(name, kind)


def readings(candidate: Candidate) -> Iterator[KeyRange]:
    """The ranges that a candidate reads."""
    yield from candidate.ranges
    for partition, sort in candidate.keys:
        yield KeyRange(KeyCondition(partition, "=", (sort,)), sort, KEY)


def candidates(layout: ModelLayout, key: AccessKey, where: Condition) -> Iterator[Candidate]:
    """Return the ways in which a key supports a query, and compare shared partitions."""

    def shares(key: AccessKey, reading: KeyRange) -> bool:
        expected = oracle.is_shared(layout, key, reading.condition, reading.prefix)
        assert is_shared(layout, key, reading) == expected, (key, reading)
        return expected

    constraints = constraints_of(where, layout)
    if constraints is not None:
        with suppress(UnsuitableKey):
            yield evaluate_key(key, Query(layout, where), constraints, shares)


SPACES = spaces()


def compare_decisions(layout: ModelLayout, where: Condition) -> None:
    """Every key of a model decides of a query's ranges as the characters do."""
    for key in (layout.primary, *layout.index_keys):
        for candidate in candidates(layout, key, where):
            if candidate.kind == "empty":
                continue
            found, ranges = neighbours(layout, key), tuple(readings(candidate))
            foreign = [oracle.is_foreign(layout, key, each.condition, each.prefix) for each in ranges]
            opposite = [oracle.holds_opposite(layout, key, each.condition, each.prefix) for each in ranges]
            assert can_contain_others(found.foreign, candidate) == any(foreign), candidate
            assert can_contain_others(found.opposite, candidate) == any(opposite), candidate
            for each, expected in zip(ranges, foreign, strict=True):
                assert found.foreign[each.shape].applies((each,)) == expected, each


@settings(max_examples=examples(12, 600))
@given(st.data())
def test_decisions_are_those_of_the_characters(data: st.DataObject) -> None:
    """For any templates and values, the rule calls a range shared exactly if its characters do."""
    for layout in data.draw(SPACES):
        kinds = {name: info.type for name, info in layout.attributes.items() if name in "pqab"}
        drawn = [data.draw(asked_of(name, _kind(layout, name))) for name in kinds]
        compare_decisions(layout, And(tuple(each for each in drawn if each is not None)))


def _kind(layout: ModelLayout, name: str) -> str:
    for key in (layout.primary, *layout.index_keys):
        for part in (*key.partition.parts, *key.sort.parts):
            if part.name == name and part.codec is not None:
                return part.codec.kind
    return "text"


@pytest.mark.parametrize("group", in_tens(registry.all_models()), ids=lambda group: group[0]._meta.label)
@settings(max_examples=examples(2, 15))
@given(data=st.data())
def test_real_models_decide_as_their_characters(group: Sequence[Any], data: st.DataObject) -> None:
    """This also applies to every declared model among all models of its table."""
    for model in group:
        layout = registry.layout_of(model)
        note(layout.label)
        keys = (layout.primary, *layout.index_keys)
        kinds = {part.name: part.bound.kind for key in keys for part in (*key.partition.parts, *key.sort.parts)}
        drawn = [data.draw(whole_or_asked_of(name, kind)) for name, kind in kinds.items()]
        with suppress(InvalidValue):
            compare_decisions(layout, And(tuple(each for each in drawn if each is not None)))


@settings(max_examples=examples(25, 400))
@given(sort_keys | partitions, sort_keys | partitions, texts)
def test_templates_read_as_their_characters(first: str, second: str, text: str) -> None:
    """Following the characters decides which strings a template creates, and whether two templates can agree."""
    one, other = Template.parse(first), Template.parse(second)
    assert one.could_equal(other) == oracle.could_equal(one, other)
    for each in (text, f"A#{text}", f"A_{text}x", f"{text}#A", one.head, one.head + text, other.head + text):
        assert one.matches(each) == oracle.makes(one, each)
        assert one.could_start_with(each) == oracle.makes_beginning(one, each)


SHELF = Space()
BOOK = SHELF.model(
    "x.Book",
    {"shelf": "text", "kind": "text", "name": "text"},
    ("SHELF#{shelf}", "BOOK#{name}"),
    {"by_kind": ("gs1", "{kind}#ALL", "{kind}_{name}")},
)
SHELF.model(
    "x.Loan",
    {"shelf": "text", "loan": "text", "kind": "text"},
    ("SHELF#{shelf}", "BOOK#{loan}"),
    {"by_kind": ("gs1", "NOVEL#ALL", "LENT_{loan}")},
)


@pytest.mark.parametrize(
    ("key", "shape", "always", "depends"),
    [
        (BOOK.primary, KEY, True, []),
        (BOOK.primary, PARTITION, True, []),
        (BOOK.primary, Shape("prefix", 0), True, []),
        (BOOK.indexes[0], PARTITION, False, ["by_kind"]),
        (BOOK.indexes[0], KEY, False, ["by_kind"]),
        (BOOK.indexes[0], Shape("start", 0), False, ["by_kind"]),
        (BOOK.indexes[0], Shape("above", 1), False, ["by_kind"]),
    ],
)
def test_what_is_decided_without_values(key: AccessKey, shape: Shape, always: bool, depends: list[str]) -> None:
    """A neighbor shares every range of a shape, none, or those with certain values."""
    found = neighbours(BOOK, key).foreign[shape]
    assert (found.is_always, [other.name for other in found.dependent_keys]) == (always, depends)


def test_values_decide_where_they_must() -> None:
    """In one shape, a range with the neighbor's values is shared, and another one is not."""
    by_kind = BOOK.indexes[0]
    sharing = neighbours(BOOK, by_kind).foreign[KEY]
    shared, other = (
        KeyRange(KeyCondition(f"{kind}#ALL", "=", (sort,)), sort, KEY)
        for kind, sort in (("NOVEL", "LENT_1"), ("NOVEL", "READ_1"))
    )
    assert sharing.applies([other, shared])
    assert not sharing.applies([other])


def test_a_whole_key_of_the_demo_is_nobody_elses() -> None:
    """The key of a company does not depend on values, although its people are in the same partition."""
    layout = registry.layout_of(Company)
    assert neighbours(layout, layout.primary).foreign[KEY] == Sharing()
    assert neighbours(layout, layout.primary).foreign[PARTITION].is_always


def test_models_that_come_and_go_are_noticed() -> None:
    """A later model shares partitions only in its own table."""
    layout = registry.layout_of(Person)
    people = ask(layout, {"company_id": "1"})
    before = plan(people)
    with forgotten():
        declare("Elsewhere", ("COMPANY#{a}", "PEOPLE#{b}"), options={"table": "kinds"}, **_ab())
        assert plan(people) == before
        declare("Passerby", ("COMPANY#{a}", "PEOPLE#{b}"), **_ab())
        assert plan(people) != before
    assert plan(people) == before


def _ab() -> dict[str, Any]:
    return {"a": models.UnicodeAttribute(), "b": models.UnicodeAttribute()}


def test_many_threads_decide_alike() -> None:
    """The first queries of a process may come at the same time."""
    find_neighbours.cache_clear()
    layouts = [registry.layout_of(model) for model in registry.all_models()]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda layout: neighbours(layout, layout.primary), layouts * 8))
    assert found == [neighbours(layout, layout.primary) for layout in layouts] * 8
