"""The version of an object as an effect: every write gives the next one, and is held to the one that was read."""

from __future__ import annotations

from dynamo_single.orm.effects.effect import Along, Effect, Transition
from dynamo_single.orm.items import versions
from dynamo_single.orm.items.serialization import Values
from dynamo_single.orm.requests.actions import Item
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.table import names


class Version(Effect):
    """The version of one model's objects."""

    always = True

    def __init__(self, model: type[DynamoModel]) -> None:
        self.model = model
        self.watches = frozenset({names.VERSION})

    def stamp(self, before: Item | None) -> Values:
        """The next version."""
        return versions.next_values(self.model, before)

    async def follow(self, transition: Transition) -> Along:
        """Nothing but the condition that the version is the one that was read."""
        held = frozenset({names.VERSION}) if transition.before is not None else frozenset()
        return Along(as_read=held, exclusive=True)
