"""What has changed of the models in DynamoDB since the last migration, beside Django's own search for the SQL models.

Django compares two project states. Before it does, our models are put into both as equal, so that it finds no
difference in them and foreign keys of SQL models find their targets; what differs of ours is found here.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db.migrations.autodetector import MigrationAutodetector, OperationDependency
from django.db.migrations.questioner import NonInteractiveMigrationQuestioner
from django.db.migrations.state import ModelState

from dynamo_single.item_migrations.comparison import Comparison
from dynamo_single.item_migrations.operations.models import AddModel, RemoveModel, RenameModel
from dynamo_single.item_migrations.snapshots import Snapshot
from dynamo_single.item_migrations.state import SnapshotState
from dynamo_single.orm.schema import registry

if TYPE_CHECKING:
    from django.db.migrations.operations.base import Operation

Label = tuple[str, str]


class Autodetector(MigrationAutodetector):
    """Django's, for the models of an SQL database, and the search for what has changed of those in DynamoDB."""

    def _detect_changes(self, convert_apps: Collection[str] | None = None, graph: object = None) -> Any:
        self._old = {label: each for label, each in self.from_state.models.items() if isinstance(each, SnapshotState)}
        self._new: dict[Label, Any] = {}
        for label, model in installed().items():
            if label[0] in self.from_state.real_apps and label[0] not in (convert_apps or ()):
                self._equal(label, SnapshotState.make(label[0], model.__name__, Snapshot.of(model)))
            else:
                self._new[label] = model
        # Django looks at the proxies of both states, and finds ours equal.
        for label, state in self.to_state.models.items():
            if label not in self._new and _is_proxy_of_ours(label):
                self.from_state.models[label] = state.clone()
        for label, each in self._old.items():
            self._equal(label, each)
        for label, model in self._new.items():
            self._equal(label, SnapshotState.make(label[0], model.__name__, Snapshot.of(model)))
        return super()._detect_changes(convert_apps, graph)  # type: ignore[misc]  # private to Django

    def _equal(self, label: Label, state: ModelState) -> None:
        for project in (self.from_state, self.to_state):
            project.models[label] = state.clone()

    def generate_created_models(self) -> None:
        """Our operations, and those that create Django's models."""
        old = {label: each.snapshot for label, each in self._old.items()}
        names = {label: each.name for label, each in self._old.items()}
        for label, former in self._renamed(old, names).items():
            old[label] = old.pop(former)
        for label in sorted(self._new.keys() - old.keys()):
            model = self._new[label]
            self.add_operation(label[0], AddModel.of(model.__name__, Snapshot.of(model)))
        for label in sorted(old.keys() & self._new.keys()):
            model = self._new[label]
            for operation in Comparison(model, old[label], self.questioner).operations():
                self.add_operation(label[0], operation)
        for label in sorted(old.keys() - self._new.keys()):
            self.add_operation(label[0], RemoveModel(name=names[label]))
        super().generate_created_models()

    def _renamed(self, old: dict[Label, Snapshot], names: dict[Label, str]) -> dict[Label, Label]:
        """The models that have another name by now, as somebody says who is asked; by their new labels."""
        found: dict[Label, Label] = {}
        for label in sorted(self._new.keys() - old.keys()):
            after = Snapshot.of(self._new[label])
            for former in sorted(old.keys() - self._new.keys() - set(found.values())):
                if former[0] != label[0] or old[former].attributes != after.attributes:
                    continue
                if self.questioner.ask_rename_model(self.from_state.models[former], self.to_state.models[label]):
                    new_name = self._new[label].__name__
                    self.add_operation(label[0], RenameModel(old_name=names[former], new_name=new_name))
                    found[label] = former
                    break
                self._tell_unasked(names[former], label)
        return found

    def _tell_unasked(self, former: str, label: Label) -> None:
        """Say that a model may have been renamed, where ``--noinput`` asks nobody."""
        if isinstance(self.questioner, NonInteractiveMigrationQuestioner):
            log: Any = self.questioner.log
            new = self._new[label].__name__
            log(
                f"{new} may be {former} under another name, and --noinput asks nobody. The items of {former} stay in "
                f"the table, and {new} does not have them. If it was renamed, write RenameModel({former!r}, {new!r}) "
                "into the file in the place of AddModel and RemoveModel, and run makemigrations again."
            )

    def check_dependency(self, operation: Operation, dependency: Any) -> bool:
        """Whether an operation is what another one depends on: a foreign key depends on our ``AddModel`` too."""
        if (
            isinstance(operation, AddModel)
            and dependency.type == OperationDependency.Type.CREATE
            and dependency.field_name is None
        ):
            return bool(operation.name_lower == dependency.model_name_lower)
        return bool(super().check_dependency(operation, dependency))


def installed() -> dict[Label, Any]:
    """Our concrete models of installed apps, by label."""
    found = {(model._meta.app_label, str(model._meta.model_name)): model for model in registry.all_models()}
    return {label: found[label] for label in sorted(found) if label[0] in apps.app_configs}


def _is_proxy_of_ours(label: Label) -> bool:
    try:
        model: Any = apps.get_model(*label)
    except LookupError:
        return False
    return bool(model._meta.proxy) and model._meta.concrete_model in registry.all_models()
