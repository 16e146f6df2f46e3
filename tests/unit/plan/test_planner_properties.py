"""Plans on items in memory return exactly the matching items, in the order of the query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_single.exceptions import EmptyKeyPart, NoAccessPattern
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import And, Compare, Condition, Not, Or
from dynamo_single.orm.plan.plan import KeyCondition, Plan, Query
from dynamo_single.orm.plan.planner import plan
from dynamo_single.orm.schema.layout import ModelLayout
from tests.deep import examples
from tests.unit.factories import Space, ask, moment, orders

SPACE = Space()
FILE = SPACE.model(
    "x.File",
    {"folder": "text", "name": "text", "size": "number", "tag": "text?", "at": "timestamp"},
    ("FOLDER#{folder}", "FILE#{name}#{size}"),
    {
        "by_size": ("gs1", "FILES", "{size}"),
        "by_name": ("gs2", "FILES#{folder}", "{name}#{at}"),
        "by_tag": ("gs3", "TAG#{tag}", "A_{name}-{size}"),
        "by_label": ("gs4", "TAGGED", "{tag}#{size}"),
    },
    trash=("gs1", "FILES", "{deleted_at}#{name}"),
)
NOTE = SPACE.model(
    "x.Note",
    {"folder": "text", "name": "text"},
    ("FOLDER#{folder}", "FILE#{name}"),
    {"by_name": ("gs2", "FILES#{folder}", "{name}")},
)
OPERATORS = {
    "<": lambda key, operands: key < operands[0],
    "<=": lambda key, operands: key <= operands[0],
    ">": lambda key, operands: key > operands[0],
    ">=": lambda key, operands: key >= operands[0],
    "=": lambda key, operands: key == operands[0],
    "between": lambda key, operands: operands[0] <= key <= operands[1],
    "begins_with": lambda key, operands: key.startswith(operands[0]),
    "": lambda key, operands: True,
}

names = st.sampled_from(["a", "a#", "a#b", "ab", "b", "a b", "A", "$", "é"])
folders = st.sampled_from(["a", "a#", "ab"])
sizes = st.sampled_from([0, 1, 2, 10, 12, -1, -12, Decimal("1.5"), Decimal("-1.25")])
moments = st.sampled_from([moment("2024-01-01"), moment("2024-01-01T00:00:00.500"), moment("2025-01-01")])
VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "folder": folders,
    "name": names,
    "tag": names,
    "size": sizes,
    "at": moments,
}
files = st.fixed_dictionaries(
    {
        "folder": folders,
        "name": names,
        "size": sizes,
        "tag": st.none() | st.just("") | names,
        "at": moments,
        "deleted_at": st.none() | moments,
    }
)
notes = st.fixed_dictionaries({"folder": folders, "name": names})
stores = st.tuples(st.lists(files, max_size=12), st.lists(notes, max_size=3))


@st.composite
def comparisons(draw: st.DrawFn) -> Compare:
    """Draw one comparison of one attribute."""
    attribute = draw(st.sampled_from(sorted(VALUES)))
    lookups = ["exact", "exact", "in", "lt", "lte", "gt", "gte", "range"]
    operator = draw(st.sampled_from([*lookups, "startswith"] if attribute in ("folder", "name", "tag") else lookups))
    values = VALUES[attribute]
    if operator == "in":
        return Compare(attribute, operator, tuple(draw(st.lists(values, min_size=1, max_size=3))))
    if operator == "range":
        return Compare(attribute, operator, (draw(values), draw(values)))
    return Compare(attribute, operator, draw(values))


conditions: st.SearchStrategy[Condition] = st.one_of(
    comparisons(),
    comparisons(),
    comparisons(),
    st.builds(Not, comparisons()),
    st.builds(lambda one, two: Or((one, two)), comparisons(), comparisons()),
)


def several(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    """Draw two or three values."""
    return st.lists(values, min_size=2, max_size=3).map(tuple)


#: Constraints with a partition or complete keys, so that most queries have a plan.
bases: st.SearchStrategy[list[Condition]] = st.one_of(
    st.just([]),
    st.builds(lambda folder: [Compare("folder", "exact", folder)], folders),
    st.builds(lambda folder: [Compare("folder", "in", folder)], several(folders)),
    st.builds(lambda tag: [Compare("tag", "exact", tag)], names),
    st.builds(lambda f, n: [Compare("folder", "exact", f), Compare("name", "exact", n)], folders, names),
    st.builds(lambda t, n: [Compare("tag", "in", t), Compare("name", "exact", n)], several(names), names),
    st.builds(
        lambda f, n, s: [Compare("folder", "in", f), Compare("name", "in", n), Compare("size", "in", s)],
        several(folders),
        several(names),
        several(sizes),
    ),
    st.lists(st.fixed_dictionaries({"folder": folders, "name": names, "size": sizes}), min_size=1, max_size=3).map(
        lambda identities: [Compare("identity", "in", tuple(identities))]
    ),
)
directions = st.sampled_from(["", "-"])
orderings = st.one_of(
    st.just([]),
    st.just([]),
    st.lists(
        st.builds(lambda name, sign: sign + name, st.sampled_from(["folder", "name", "size", "at"]), directions),
        min_size=1,
        max_size=3,
    ),
    st.builds(lambda sign, inner: [f"{sign}name", f"{inner}size"], directions, directions),
    st.builds(lambda sign: [f"{sign}size"], directions),
    st.builds(lambda sign, inner: [f"{sign}folder", f"{inner}name"], directions, directions),
)


def stored(values: Mapping[str, Any], layout: ModelLayout) -> dict[str, Any]:
    """Make the item of an object with all its keys, as a save would."""
    infos = ((layout.attributes[name], value) for name, value in values.items())
    item: dict[str, Any] = {info.stored: info.serialize(value) for info, value in infos if value is not None}
    item["itemType"] = {"S": layout.item_type}
    item |= {"pk": {"S": layout.primary.partition.render(values)}, "sk": {"S": layout.primary.sort.render(values)}}
    deleted = values.get("deleted_at") is not None
    for key in [layout.trash] if deleted and layout.trash else [] if deleted else layout.indexes:
        with suppress(EmptyKeyPart):
            partition, sort = key.partition.render(values), key.sort.render(values)
            item |= {f"{key.index}pk": {"S": partition}, f"{key.index}sk": {"S": sort}}
    return item


def carry_out(found: Plan, items: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Read items as DynamoDB does by the plan's requests."""
    if found.kind == "union":
        return united(found, items)
    if found.kind in ("empty", "scan"):
        read = [] if found.kind == "empty" else list(items)
    elif found.keys:
        by_key = {(item["pk"]["S"], item["sk"]["S"]): item for item in items}
        read = in_order(found, [by_key[key] for key in found.keys if key in by_key])
    else:
        assert found.key is not None
        partition, sort = f"{found.key.index or ''}pk", f"{found.key.index or ''}sk"
        read = []
        for condition in found.conditions:
            inside = [item for item in items if lies_in(item, condition, partition, sort)]
            read += sorted(inside, key=lambda item: item[sort]["S"], reverse=not found.forward)
        if found.merge == "sort_key":
            read.sort(key=lambda item: item[sort]["S"], reverse=not found.forward)
    return [item for item in read if matches(found.filter, item, found.layout)]


def united(found: Plan, items: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Read the parts one after the other, each without what its others give, and merge them."""
    read: list[Mapping[str, Any]] = []
    for part in found.parts:
        read += [item for item in carry_out(part, items) if not any(matches(other, item) for other in part.exclusions)]
    return in_order(found, read)


def in_order(found: Plan, items: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Sort items in memory, like the results of complete keys and unions."""
    read = list(items)
    for order in reversed(found.query.ordering):
        name = found.layout.attributes[order.attribute].stored
        read.sort(key=partial(value_of, name), reverse=order.descending)
    return read


def lies_in(item: Mapping[str, Any], condition: KeyCondition, partition: str, sort: str) -> bool:
    """Return whether a key condition finds the item."""
    if partition not in item or item[partition]["S"] != condition.partition:
        return False
    return bool(OPERATORS[condition.operator](item[sort]["S"], condition.operands))


def expected(query: Query, items: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Find the items that a query means, by looking at every one."""
    wanted = []
    for item in items:
        visible = query.visibility == "all" or ("deletedAt" in item) == (query.visibility == "deleted")
        if item["itemType"]["S"] == query.layout.item_type and visible and matches(query.where, item, query.layout):
            wanted.append(item)
    return wanted


@settings(max_examples=examples(40, 600))
@given(
    stores,
    bases,
    st.lists(conditions, max_size=2),
    orderings,
    st.sampled_from(["live", "live", "deleted", "all"]),
    st.booleans(),
)
def test_a_plan_finds_what_was_asked(
    store: tuple[list[dict[str, Any]], list[dict[str, Any]]],
    base: list[Condition],
    further: list[Condition],
    ordering: list[str],
    visibility: Any,
    allow_scan: bool,
) -> None:
    """For any chosen key, the result contains each matching item once, in order."""
    everything = [stored(values, FILE) for values in store[0]] + [stored(values, NOTE) for values in store[1]]
    items = list({(item["pk"]["S"], item["sk"]["S"]): item for item in everything}.values())
    query = ask(FILE, And((*base, *further)), ordering, visibility=visibility, allow_scan=allow_scan)
    try:
        found = plan(query)
    except NoAccessPattern:
        return
    read = carry_out(found, items)
    assert sorted(map(str, read)) == sorted(map(str, expected(query, items)))
    ordered = list(read)
    for order in reversed(orders(*ordering)):
        name = FILE.attributes[order.attribute].stored
        ordered.sort(key=partial(value_of, name), reverse=order.descending)
    assert [row(item, ordering) for item in ordered] == [row(item, ordering) for item in read]


def value_of(name: str, item: Mapping[str, Any]) -> Any:
    """Return the sort value of a stored value."""
    return Decimal(item[name]["N"]) if "N" in item[name] else item[name]["S"]


def row(item: Mapping[str, Any], ordering: list[str]) -> list[Any]:
    """Return the sort values of an item."""
    return [value_of(FILE.attributes[order.attribute].stored, item) for order in orders(*ordering)]


@pytest.mark.parametrize("separator", ["#", " ", "#X#", ""])
@settings(max_examples=examples(25, 150))
@given(bounds=st.lists(st.tuples(st.sampled_from(["lt", "lte", "gt", "gte"]), names), min_size=1, max_size=3))
def test_bounds_of_text_are_exact(separator: str, bounds: list[tuple[str, str]]) -> None:
    """Every combination of bounds finds the values between them, last part or not, after a prefix or not."""
    values = ["a", "a#", "a#b", "ab", "b", "a b", "A", "$", "é", "\x00", "~"]
    for head in ("", "P#", "P_"):
        template = head + "{v}" + (separator + "{w}" if separator else "")
        kinds = {"p": "text", "v": "text", "w": "text"}
        layout = Space().model("x.V", kinds, ("P#{p}", template))
        where = And((Compare("p", "exact", "1"), *(Compare("v", operator, value) for operator, value in bounds)))
        items = [stored({"p": "1", "v": value, "w": w}, layout) for value in values for w in ("\x00", "z")]
        query = ask(layout, where)
        unique = list({item["sk"]["S"]: item for item in items}.values())
        read = carry_out(plan(query), unique)
        assert sorted(map(str, read)) == sorted(map(str, expected(query, unique)))


def test_the_simulation_uses_real_keys() -> None:
    """The items of these tests are in the indexes that their values allow."""
    values = {"folder": "f", "name": "n", "size": 1, "tag": None, "at": moment("2024-01-01"), "deleted_at": None}
    item = stored(values, FILE)
    assert {"pk", "gs1pk", "gs2pk"} <= item.keys()
    assert "gs3pk" not in item
