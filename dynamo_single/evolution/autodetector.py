"""Detect changes of DynamoDB models since the last migration, in addition to Django's detection for SQL models.

Django compares two project states. This module puts equal states of our models into both, so that Django does not find
differences in them and foreign keys of SQL models find their targets. It then compares our models itself.

Some facts are not in a declaration: whether an attribute was renamed, and which value existing items get.
``makemigrations`` asks the user for them. No function here sends a request.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db.migrations.autodetector import MigrationAutodetector, OperationDependency
from django.db.migrations.questioner import NonInteractiveMigrationQuestioner
from django.db.migrations.state import ModelState
from django.db.models import NOT_PROVIDED

from dynamo_single.evolution.operations.attributes import AddAttribute, AlterAttribute, RemoveAttribute, RenameAttribute
from dynamo_single.evolution.operations.base import ItemsOperation
from dynamo_single.evolution.operations.keys import AddKey, AlterKey, RemoveKey, RenameKey
from dynamo_single.evolution.operations.models import AddModel, AlterTrashIndex, MoveKeys, RemoveModel, RenameModel
from dynamo_single.evolution.operations.unique import AddUnique, RemoveUnique
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.evolution.state import SnapshotState
from dynamo_single.evolution.stored_attributes import StoredAttribute
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.fields.base import relations_from_sql
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.schema.upgrades import operation_text

if TYPE_CHECKING:
    from django.db.migrations.operations.base import Operation


class Comparison:
    """A model and its previous snapshot. Each operation found moves the snapshot closer to the model."""

    def __init__(self, model: type[DynamoModel], before: Snapshot, questioner: Any) -> None:
        self.model, self.name = model, model.__name__
        self.now, self.after = before, Snapshot.of(model)
        self.questioner = questioner
        self.found: list[ItemsOperation] = []

    def operations(self) -> list[ItemsOperation]:
        """Return the operations that lead to the current model.

        Raises ``ConfigurationError`` for a change that no migration can make.
        """
        if self.now.alias != self.after.alias:
            raise ConfigurationError(
                f"Cannot make a migration for {self.model._meta.label}: it moved from the table {self.now.alias!r} to "
                f"{self.after.alias!r}, and migrations do not move items to another table. Copy the items with "
                "dumpdata and loaddata, using a separate model for each table."
            )
        self._keep_versions()
        unanswered = self._rename_attributes()
        self._remove_rules()
        self._remove_keys()
        self._add_attributes()
        self._alter_attributes()
        self._move()
        self._change_keys()
        if self.now.trash_index != self.after.trash_index:
            self._take(AlterTrashIndex(model_name=self.name, index=self.after.trash_index))
        self._add_rules()
        self._remove_attributes(unanswered)
        if not _is_equal(self.now, self.after):
            raise ConfigurationError(
                f"{self.model._meta.label}: no operation makes one of its changes. Please report both of its "
                "declarations."
            )
        return self.found

    def _keep_versions(self) -> None:
        """Keep the schema versions of the migrations; raise if items of earlier versions may exist."""
        before = self.now
        if before.oldest_version < before.schema_version:
            raise ConfigurationError(
                f"Items of {self.model._meta.label} may be of schema versions {before.oldest_version} to "
                f"{before.schema_version}. Write a migration first (makemigrations --empty) with "
                f"{operation_text(self.name, before.schema_version)}."
            )
        self.after = replace(
            self.after,
            schema_version=before.schema_version,
            oldest_version=before.oldest_version,
            pending=before.pending,
        )

    def _take(self, operation: ItemsOperation) -> None:
        self.now = operation.changed(self.now)
        self.found.append(operation)

    def _rename_attributes(self) -> frozenset[str]:
        """Detect renamed attributes; return possibly renamed attributes if the command cannot prompt the user."""
        gone = [name for name in self.now.attributes if name not in self.after.attributes]
        unanswered: set[str] = set()
        for new, stored in self.after.attributes.items():
            if new in self.now.attributes:
                continue
            alike = [old for old in gone if _is_alike(self.now.attributes[old], stored)]
            # An attribute with the same physical name is the same attribute. The user decides about all others.
            old = next((each for each in alike if self.now.attributes[each].stored == stored.stored), None)
            old = old or next((each for each in alike if self._ask_rename(each, new)), None)
            if old is None:
                unanswered.update(alike)
                continue
            gone.remove(old)
            named = {} if self.now.attributes[old].stored == stored.stored else {"stored": stored.stored}
            self._take(RenameAttribute(model_name=self.name, old_name=old, new_name=new, **named))
        return self._kept(unanswered.intersection(gone))

    def _ask_rename(self, old: str, new: str) -> bool:
        field = self.model._meta.get_field(new)
        return bool(self.questioner.ask_rename(self.name, old, new, getattr(field, "attribute", field)))

    def _kept(self, unanswered: set[str]) -> frozenset[str]:
        """Report the attributes whose values are kept because ``--noinput`` disables the prompt; return them."""
        if not unanswered or not isinstance(self.questioner, NonInteractiveMigrationQuestioner):
            return frozenset()
        log: Any = self.questioner.log
        log(
            f"{self.name}: {', '.join(sorted(unanswered))} may have been renamed, but --noinput disables the prompt. "
            "The values are kept in the items. If an attribute was renamed, replace AddAttribute and RemoveAttribute "
            "with RenameAttribute in the file. Otherwise delete drop=False from RemoveAttribute to drop the values."
        )
        return frozenset(unanswered)

    def _remove_rules(self) -> None:
        for rule in self.now.unique:
            if rule not in self.after.unique:
                self._take(RemoveUnique(model_name=self.name, rule=rule))

    def _add_rules(self) -> None:
        for rule in self.after.unique:
            if rule not in self.now.unique:
                self._take(AddUnique(model_name=self.name, rule=rule))

    def _remove_keys(self) -> None:
        """Remove keys from indexes that the model no longer uses. Keys on the other indexes are altered later."""
        kept = {key.index for key in self.after.keys.values()}
        for name, key in self.now.keys.items():
            if key.index not in kept:
                self._take(RemoveKey(model_name=self.name, name=name))

    def _change_keys(self) -> None:
        """Rename, alter and add keys. A model has one key per index."""
        for name, key in self.after.keys.items():
            old = self._key_on(key.index)
            if old not in (None, name) and name in self.now.keys:  # two keys swapped their names
                self._take(RenameKey(model_name=self.name, old_name=name, new_name=f"{name}_before"))
        for name, key in self.after.keys.items():
            old = self._key_on(key.index)
            if old is None:
                self._take(AddKey(model_name=self.name, name=name, key=key))
                continue
            if old != name:
                self._take(RenameKey(model_name=self.name, old_name=old, new_name=name))
            if self.now.keys[name] != key:
                self._take(AlterKey(model_name=self.name, name=name, key=key))

    def _key_on(self, index: str) -> str | None:
        return next((name for name, key in self.now.keys.items() if key.index == index), None)

    def _add_attributes(self) -> None:
        for name, stored in self.after.attributes.items():
            if name not in self.now.attributes:
                named = self._default_of(name, stored)
                self._take(AddAttribute(model_name=self.name, name=name, attribute=stored, **named))

    def _default_of(self, name: str, stored: StoredAttribute) -> dict[str, Any]:
        """Return the default for items that lack a new attribute, unless the declaration itself provides a value."""
        if not stored.required or stored.absent is not None or stored.is_computed:
            return {}
        options = registry.attributes_of(self.model)[name].field_options
        if options.get("auto_now_add") or options.get("auto_now"):
            return {"default": self.questioner.ask_auto_now_add_addition(name, self.name)}
        if options["default"] is not NOT_PROVIDED and _is_importable(options["default"]):
            return {"default": options["default"]}
        return {"default": self.questioner.ask_not_null_addition(name, self.name)}

    def _alter_attributes(self) -> None:
        for name, stored in self.after.attributes.items():
            before = self.now.attributes[name]
            if before == stored:
                continue
            named: dict[str, Any] = {}
            if stored.required and not before.required and stored.absent is None and not stored.is_computed:
                default = self.questioner.ask_not_null_alteration(name, self.name)
                named = {} if default is NOT_PROVIDED else {"default": default}
            self._take(AlterAttribute(model_name=self.name, name=name, attribute=stored, **named))

    def _remove_attributes(self, unanswered: frozenset[str]) -> None:
        for name in self.now.attributes:
            if name not in self.after.attributes:
                named = {"drop": False} if name in unanswered else {}
                self._take(RemoveAttribute(model_name=self.name, name=name, **named))

    def _move(self) -> None:
        named: dict[str, Any] = {}
        if self.now.identity != self.after.identity and (referring := sorted(_references_to(self.model))):
            raise ConfigurationError(
                f"Cannot make a migration for {self.model._meta.label}: its primary key names "
                f"{', '.join(self.after.identity)} instead of {', '.join(self.now.identity)}, which changes the pk of "
                f"every object, and {', '.join(referring)} would refer to missing objects. Migrations do not update "
                "references. Remove them first, or write MoveKeys manually if your own code updates them."
            )
        if self.now.primary != self.after.primary:
            named["primary"] = self.after.primary
        if self.now.item_type != self.after.item_type:
            named["item_type"] = self.after.item_type
        if named:
            self._take(MoveKeys(model_name=self.name, **named))


def _references_to(model: type[DynamoModel]) -> Iterator[str]:
    """Yield the fields of this and other models that refer to the model by its ``pk``."""
    own = ((other, field) for other in registry.all_models() for field in other._meta.concrete_fields)
    for other, field in own:
        target: Any = field.related_model if field.is_relation else None
        if target is not None and target._meta.concrete_model._meta.label == model._meta.label:
            yield f"{other._meta.label}.{field.name}"
    for relation in relations_from_sql(model):
        yield f"{relation.related_model._meta.label}.{relation.field.name}"


def _is_alike(before: StoredAttribute, after: StoredAttribute) -> bool:
    """Return whether two attributes store compatible values, so a rename is possible."""
    one, other = (
        (each.kind, dict(each.options), each.fold, each.steps, bool(each.copied), bool(each.counted))
        for each in (before, after)
    )
    return one == other


def _is_equal(one: Snapshot, other: Snapshot) -> bool:
    """Return whether two snapshots are equal, regardless of the order of their rules."""
    return set(one.unique) == set(other.unique) and one == replace(other, unique=one.unique)


def _is_importable(default: object) -> bool:
    """Return whether a migration file can import a default; it cannot import a bound method or a local function."""
    if not callable(default):
        return True
    return getattr(default, "__self__", None) is None and "<" not in getattr(default, "__qualname__", "<")


Label = tuple[str, str]


class Autodetector(MigrationAutodetector):
    """Django's autodetector, extended to models in DynamoDB."""

    def _detect_changes(self, convert_apps: Collection[str] | None = None, graph: object = None) -> Any:
        self._old = {label: each for label, each in self.from_state.models.items() if isinstance(each, SnapshotState)}
        self._new: dict[Label, Any] = {}
        for label, model in installed_models().items():
            if label[0] in self.from_state.real_apps and label[0] not in (convert_apps or ()):
                self._equal(label, SnapshotState.make(label[0], model.__name__, Snapshot.of(model)))
            else:
                self._new[label] = model
        # Django examines the proxies in both states. Ours must be equal.
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
        """Add the operations for our models, then the operations that create SQL models."""
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
        """Return the old label of each model that the user confirms as renamed, by its new label."""
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
        """Report that a model may have been renamed if ``--noinput`` disables the prompt."""
        if isinstance(self.questioner, NonInteractiveMigrationQuestioner):
            log: Any = self.questioner.log
            new = self._new[label].__name__
            log(
                f"{former} may have been renamed to {new}, but --noinput disables the prompt. The items of {former} "
                f"are kept in the table, but {new} does not have them. If it was renamed, replace AddModel and "
                f"RemoveModel with RenameModel({former!r}, {new!r}) in the file, and run makemigrations again."
            )

    def check_dependency(self, operation: Operation, dependency: Any) -> bool:
        """Return whether an operation satisfies a dependency: a foreign key can also depend on our ``AddModel``."""
        if (
            isinstance(operation, AddModel)
            and dependency.type == OperationDependency.Type.CREATE
            and dependency.field_name is None
        ):
            return bool(operation.name_lower == dependency.model_name_lower)
        return bool(super().check_dependency(operation, dependency))


def installed_models() -> dict[Label, Any]:
    """Return the concrete DynamoDB models of installed apps, by label."""
    found = {(model._meta.app_label, str(model._meta.model_name)): model for model in registry.all_models()}
    return {label: found[label] for label in sorted(found) if label[0] in apps.app_configs}


def _is_proxy_of_ours(label: Label) -> bool:
    try:
        model: Any = apps.get_model(*label)
    except LookupError:
        return False
    return bool(model._meta.proxy) and model._meta.concrete_model in registry.all_models()
