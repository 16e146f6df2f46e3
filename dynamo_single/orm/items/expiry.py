"""What follows from a time to live: an item that has expired counts as none, though it is stored still."""

from __future__ import annotations

from dynamo_single import clock
from dynamo_single.orm.conditions.terms import Condition, Or, Stored
from dynamo_single.orm.requests.actions import ITEM_MISSING
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names


def free_key_condition(model: type[DynamoModel]) -> Condition:
    """The condition that nothing is stored under a key; where items expire, nothing that has not expired yet."""
    if registry.layout_of(model).expires is None:
        return ITEM_MISSING
    return Or((ITEM_MISSING, Stored(names.EXPIRES_AT, "<=", ({"N": str(int(clock.timestamp()))},))))
