"""E036: a class of maps that declares attributes, and the way out that its hint names."""

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


class Typed(models.MapAttribute[Any]):
    """A typed map as PynamoDB has it."""

    street = models.UnicodeAttribute()
    number = models.IntegerAttribute()


class Heir(Typed):
    """A class that inherits what is declared."""


class Plain(models.MapAttribute[Any]):
    """A class of maps with a way of its own, and nothing declared."""


class Street:
    """The plain class that the hint asks for."""

    street = models.UnicodeAttribute()
    number = models.IntegerAttribute()


class Nested:
    """A schema with a typed map in it."""

    address = Typed()


def house(**attributes: Any) -> Any:
    return declare("House", ("HOUSE#{house_id}", "#METADATA"), house_id=models.IdAttribute(), **attributes)


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"address": Typed()}, "address is a Typed"),
        ({"address": Heir(null=True)}, "address is a Heir"),
        ({"places": models.ListAttribute(of=Typed())}, "places is a Typed"),
        ({"data": models.MapAttribute(schema=Nested)}, "data.address is a Typed"),
    ],
)
def test_typed_map_is_reported(attributes: dict[str, Any], said: str) -> None:
    (found,) = check_model(house(**attributes))
    assert found.id == "dynamo_single.E036"
    assert found.msg == f"{said}, which declares street, number: values would not be validated against that."


@pytest.mark.parametrize("attribute", [models.MapAttribute(), Plain(), models.MapAttribute(schema=Street)])
def test_map_without_declared_attributes_is_fine(attribute: Any) -> None:
    assert check_model(house(address=attribute)) == []


def test_hint_names_what_holds_the_map() -> None:
    """A plain class of the same name, as the schema of a map."""
    (found,) = check_model(house(address=Typed(), places=models.ListAttribute(of=Plain())))
    assert found.hint == (
        "Let Typed be a plain class, without a base, and name it: address = models.MapAttribute(schema=Typed)."
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
    with pytest.raises(InvalidValue, match=f"address__{place} takes a whole number"):
        held.check_whole(model(address=value).address)


def test_hint_of_an_element_names_the_list() -> None:
    (found,) = check_model(house(places=models.ListAttribute(of=Typed())))
    assert str(found.hint).endswith("places = models.ListAttribute(schema=Typed).")
