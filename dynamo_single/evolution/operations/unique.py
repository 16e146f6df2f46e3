"""Operations on the unique rules of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from django.db.migrations.operations.base import Operation, OperationCategory

from dynamo_single.evolution.backfill import Task
from dynamo_single.evolution.backfill.claims import delete_unused_claims, release_claims, take_claims
from dynamo_single.evolution.operations.base import ItemsOperation, public
from dynamo_single.evolution.phases import ADD_UNIQUE, REMOVE_UNIQUE, Pass
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.evolution.stored_attributes import UniqueRule
from dynamo_single.exceptions import ConfigurationError


class _UniqueOperation(ItemsOperation):
    def __init__(self, model_name: str, rule: UniqueRule) -> None:
        self.model_name, self.rule = model_name, rule

    def touched(self) -> frozenset[str]:
        """Return the rule and its attributes. A condition may depend on any attribute."""
        if self.rule.condition is not None:
            return frozenset({"*"})
        return frozenset({f"rule:{self._words}", *(f"attribute:{name}" for name in self.rule.names)})

    @property
    def _words(self) -> str:
        return self.rule.name or "_".join(self.rule.attributes)


@public
class AddUnique(_UniqueOperation):
    """Add a unique rule. Every live item claims its values; two items with the same values are both reported."""

    category = OperationCategory.ADDITION
    kind = ADD_UNIQUE

    def changed(self, before: Snapshot) -> Snapshot:
        """Return the snapshot with the rule."""
        return replace(before, unique=(*before.unique, self.rule))

    def passes(self, before: Snapshot, after: Snapshot) -> Mapping[Pass, Sequence[Task]]:
        """Delete claims that no item holds and take the claims of all items, or release them.

        If two items have the same values, report both as a failure.
        """
        return {
            "drop": (delete_unused_claims(after, self.rule),),
            "fill": (take_claims(after, (self.rule,)),),
            "drop new": (release_claims(after, before, self.rule),),
        }

    def merged(self, operation: ItemsOperation) -> list[Operation] | None:
        """Merge with the removal of the rule: neither operation is needed."""
        return [] if isinstance(operation, RemoveUnique) and operation.rule == self.rule else None

    def describe(self) -> str:
        return f"Make {' and '.join(self.rule.attributes)} of {self.model_name} unique"

    @property
    def migration_name_fragment(self) -> str:
        return f"{self.model_name_lower}_{self._words}_unique"


@public
class RemoveUnique(_UniqueOperation):
    """Remove a unique rule, and delete its claims."""

    category = OperationCategory.REMOVAL
    kind = REMOVE_UNIQUE

    def changed(self, before: Snapshot) -> Snapshot:
        """Return the snapshot without the rule."""
        if self.rule not in before.unique:
            raise ConfigurationError(f"{self.model_name} has no unique rule over {', '.join(self.rule.attributes)}.")
        return replace(before, unique=tuple(rule for rule in before.unique if rule != self.rule))

    def passes(self, before: Snapshot, after: Snapshot) -> Mapping[Pass, Sequence[Task]]:
        """Release the claims, or take them again."""
        return {
            "drop old": (release_claims(before, after, self.rule),),
            "drop": (delete_unused_claims(before, self.rule),),
            "copy back": (take_claims(before, (self.rule,)),),
        }

    def describe(self) -> str:
        return f"Let {' and '.join(self.rule.attributes)} of {self.model_name} be the same"

    @property
    def migration_name_fragment(self) -> str:
        return f"remove_{self.model_name_lower}_{self._words}_unique"
