"""Places inside documents, as ``values()`` and ``order_by()`` name them: they are read out of items in memory.

DynamoDB returns and charges items whole, and orders by keys. This module must not know plans or querysets.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from dynamo_single.exceptions import NotSupported, UnknownField
from dynamo_single.orm.conditions.wording import SORT_IN_PYTHON
from dynamo_single.orm.items.hydration import Item
from dynamo_single.orm.items.readers import value_reader
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes.documents import SetAttribute
from dynamo_single.orm.schema.attributes.extracted import Steps, steps_into, value_at
from dynamo_single.orm.schema.kinds import DynamoModel

_STEP = "__"
#: What values can be put in order among each other, as messages call it.
_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "truth values"),
    ((int, Decimal), "numbers"),
    (str, "texts"),
    (bytes, "bytes"),
)


def place_of(model: type[DynamoModel], name: str) -> tuple[str, Steps] | None:
    """The document and the place in it that a name means; ``None`` for a name that leads into none."""
    first, *steps = name.split(_STEP)
    attribute = registry.attributes_of(model).get(first)
    if not steps or attribute is None or not attribute.document or isinstance(attribute, SetAttribute):
        return None
    place = steps_into(attribute.attr_type, steps)
    if "" in place or (attribute.attr_type == "L" and isinstance(place[0], str)):
        raise UnknownField(
            f"{model._meta.label} has no place {name!r}: places in lists are numbers from 0 up, and no name is empty."
        )
    return first, place


def ordered_reader(model: type[DynamoModel], name: str) -> Callable[[Item], object]:
    """What gives an item's value of an attribute, or of a place, to put items in order by.

    Raises ``NotSupported`` for values of a place that have no order, or none among each other.
    """
    place = place_of(model, name)
    if place is None:
        return value_reader(model, name)
    read, steps, found = value_reader(model, place[0]), place[1], dict[str, None]()

    def value(item: Item) -> object:
        given = value_at(read(item), steps)
        if given is not None:
            kind = next((said for kinds, said in _KINDS if isinstance(given, kinds)), "")
            found[kind or type(given).__name__] = None
            if not kind or len(found) > 1:
                raise NotSupported(
                    f"{model._meta.label}: order_by({name!r}) finds {' and '.join(found)} there, which have no order"
                    f"{' among each other' if kind else ''}. Exclude values of another type, or {SORT_IN_PYTHON}."
                )
        return given

    return value
