"""SQL models that refer to ours: foreign keys without a constraint and without a join, and rows that go with an object.

A database cannot check DynamoDB, so a foreign key of an SQL model is a column with the ``pk``. This module does the
work that Django would leave to the database: ``on_delete`` when an object is permanently deleted.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final
from weakref import WeakSet

from django.apps import apps
from django.db import router
from django.db.models.deletion import Collector, ProtectedError, RestrictedError
from django.db.models.fields.related import ForeignKey
from django.db.models.signals import class_prepared, post_delete, pre_delete
from django.db.models.sql import compiler

from dynamo_single.orm.requests import atomic_block
from dynamo_single.orm.schema.fields.base import LOG, has_sql, is_in_dynamodb, relations_from_sql
from dynamo_single.orm.schema.types import DynamoModel, ModelField
from dynamo_single.table.flow import call_sync

#: The attribute for an object's cascade, from ``pre_delete`` to ``post_delete``.
_ROWS: Final = "_sql_rows"
#: The models of ours that SQL models refer to, and their proxies.
_HEARD: Final = WeakSet[Any]()


def install() -> None:
    """Register the foreign keys of SQL models to ours, present and future ones; once per process."""
    contribute: Any = ForeignKey.contribute_to_related_class
    if getattr(contribute, "_of_dynamo_single", False):
        return

    def contribute_to_related_class(self: object, cls: object, related: object) -> None:
        contribute(self, cls, related)
        _take(self, cls)

    descend = compiler.select_related_descend  # type: ignore[attr-defined]  # private to Django

    def select_related_descend(field: ModelField, *args: object, **options: object) -> Any:
        # The other side's model, whichever side this is.
        return not is_in_dynamodb(getattr(field.remote_field, "model", None)) and descend(field, *args, **options)

    contribute_to_related_class._of_dynamo_single = True  # type: ignore[attr-defined]  # a mark of ours on a function
    ForeignKey.contribute_to_related_class = contribute_to_related_class  # type: ignore[method-assign]  # no hook
    compiler.select_related_descend = select_related_descend  # type: ignore[attr-defined]  # as above
    class_prepared.connect(_hear_proxy, dispatch_uid="dynamo_single.sql_references")
    for model in apps.get_models(include_auto_created=True, include_swapped=True):
        for field in model._meta.local_fields:
            if isinstance(field, ForeignKey):
                _take(field, field.remote_field.model)


def _take(field: Any, target: Any) -> None:
    """Keep the database from looking for the table of a model of ours, and rows from staying behind."""
    if not is_in_dynamodb(target) or is_in_dynamodb(field.model):
        return
    if field.db_constraint:
        field.db_constraint = False
        # Migrations write the field as it is declared.
        field.deconstruct = partial(_as_declared, field)
    if field.model._meta.apps is apps and field.model._meta.label != LOG and has_sql():
        _hear(target._meta.concrete_model)


def _hear(model: Any) -> None:
    """Handle the deletions of a model's objects, and of those of a proxy: signals name the proxy."""
    _HEARD.add(model)
    receiver = {"sender": model, "dispatch_uid": "dynamo_single.sql_references"}
    pre_delete.connect(_collect, **receiver)
    post_delete.connect(_delete, **receiver)
    for each in model.__subclasses__():
        if each._meta.proxy:
            _hear(each)


def _hear_proxy(sender: Any, **kwargs: object) -> None:
    """Do the same for a proxy that is declared later than the reference to its model."""
    if sender._meta.proxy and sender._meta.concrete_model in _HEARD:
        _hear(sender)


def _as_declared(field: ModelField) -> Any:
    name, path, args, kwargs = type(field).deconstruct(field)
    kwargs.pop("db_constraint")
    return name, path, args, kwargs


class _Rows(Collector):
    """The actions of one database for a deleted object."""

    def related_objects(self, related_model: Any, related_fields: Any, objs: Any) -> Any:
        """The rows of this database that refer to the objects; what is in DynamoDB the deletion itself looks for."""
        if is_in_dynamodb(related_model) or router.db_for_write(related_model) != self.using:
            return related_model._base_manager.none()
        return super().related_objects(related_model, related_fields, objs)

    def can_fast_delete(self, objs: Any, from_field: ModelField | None = None) -> bool:
        """Return whether rows can be deleted without reading them: those of this database only."""
        model = getattr(objs, "_meta", None) and objs._meta.model
        if model is not None and (is_in_dynamodb(model) or router.db_for_write(model) != self.using):
            return False
        return bool(super().can_fast_delete(objs, from_field))


class _AllRows(_Rows):
    """The same, with every row."""

    def can_fast_delete(self, objs: object, from_field: object = None) -> bool:
        """Nothing is left to the database unseen."""
        return False


def cascading_rows(obj: DynamoModel) -> tuple[list[DynamoModel], list[DynamoModel]]:
    """Return the rows of SQL models that would be deleted with an object, and those that protect it."""
    found: list[Any] = []
    protecting: list[Any] = []
    for alias in _aliases(type(obj)):
        collector: Any = _AllRows(using=alias, origin=obj)
        try:
            collector.collect([obj])
        except (ProtectedError, RestrictedError) as error:
            named = error.protected_objects if isinstance(error, ProtectedError) else error.restricted_objects
            protecting += named
        found += (row for model, rows in collector.data.items() if model is not type(obj) for row in rows)
    return found, protecting


def _aliases(model: type[DynamoModel]) -> list[str]:
    """The databases that hold rows of models that refer to one of ours."""
    return sorted({router.db_for_write(related.related_model) for related in relations_from_sql(model)})


def _collect(sender: Any, instance: object, origin: Any, **kwargs: object) -> None:
    """Read the rows that refer to an object. ``PROTECT`` and ``RESTRICT`` refuse its deletion before it is sent."""
    rows = []
    for alias in _aliases(sender):
        collector: Any = _Rows(using=alias, origin=origin)
        collector.collect([instance])
        collector.data.pop(type(instance), None)
        rows.append(collector)
    instance.__dict__[_ROWS] = rows


def _delete(sender: object, instance: object, **kwargs: object) -> None:
    """Apply ``on_delete`` to the rows after the deletion; in an ``atomic()`` block after the block."""
    for collector in instance.__dict__.pop(_ROWS, ()):
        pending = atomic_block.current()
        if pending is None:
            collector.delete()
        else:
            pending.callbacks.append(partial(call_sync, collector.delete))
