"""Conditions as DynamoDB's expressions, with a placeholder for every name and value."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_single.exceptions import InvalidValue, NotSupported, UnknownField
from dynamo_single.orm.conditions.lowering import lower
from dynamo_single.orm.conditions.terms import And, Compare, Condition, Not, Nothing, Or, Stored, simplify
from dynamo_single.orm.conditions.wording import condition_text
from dynamo_single.orm.requests.expressions import ExpressionBuilder, compile_condition
from tests.unit.factories import Space, compare

LAYOUT = Space().model(
    "x.All",
    {
        "id": "text",
        "name": "text",
        "first_name": "text?",
        "age": "number",
        "flag": "boolean",
        "raw": "binary",
        "data": "map",
        "rows": "list",
        "tags": "texts",
        "sizes": "numbers",
    },
    ("A#{id}", "M"),
)
A, B, C = (Compare("name", "exact", value) for value in "abc")

EXPRESSIONS = [
    (compare(name="x"), "#a0 = :v0", ["name"], [{"S": "x"}]),
    (compare(first_name="x"), "#a0 = :v0", ["firstName"], [{"S": "x"}]),
    (compare(age__lt=5), "#a0 < :v0", ["age"], [{"N": "5"}]),
    (compare(age__lte=5), "#a0 <= :v0", ["age"], [{"N": "5"}]),
    (compare(age__gt=5), "#a0 > :v0", ["age"], [{"N": "5"}]),
    (compare(age__gte=5), "#a0 >= :v0", ["age"], [{"N": "5"}]),
    (compare(age__range=(1, 5)), "#a0 BETWEEN :v0 AND :v1", ["age"], [{"N": "1"}, {"N": "5"}]),
    (compare(age__in=[1, 2, 1.0]), "#a0 IN (:v0, :v1)", ["age"], [{"N": "1"}, {"N": "2"}]),
    (compare(flag=True), "#a0 = :v0", ["flag"], [{"BOOL": True}]),
    (compare(raw__gt=b"a"), "#a0 > :v0", ["raw"], [{"B": b"a"}]),
    (compare(name__startswith="x"), "begins_with(#a0, :v0)", ["name"], [{"S": "x"}]),
    (compare(raw__startswith=b"x"), "begins_with(#a0, :v0)", ["raw"], [{"B": b"x"}]),
    (compare(name__contains="x"), "contains(#a0, :v0)", ["name"], [{"S": "x"}]),
    (compare(tags__contains="x"), "contains(#a0, :v0)", ["tags"], [{"S": "x"}]),
    (compare(sizes__contains=1), "contains(#a0, :v0)", ["sizes"], [{"N": "1"}]),
    (compare(rows__contains=[1]), "contains(#a0, :v0)", ["rows"], [{"L": [{"N": "1"}]}]),
    (compare(first_name__isnull=True), "attribute_not_exists(#a0) OR #a0 = :v0", ["firstName"], [{"NULL": True}]),
    (
        compare(first_name__isnull=False),
        "NOT (attribute_not_exists(#a0) OR #a0 = :v0)",
        ["firstName"],
        [{"NULL": True}],
    ),
    (compare(data__has_key="x"), "attribute_exists(#a0.#a1)", ["data", "x"], []),
    (compare(data__price=5), "#a0.#a1 = :v0", ["data", "price"], [{"N": "5"}]),
    (compare(data__rows__2__x__gt=5), "#a0.#a1[2].#a2 > :v0", ["data", "rows", "x"], [{"N": "5"}]),
    (compare(data__price=None), "#a0.#a1 = :v0", ["data", "price"], [{"NULL": True}]),
    (compare(rows__size_exact=2), "size(#a0) = :v0", ["rows"], [{"N": "2"}]),
    (compare(name__size_gt=2), "size(#a0) > :v0", ["name"], [{"N": "2"}]),
    (compare(data__price__attribute_type="N"), "attribute_type(#a0.#a1, :v0)", ["data", "price"], [{"S": "N"}]),
    (And((A, B)), "#a0 = :v0 AND #a0 = :v1", ["name"], [{"S": "a"}, {"S": "b"}]),
    (Or((A, And((B, C)))), "#a0 = :v0 OR (#a0 = :v1 AND #a0 = :v2)", ["name"], [{"S": "a"}, {"S": "b"}, {"S": "c"}]),
    (And((Or((A, B)), C)), "(#a0 = :v0 OR #a0 = :v1) AND #a0 = :v2", ["name"], [{"S": "a"}, {"S": "b"}, {"S": "c"}]),
    (Not(Or((A, B))), "NOT (#a0 = :v0 OR #a0 = :v1)", ["name"], [{"S": "a"}, {"S": "b"}]),
    (
        Compare("identity", "in", ({"id": "1"}, {"id": "2"})),
        "#a0 = :v0 OR #a0 = :v1",
        ["id"],
        [{"S": "1"}, {"S": "2"}],
    ),
    (Stored("pk", "missing"), "attribute_not_exists(#a0)", ["pk"], []),
    (Stored("version", "=", ({"N": "3"},)), "#a0 = :v0", ["version"], [{"N": "3"}]),
    (Nothing(), "attribute_exists(#a0) AND attribute_not_exists(#a0)", ["itemType"], []),
    (compare(age__range=(5, 1)), "attribute_exists(#a0) AND attribute_not_exists(#a0)", ["itemType"], []),
]


@pytest.mark.parametrize(("condition", "expression", "names", "values"), EXPRESSIONS)
def test_expression(condition: Condition, expression: str, names: list[str], values: list[Any]) -> None:
    """Every operator has its expression; names are reused, and values are not."""
    builder = ExpressionBuilder()
    assert compile_condition(condition, LAYOUT, builder) == expression
    params = builder.params()
    assert list(params["ExpressionAttributeNames"].values()) == names
    assert list(params.get("ExpressionAttributeValues", {}).values()) == values


def test_everything_needs_no_expression() -> None:
    """It has no expression and no placeholders."""
    builder = ExpressionBuilder()
    assert compile_condition(And(), LAYOUT, builder) == ""
    assert builder.params() == {}


def test_long_lists_are_divided() -> None:
    """IN accepts a hundred operands, so longer lists are split, in parentheses next to other conditions."""
    condition = And((compare(age__in=list(range(150))), compare(name="x")))
    text = compile_condition(condition, LAYOUT, ExpressionBuilder())
    assert (
        text.startswith("(#a0 IN (:v0, ") and ":v99) OR #a0 IN (:v100, " in text and text.endswith(") AND #a1 = :v150")
    )


REFUSALS = [
    (compare(name__regex="x"), NotSupported, "cannot evaluate name__regex='x'"),
    (compare(flag__gt=True), NotSupported, "orders text, numbers and binary, not values stored as BOOL"),
    (compare(data__gt={"a": 1}), NotSupported, "not values stored as M"),
    (compare(age__startswith="1"), NotSupported, "only text and binary can start with something; age is N"),
    (compare(name__startswith=1), NotSupported, "only text and binary can start"),
    (compare(age__contains=1), NotSupported, "age is stored as N; text, sets and lists can contain"),
    (compare(tags__contains=1), NotSupported, "tags is stored as SS, which cannot contain a value of N"),
    (compare(age__size_gt=1), NotSupported, "stored as N, which has no size"),
    (compare(name__canonical="x"), NotSupported, "cannot compare name without regard to case"),
    (Compare("identity", "exact", {"id": "1"}), NotSupported, "an identity can be compared with 'in' only"),
    (Compare("rows", "exact", 1, (-1,)), NotSupported, "counts list elements from the front only"),
    (compare(name=None), InvalidValue, "Use name__isnull=True"),
    (compare(data__a__range=(1, "b")), InvalidValue, "the two bounds are of different types"),
    (compare(nmae=1), UnknownField, "x.All has no attribute 'nmae'; it has age, data, "),
    (Stored("a", "~", ({"S": "x"},)), NotSupported, "'~' is not an operator"),
]


@pytest.mark.parametrize(("condition", "error", "message"), REFUSALS)
def test_refusal(condition: Condition, error: type[Exception], message: str) -> None:
    """A condition without an exact equivalent raises an error instead of an approximation."""
    with pytest.raises(error, match=message):
        compile_condition(condition, LAYOUT, ExpressionBuilder())


def test_model_names_need_a_layout() -> None:
    """Write conditions use stored names, so a model's name without its layout is a mistake."""
    with pytest.raises(UnknownField, match="only stored names can be compared"):
        compile_condition(A, None, ExpressionBuilder())


SIMPLER = [
    (And((And((A, B)), C)), And((A, B, C))),
    (Or((Or((A, B)), C)), Or((A, B, C))),
    (And((A,)), A),
    (Or((A,)), A),
    (Or(()), Nothing()),
    (And((A, Nothing())), Nothing()),
    (Or((A, Nothing())), A),
    (Or((A, And())), And()),
    (And((A, And())), A),
    (Not(Not(A)), A),
    (Not(Nothing()), And()),
    (Not(And()), Nothing()),
    (Compare("name", "in", ()), Nothing()),
    (Not(Compare("name", "in", ())), And()),
]


@pytest.mark.parametrize(("condition", "simpler"), SIMPLER)
def test_simplifying(condition: Condition, simpler: Condition) -> None:
    """Empty and universal conditions are removed from their parents."""
    assert simplify(condition) == simpler


def test_wording() -> None:
    """The text of conditions is Django's syntax."""
    condition = And((A, Or((B, Not(Compare("data", "gt", 5, ("price", 0)))))))
    assert condition_text(condition) == "name='a', (name='b' | not (data__price__0__gt=5))"
    assert condition_text(Nothing()) == "nothing"
    assert condition_text(Compare("tags", "size_exact", 3)) == "tags__size=3"
    assert condition_text(Compare("data", "size_gte", 3, ("rows",))) == "data__rows__size__gte=3"
    assert condition_text(Stored("pk", "missing")) == "pk missing"
    assert condition_text(Stored("v", "=", ({"N": "1"},))) == "v = 1"
    assert (
        condition_text(Stored("v", "IN", ({"S": "a'b"}, {"BOOL": True}, {"SS": ["x"]})))
        == "v IN \"a'b\", True, {'SS': ['x']}"
    )


def test_lowering_keeps_what_is_stored_already() -> None:
    """Stored comparisons and model comparisons can stand side by side."""
    stored = Stored("pk", "exists")
    assert lower(And((stored, A)), LAYOUT) == And((stored, Stored("name", "=", ({"S": "a"},))))
