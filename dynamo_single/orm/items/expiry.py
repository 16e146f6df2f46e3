"""Time to live: an expired item counts as missing, even while DynamoDB still stores it."""

from __future__ import annotations

from dynamo_single import clock
from dynamo_single.orm.conditions.terms import Condition, Or, Stored
from dynamo_single.orm.requests.actions import ITEM_MISSING
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names


def free_key_condition(model: type[DynamoModel]) -> Condition:
    """Return the condition that a key is free: no item has it, or the item has expired if the model's items expire."""
    if registry.layout_of(model).expires is None:
        return ITEM_MISSING
    return Or((ITEM_MISSING, Stored(names.EXPIRES_AT, "<=", ({"N": str(int(clock.timestamp()))},))))
