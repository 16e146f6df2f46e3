"""Operations on what a model declares unique."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from django.db.migrations.operations.base import Operation, OperationCategory

from dynamo_single.evolution.backfill import Task
from dynamo_single.evolution.backfill.claims import delete_unused_claims, release_claims, take_claims
from dynamo_single.evolution.operations.base import ItemsOperation, public
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.evolution.stored_attributes import UniqueRule
from dynamo_single.exceptions import ConfigurationError


class _UniqueOperation(ItemsOperation):
    rule: UniqueRule

    def touched(self) -> frozenset[str]:
        """The rule and its attributes; a condition may be about any of them."""
        if self.rule.condition is not None:
            return frozenset({"*"})
        return frozenset({f"rule:{self._words}", *(f"attribute:{name}" for name in self.rule.names)})

    @property
    def _words(self) -> str:
        return self.rule.name or "_".join(self.rule.attributes)


@public
class AddUnique(_UniqueOperation):
    """A unique rule: every live item claims its values; two that have the same are reported with both objects."""

    category = OperationCategory.ADDITION

    def __init__(self, model_name: str, rule: UniqueRule) -> None:
        self.model_name, self.rule = model_name, rule

    def changed(self, before: Snapshot) -> Snapshot:
        """With the rule."""
        return replace(before, unique=(*before.unique, self.rule))

    def open_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Take the claims that are free; what two items have is a failure that names both."""
        return (take_claims(after, (self.rule,)),)

    def finish_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Release those of what old code has changed or deleted, and take those of what it has written."""
        return (delete_unused_claims(after, self.rule), *self.open_tasks(before, after))

    def back_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Release them."""
        return (release_claims(after, before, self.rule),)

    def merged(self, operation: ItemsOperation) -> list[Operation] | None:
        """A rule that is removed again never was."""
        return [] if isinstance(operation, RemoveUnique) and operation.rule == self.rule else None

    def describe(self) -> str:
        """In one line."""
        return f"Make {' and '.join(self.rule.attributes)} of {self.model_name} unique"

    @property
    def migration_name_fragment(self) -> str:
        """For the file's name."""
        return f"{self.model_name_lower}_{self._words}_unique"


@public
class RemoveUnique(_UniqueOperation):
    """A unique rule that there is no more: its claims are deleted when the migration is finished."""

    category = OperationCategory.REMOVAL

    def __init__(self, model_name: str, rule: UniqueRule) -> None:
        self.model_name, self.rule = model_name, rule

    def changed(self, before: Snapshot) -> Snapshot:
        """Without the rule."""
        if self.rule not in before.unique:
            raise ConfigurationError(f"{self.model_name} has no unique rule over {', '.join(self.rule.attributes)}.")
        return replace(before, unique=tuple(rule for rule in before.unique if rule != self.rule))

    def drop_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Release the claims."""
        return (release_claims(before, after, self.rule),)

    def back_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Take them again."""
        return (take_claims(before, (self.rule,)),)

    def describe(self) -> str:
        """In one line."""
        return f"Let {' and '.join(self.rule.attributes)} of {self.model_name} be the same"

    @property
    def migration_name_fragment(self) -> str:
        """For the file's name."""
        return f"remove_{self.model_name_lower}_{self._words}_unique"
