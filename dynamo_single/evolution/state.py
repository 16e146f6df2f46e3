"""Snapshots in Django's project state instead of a ``ModelState``.

Django's operations on states keep a subclass in ``ProjectState.models``: ``clone()``, the loader, the executor forwards
and backwards, and squashing.
"""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.migrations.state import ModelState, ProjectState

from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.model.migration_state import RefusingManager
from dynamo_single.orm.schema.fields.base import IN_DYNAMODB, LONGEST_PK

#: The column type of a SQL foreign key to one of our models, by the kind of the attribute that it refers to.
_SQL_KEYS: dict[str, Any] = {"number": models.BigIntegerField, "uuid": models.UUIDField}


class SnapshotState(ModelState):
    """One of our models at one time. It renders to an unmanaged stand-in that SQL models can refer to."""

    snapshot: Snapshot

    @classmethod
    def make(cls, app_label: str, name: str, snapshot: Snapshot) -> SnapshotState:
        """Return the state of a model with this snapshot."""
        made = cls(
            app_label, name, [_primary_key(snapshot)], {"managed": False, "db_table": name.lower() + IN_DYNAMODB}
        )
        made.snapshot = snapshot
        return made

    def clone(self) -> SnapshotState:
        """Return a separate state with the same immutable snapshot."""
        made: Any = super().clone()
        made.snapshot = self.snapshot
        return made  # type: ignore[no-any-return]  # Django's is not generic

    def render(self, apps: Any) -> Any:
        """Return the stand-in. Its managers refuse every query, because ``ChangeItems`` converts historical items."""
        made: Any = super().render(apps)
        made.objects = RefusingManager(f"{self.app_label}.{self.name}")
        return made


def _primary_key(snapshot: Snapshot) -> tuple[str, Any]:
    """Return the name and type of the field that SQL models refer to."""
    if len(snapshot.identity) == 1:
        (name,) = snapshot.identity
        kind = snapshot.attributes[name].attribute(name).key_kind or ""
        if kind in _SQL_KEYS:
            return name, _SQL_KEYS[kind](primary_key=True)
        return name, models.CharField(max_length=LONGEST_PK, primary_key=True)
    return "identity", models.CharField(max_length=LONGEST_PK, primary_key=True)


def snapshot_in(state: ProjectState, app_label: str, name: str) -> Snapshot:
    """Return the snapshot of a model in a state; raise ``ConfigurationError`` if no earlier migration created it."""
    found = state.models.get((app_label, name.lower()))
    if not isinstance(found, SnapshotState):
        raise ConfigurationError(
            f"The migrations of {app_label} have no model {name} in DynamoDB. An AddModel has to come first."
        )
    return found.snapshot


def put_snapshot(state: ProjectState, app_label: str, name: str, snapshot: Snapshot) -> None:
    """Replace the snapshot of a model in a state."""
    key = (app_label, name.lower())
    before = state.models[key]
    made = SnapshotState.make(app_label, before.name, snapshot)
    state.models[key] = made
    if made.fields.keys() != before.fields.keys():
        state.reload_model(*key)
