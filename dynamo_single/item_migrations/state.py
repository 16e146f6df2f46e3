"""What Django's project state holds of a model in DynamoDB: its snapshot, in the place of a ``ModelState``.

A subclass in ``ProjectState.models`` survives what Django does with states: ``clone()``, the loader, the executor
forwards and backwards, and squashing.
"""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.migrations.state import ModelState, ProjectState

from dynamo_single.exceptions import ConfigurationError
from dynamo_single.item_migrations.snapshots import Snapshot
from dynamo_single.orm.model.migration_state import Refusing
from dynamo_single.orm.schema.fields.columns import IN_DYNAMODB, LONGEST_PK

#: What a foreign key of an SQL model to one of ours has in its column, by the kind of the attribute that it refers to.
_SQL_KEYS: dict[str, Any] = {"number": models.BigIntegerField, "uuid": models.UUIDField}


class SnapshotState(ModelState):
    """A model of ours at one time. It renders to an unmanaged stand-in, to which SQL models may refer."""

    snapshot: Snapshot

    @classmethod
    def make(cls, app_label: str, name: str, snapshot: Snapshot) -> SnapshotState:
        """The state of a model with this snapshot."""
        made = cls(
            app_label, name, [_primary_key(snapshot)], {"managed": False, "db_table": name.lower() + IN_DYNAMODB}
        )
        made.snapshot = snapshot
        return made

    def clone(self) -> SnapshotState:
        """A state of its own with the same snapshot, which is a value."""
        made: Any = super().clone()
        made.snapshot = self.snapshot
        return made  # type: ignore[no-any-return]  # Django's is not generic

    def render(self, apps: Any) -> Any:
        """The stand-in, whose managers refuse every query: items of then are changed by ``ChangeItems``."""
        made: Any = super().render(apps)
        made.objects = Refusing(f"{self.app_label}.{self.name}")
        return made


def _primary_key(snapshot: Snapshot) -> tuple[str, Any]:
    """The field that SQL models refer to."""
    if len(snapshot.identity) == 1:
        (name,) = snapshot.identity
        kind = snapshot.attributes[name].attribute(name).key_kind or ""
        if kind in _SQL_KEYS:
            return name, _SQL_KEYS[kind](primary_key=True)
        return name, models.CharField(max_length=LONGEST_PK, primary_key=True)
    return "identity", models.CharField(max_length=LONGEST_PK, primary_key=True)


def snapshot_in(state: ProjectState, app_label: str, name: str) -> Snapshot:
    """The snapshot of a model in a state; raises ``ConfigurationError`` if an earlier migration made none."""
    found = state.models.get((app_label, name.lower()))
    if not isinstance(found, SnapshotState):
        raise ConfigurationError(
            f"The migrations of {app_label} have no model {name} in DynamoDB. An AddModel has to come first."
        )
    return found.snapshot


def put_snapshot(state: ProjectState, app_label: str, name: str, snapshot: Snapshot) -> None:
    """Give a model of a state another snapshot."""
    key = (app_label, name.lower())
    before = state.models[key]
    made = SnapshotState.make(app_label, before.name, snapshot)
    state.models[key] = made
    if made.fields.keys() != before.fields.keys():
        state.reload_model(*key)
