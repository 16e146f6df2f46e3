"""A schema for a map or a list: which declarations there are, and which values they take."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from django.core.validators import MinValueValidator

from dynamo_single import models
from dynamo_single.exceptions import ConfigurationError, InvalidValue, MissingValue
from dynamo_single.orm.schema.attributes.shapes import Elements, Shape


class Base:
    title = models.UnicodeAttribute(max_length=5)


class Declared(Base):
    price = models.DecimalAttribute(null=True, decimal_places=2, max_digits=6, validators=[MinValueValidator(0)])
    stock = models.IntegerAttribute(null=True)
    day = models.DateAttribute(null=True)
    kind = models.UnicodeAttribute(null=True, choices=[("big", "Big")])
    tags = models.ListAttribute(null=True)

    class author:
        lastname = models.UnicodeAttribute(null=True)


SHAPE = Shape(Declared)


@pytest.mark.parametrize(
    "value",
    [
        {"title": "T"},
        {"title": "T", "price": Decimal("1.25"), "stock": 5, "day": "2024-05-01", "kind": "big", "tags": ["a", 1]},
        {"title": "T", "price": 5, "author": {"lastname": "A", "age": 5}, "other": {"a": [1]}},
        {"title": "T", "author": None, "price": None},
    ],
)
def test_what_fits_is_taken_and_other_keys_may_hold_anything(value: dict[str, Any]) -> None:
    SHAPE.check(value, "data")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"title": 5}, r"data__title must be a string \(str\), not int 5\."),
        ({"title": "Too long"}, "data__title: Ensure this value has at most 5 characters"),
        ({"title": ""}, "data__title: This field cannot be blank"),
        ({"price": "5"}, "data__price must be a decimal number, not str '5'"),
        ({"price": True}, "data__price must be a decimal number, not bool True"),
        ({"price": Decimal("1.255")}, "data__price: Ensure that there are no more than 2 decimal places"),
        ({"price": -1}, "data__price: Ensure this value is greater than or equal to 0"),
        ({"stock": Decimal("1.5")}, "data__stock must be a whole number"),
        ({"day": "yesterday"}, "data__day must be"),
        ({"kind": "small"}, "data__kind: Value 'small' is not a valid choice"),
        ({"tags": "a"}, "data__tags must be a list"),
        ({"author": "Ann"}, "data__author is a map, and cannot be str 'Ann'"),
        ({"author": {"lastname": 1}}, "data__author__lastname must be a string"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_place(value: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        SHAPE.check({"title": "T", **value}, "data")


def test_a_value_that_documents_do_not_hold_is_refused_as_everywhere() -> None:
    with pytest.raises(InvalidValue, match="data__day"):
        SHAPE.check({"title": "T", "day": date(2024, 5, 1)}, "data")


def test_a_required_place_is_missing() -> None:
    with pytest.raises(MissingValue, match="data__title is missing: set it to a string"):
        SHAPE.check({}, "data")


@pytest.mark.parametrize(
    ("steps", "value", "message"),
    [
        (("title",), None, "said is missing"),
        (("author",), {"lastname": 1}, "said__lastname must be a string"),
        (("author", "lastname"), 1, "said must be a string"),
        (("price", "eur"), 1, "price is a decimal number, which does not have elements"),
    ],
)
def test_a_place_alone_is_held_to_what_was_declared_of_it(steps: Any, value: Any, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        SHAPE.check_at(steps, value, "said")


@pytest.mark.parametrize(
    ("steps", "value"), [(("other",), 5), (("other", "x"), 5), (("tags", 0), 5), (("author",), {})]
)
def test_a_place_of_which_nothing_was_declared_takes_anything(steps: Any, value: Any) -> None:
    SHAPE.check_at(steps, value, "said")


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (models.UnicodeAttribute(default="x"), "cannot be given a default"),
        (models.UnicodeAttribute(unique=True), "cannot be unique"),
        (models.UnicodeAttribute(immutable=True), "cannot be immutable"),
        (models.CanonicalAttribute(source="x"), "cannot be computed"),
        (models.ReferenceAttribute("catalog.Company", on_delete=models.DO_NOTHING), "cannot be a reference"),
        ("text", "a place is declared by an attribute"),
    ],
)
def test_what_a_map_cannot_keep_is_refused(place: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        models.MapAttribute(schema=type("Wrong", (), {"place": place}))


@pytest.mark.parametrize("schema", [3, {"title": models.UnicodeAttribute()}, [models.UnicodeAttribute()]])
def test_a_schema_is_a_class(schema: Any) -> None:
    with pytest.raises(ConfigurationError, match="The schema of a map is a class that declares its places"):
        models.MapAttribute(schema=schema)


def test_a_schema_declares_something() -> None:
    with pytest.raises(ConfigurationError, match="Empty declares no places"):
        models.MapAttribute(schema=type("Empty", (), {}))


LINES = Elements(Declared, None)
NUMBERS = Elements(None, models.NumberAttribute(validators=[MinValueValidator(0)]))
HOLES = Elements(None, models.NumberAttribute(null=True))
NESTED = Elements(None, models.ListAttribute(schema=Declared))


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        (LINES, []),
        (LINES, [{"title": "T"}, {"title": "U", "price": 5, "other": [1]}]),
        (NUMBERS, [1, Decimal("2.5")]),
        (HOLES, [1, None]),
        (NESTED, [[{"title": "T"}], [{"title": "U"}, {"title": "V"}]]),
    ],
)
def test_elements_that_fit_are_taken(declared: Elements, value: Any) -> None:
    declared.check(value, "lines")


@pytest.mark.parametrize(
    ("declared", "value", "message"),
    [
        (LINES, {"title": "T"}, "lines is a list, and cannot be dict"),
        (LINES, [{"title": "T"}, {"title": 5}], r"lines__1__title must be a string \(str\), not int 5"),
        (LINES, [{"title": "T"}, {}], "lines__1__title is missing"),
        (LINES, [None], "lines__0 is a map, and cannot be NoneType None"),
        (LINES, ["T"], "lines__0 is a map, and cannot be str 'T'"),
        (NUMBERS, [1, "2"], "lines__1 must be a number"),
        (NUMBERS, [1, -2], "lines__1: Ensure this value is greater than or equal to 0"),
        (NUMBERS, [None], "lines__0 is missing: set it to a number"),
        (NESTED, [[{"title": "T"}, {"title": 5}]], "lines__0__1__title must be a string"),
    ],
)
def test_elements_that_do_not_fit_are_refused_by_their_place(declared: Elements, value: Any, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        declared.check(value, "lines")


@pytest.mark.parametrize(
    ("steps", "value", "message"),
    [
        ((0,), {"title": 5}, "said__title must be a string"),
        ((0,), None, "said is a map, and cannot be NoneType"),
        ((3, "title"), 5, "said must be a string"),
        ((3, "title"), None, "said is missing"),
        ((3, "title", "x"), 5, "title is a string .str., which does not have elements"),
        (("title",), 5, "said: the places of a list are numbers from 0 up, not 'title'"),
    ],
)
def test_a_place_in_an_element_is_held_to_what_was_declared_of_it(steps: Any, value: Any, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        LINES.check_at(steps, value, "said")


@pytest.mark.parametrize("steps", [(0, "other"), (0, "author", "age"), (0, "tags", 3)])
def test_a_place_in_an_element_of_which_nothing_was_declared_takes_anything(steps: Any) -> None:
    LINES.check_at(steps, 5, "said")


def test_a_message_from_deep_inside_names_the_whole_path() -> None:
    inner = type("Inner", (), {"day": models.DateAttribute(null=True)})
    outer = type("Outer", (), {"stay": models.MapAttribute(schema=inner), "days": models.ListAttribute(schema=inner)})
    with pytest.raises(InvalidValue, match="data__stay__day must be"):
        Shape(outer).check({"stay": {"day": "soon"}, "days": [{}]}, "data")
    with pytest.raises(InvalidValue, match="data__days__1__day must be"):
        Shape(outer).check({"stay": {"a": 1}, "days": [{}, {"day": "soon"}]}, "data")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"schema": Base, "of": models.NumberAttribute()}, "A list has either schema=.* or of="),
        ({"of": models.NumberAttribute}, "of=.* does not declare the elements of a list: pass an attribute such as"),
        ({"of": int}, "of=.* does not declare the elements of a list: pass an attribute such as"),
        ({"of": models.NumberAttribute(default=1)}, r"of=NumberAttribute\(\) cannot be given a default"),
        ({"of": models.NumberAttribute(unique=True)}, "cannot be unique"),
        ({"of": models.ReferenceAttribute("catalog.Company", on_delete=models.DO_NOTHING)}, "cannot be a reference"),
        ({"schema": 3}, "The schema of a map is a class that declares its places"),
    ],
)
def test_what_elements_cannot_be_is_refused(given: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        models.ListAttribute(**given)
