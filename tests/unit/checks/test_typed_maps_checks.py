"""E036: a class of lists that declares attributes, and its hint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dynamo_single import models
from dynamo_single.checks.models import check_model
from dynamo_single.exceptions import InvalidValue
from tests.unit.declaring import declare, forgotten


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    with forgotten():
        yield


class Lines(models.ListAttribute[Any]):
    """A class of lists that declares attributes, which no list has."""

    street = models.UnicodeAttribute()
    number = models.IntegerAttribute()


class Heir(Lines):
    """A class that inherits a declaration."""


class Address(models.MapAttribute[Any]):
    """A map class."""

    street = models.UnicodeAttribute()
    lines = models.ListAttribute(null=True, of=models.UnicodeAttribute())


class Plain(models.MapAttribute[Any]):
    """A class of maps with a method, and without a declaration."""


class Street:
    """The plain class of the hint."""

    street = models.UnicodeAttribute()
    number = models.IntegerAttribute()


class Nested:
    """A schema with a list of that class in it."""

    address = Lines()


def house(**attributes: Any) -> Any:
    return declare("House", ("HOUSE#{house_id}", "#METADATA"), house_id=models.IdAttribute(), **attributes)


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"address": Lines()}, "address is a Lines"),
        ({"address": Heir(null=True)}, "address is a Heir"),
        ({"places": models.ListAttribute(of=Lines())}, "places is a Lines"),
        ({"data": models.MapAttribute(schema=Nested)}, "data.address is a Lines"),
    ],
)
def test_list_with_attributes_is_reported(attributes: dict[str, Any], said: str) -> None:
    (found,) = check_model(house(**attributes))
    assert found.id == "dynamo_single.E036"
    assert found.msg == f"{said}, which declares street, number: values would not be validated against that."


@pytest.mark.parametrize(
    "attribute",
    [models.MapAttribute(), Plain(), models.MapAttribute(schema=Street), Address(), models.ListAttribute(of=Address)],
)
def test_maps_are_fine(attribute: Any) -> None:
    assert check_model(house(address=attribute)) == []


def test_hint_names_what_holds_the_list() -> None:
    """A plain class of the same name, as the schema of a list."""
    (found,) = check_model(house(address=Lines(), places=models.ListAttribute(of=Plain())))
    assert found.hint == (
        "Let Lines be a plain class, without a base, and name it: address = models.ListAttribute(schema=Lines)."
    )


@pytest.mark.parametrize(
    ("held", "value", "place"),
    [
        (models.MapAttribute[Any](schema=Street), {"street": "a", "number": "one"}, "number"),
        (models.ListAttribute[Any](schema=Street), [{"street": "a", "number": "one"}], "0__number"),
    ],
)
def test_hint_holds_what_is_written(held: Any, value: Any, place: str) -> None:
    """The plain class as the schema of a map, or of a list's elements."""
    model = house(address=held)
    with pytest.raises(InvalidValue, match=f"address__{place} must be a whole number"):
        held.check_whole(model(address=value).address)
