"""Objects of sharded models: their time is not ahead of what is known of the shards, and an identity has one object.

How many shards there are changes with time, so that one identity could have several keys. A creation puts the item
under one of them and checks the others in the same transaction. It is held to a schedule that every process knows by
then: see ``orm/filled/knowledge``.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Final

from dynamo_single import clock
from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.effects.effect import Along, Effect, Subject, Transition
from dynamo_single.orm.effects.write_errors import exists_error
from dynamo_single.orm.filled import knowledge
from dynamo_single.orm.items import hydration
from dynamo_single.orm.items.expiry import free
from dynamo_single.orm.items.serialization import Values, possible_keys
from dynamo_single.orm.requests.actions import Action, Check, Item, key_of
from dynamo_single.orm.requests.block import Block
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.encoding.shards import Sharding, seconds
from dynamo_single.orm.schema.kinds import DynamoModel

#: For how many seconds an ``atomic()`` block may hold a creation back: what was recorded meanwhile begins later.
HELD_BACK: Final = 120.0


class Shards(Effect):
    """What a sharded model's new objects are held to."""

    def __init__(self, model: type[DynamoModel], sharding: Sharding) -> None:
        self.model, self.sharding = model, sharding
        self.layout = registry.layout_of(model)
        attributes = self.layout.attributes
        self.watches = frozenset({attributes[sharding.attribute].stored, attributes[sharding.at].stored})

    async def fill(
        self,
        subject: Subject,
        values: Values,
        before: Item | None,
        only: frozenset[str] | None,
        pending: Block | None,
        *,
        lenient: bool,
    ) -> Values:
        """Nothing; but the shards are recorded then: a GetItem and a PutItem before the model's first item."""
        await knowledge.begin(self.layout)
        return {}

    async def follow(self, transition: Transition) -> Along | None:
        """The checks that a new item needs: one for each other key that its identity can have."""
        before, after = transition.before, transition.after
        if after is None or (before is not None and key_of(before) == key_of(after)):
            return None
        values = hydration.values_of(self.model, after)
        at = values[self.sharding.at]
        if seconds(at) > clock.timestamp() + knowledge.AHEAD:
            raise InvalidValue(
                f"{self.model._meta.label}: {self.sharding.at} is {at}, which lies ahead. It decides about the shard, "
                f"and how many there will be is not known yet: give it the present, or a time that is past."
            )
        own = {key_of(after)} if before is None else {key_of(after), key_of(before)}
        others = possible_keys(self.model, {**values, self.sharding.at: None})
        checks = tuple(Check(key, free(self.model)) for key in others if key not in own)
        return Along(checks, explain=partial(_schedule_error, transition, checks), until=time.monotonic() + HELD_BACK)


def _schedule_error(
    transition: Transition, checks: Sequence[Check], action: Action, found: Item | None
) -> Exception | None:
    is_own = any(action.key == check.key for check in checks)
    return exists_error(transition.subject, found) if is_own else None
