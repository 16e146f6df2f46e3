"""``manage.py loaddata``: Django's command, which rejects rows of SQL models if there is no SQL database."""

from __future__ import annotations

import re
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.management.base import CommandError
from django.core.management.commands import loaddata
from django.core.serializers.base import DeserializationError
from django.db import DatabaseError, router

from dynamo_single.backend.errors import is_stored_in_dynamodb
from dynamo_single.backend.router import uses_engine
from dynamo_single.orm.items.encode import key_of_pk
from dynamo_single.orm.reading import single
from dynamo_single.orm.schema import registry, secrecy
from dynamo_single.orm.schema.fields.forms import HiddenError
from dynamo_single.orm.schema.keys.secret_values import MASK
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.write import bulk_insert
from dynamo_single.table.flow import run
from dynamo_single.table.request import MAX_STATEMENTS
from dynamo_single.table.table import get_table

#: The end of Django's message about an object that cannot be read (``DeserializationError.WithData``).
_UNREADABLE = re.compile(r"(.*)\((\w+\.\w+):pk=(.*)\) field_value was '(.*)'\Z", re.DOTALL)


class _Waiting:
    """An object with copies from objects that may come later. It stays in memory until all fixtures are loaded."""

    def __init__(self, command: Command, obj: DynamoModel) -> None:
        self.command = command
        self.obj = obj

    def save_deferred_fields(self, using: str | None = None) -> None:
        """Save the object, or raise the error that prevents it."""
        self.command._saved(self.obj)


class Command(loaddata.Command):
    """Load fixtures as Django's command does, and raise an error for a row that no database can store.

    The command collects up to 25 objects of a table in memory, and writes them with one request.
    """

    #: The objects to write by the next request, by model and ``pk``.
    _together: dict[Any, DynamoModel]

    def load_label(self, fixture_label: str) -> None:
        """Load the fixtures of a label. Errors do not contain the secrets of an object that cannot be read."""
        self._together = {}
        try:
            self._load_label(fixture_label)
        except DeserializationError as error:
            reason = error.__context__
            text = _without_secrets(str(error), is_hidden=isinstance(reason, HiddenError))
            if text == str(error):
                raise
            raise DeserializationError(text) from reason

    def _load_label(self, fixture_label: str) -> None:
        try:
            super().load_label(fixture_label)
        except Exception:
            # The objects before a mistake are stored.
            self._write_together()
            raise
        try:
            self._write_together()
        except Exception as error:
            if not isinstance(error, CommandError):
                error.args = (f"Problem installing fixture '{fixture_label}': {error}",)
            raise

    def _write_together(self) -> None:
        """Write the collected objects, or raise the error of the first object that cannot be written."""
        objects = [*self._together.values()]
        self._together.clear()
        try:
            run(bulk_insert.load(objects))
        except bulk_insert.NotLoaded as failure:
            error, obj = failure.__cause__, objects[failure.position]
            if isinstance(error, (DatabaseError, ValueError)) and not isinstance(error, CommandError):
                pk = MASK if secrecy.is_secret(type(obj), "pk") else obj.pk
                error.args = (f"Could not load {obj._meta.label}(pk={pk}): {error}",)
            raise error from None  # type: ignore[misc]  # NotLoaded always has a cause

    def save_obj(self, obj: Any) -> bool:
        """Save one object. Raise an error that names its model if no database can store it."""
        model = type(obj.object)
        excluded = model._meta.app_config in self.excluded_apps or model in self.excluded_models
        stored = is_stored_in_dynamodb(model) or router.allow_migrate_model(self.using, model)
        if not excluded and not stored and uses_engine(self.using):
            label = model._meta.label_lower
            instead = f" Users are {settings.AUTH_USER_MODEL} here." if model._meta.app_label == "auth" else ""
            raise CommandError(
                f"{label} is a model of SQL, and {self.using!r} is no SQL database, so that "
                f"{label}(pk={secrecy.shown(model, obj.object.pk)}) can be stored nowhere.{instead} Remove its rows "
                f"from the fixture, or skip them with --exclude {label}. The rows before it in the fixture are stored."
            )
        if is_stored_in_dynamodb(model) and not excluded and not obj.deferred_fields and self._lacks_source(obj.object):
            self.objs_with_deferred_fields.append(_Waiting(self, obj))  # type: ignore[arg-type]  # it is asked for one method
            return True
        is_alone = excluded or not is_stored_in_dynamodb(model) or bool(obj.deferred_fields or obj.m2m_data)
        if is_alone or not bulk_insert.is_loaded_together(model):
            self._write_together()
            return self._saved(obj)
        self._wait(obj.object)
        return True

    def _lacks_source(self, obj: DynamoModel) -> bool:
        """Return whether an object copies from an object that is not stored yet. Sends a GetItem for each copy.

        A key can need the copy. Without it, no key would find the object in the trash after its source is stored.
        """
        if registry.copied_of(type(obj)):
            self._write_together()
        return _lacks_source(obj)

    def _wait(self, obj: DynamoModel) -> None:
        """Let an object wait for others of its table, at most 25."""
        held, key = next(iter(self._together.values()), obj), (type(obj), obj.pk)
        is_full = len(self._together) == MAX_STATEMENTS
        if is_full or key in self._together or held._options.alias != obj._options.alias:
            self._write_together()
        self._together[key] = obj

    def _saved(self, obj: Any) -> bool:
        model = type(obj.object)
        try:
            saved = bool(super().save_obj(obj))
        except Exception as error:
            if secrecy.is_secret(model, "pk"):
                error.args = tuple(str(each).replace(f"(pk={obj.object.pk})", f"(pk={MASK})") for each in error.args)
            raise
        if is_stored_in_dynamodb(model):
            # At the end, Django checks the constraints of these models' tables, which DynamoDB does not have.
            self.models.discard(model)
        return saved


def _without_secrets(text: str, *, is_hidden: bool) -> str:
    """Return Django's message about an unreadable object with its secrets masked: its key, and the field's value."""
    found = _UNREADABLE.match(text)
    if found is None:
        return text
    before, label, pk, value = found.groups()
    shown_pk = MASK if secrecy.is_secret(apps.get_model(label), "pk") else pk
    return f"{before}({label}:pk={shown_pk}) field_value was '{MASK if is_hidden else value}'"


def _lacks_source(obj: DynamoModel) -> bool:
    for copy in registry.copied_of(type(obj)):
        source, pk = copy.source_model, getattr(obj, copy.reference_field.attname)
        if pk is not None and run(single.stored_item(get_table(source._options.alias), key_of_pk(source, pk))) is None:
            return True
    return False
