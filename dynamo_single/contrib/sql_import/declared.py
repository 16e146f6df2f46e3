"""Describe the tables of a module of Django models, such as the ``models.py`` of the project before it moved.

Django's ``isolate_apps`` registers these models separately, so they can have the labels of the project's models in
DynamoDB. This module does not read rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AbstractUser, Group
from django.db import models
from django.test.utils import isolate_apps

from dynamo_single.backend.errors import is_stored_in_dynamodb
from dynamo_single.contrib.sql_import.tables import Column, Link, Place, SourceTable
from dynamo_single.exceptions import ConfigurationError


def models_of(modules: Iterable[str]) -> list[Any]:
    """Return the concrete models of some modules and their submodules; raise ``ConfigurationError`` if one fails."""
    found: dict[type, None] = {}
    with isolate_apps():
        for name in modules:
            try:
                module = import_module(name)
            except ImportError as error:
                raise ConfigurationError(f"Cannot import {name}: {error}. Name a module of Django models.") from error
            here = [each for each in vars(module).values() if _is_of(each, name)]
            if not here:
                raise ConfigurationError(f"Cannot import the rows of {name}: it declares no Django models with tables.")
            found.update(dict.fromkeys(here))
    return [*found]


def _is_of(each: Any, module: str) -> bool:
    is_model = isinstance(each, type) and issubclass(each, models.Model) and not is_stored_in_dynamodb(each)
    if not is_model or each._meta.abstract or each._meta.proxy:
        return False
    return bool(each.__module__ == module or each.__module__.startswith(f"{module}."))


def is_user(model: type) -> bool:
    """Return whether a model is one of users."""
    return issubclass(model, AbstractBaseUser)


def users_and_groups(tables: Iterable[str], *, has_users: bool) -> list[Any]:
    """Return Django's user and group models if the database has their tables; with ``has_users`` only the group."""
    with isolate_apps():
        # Django's User has no many-to-many tables in a project that has swapped it.
        stock: Any = type(
            "User",
            (AbstractUser,),
            {"__module__": __name__, "Meta": type("Meta", (AbstractUser.Meta,), {"app_label": "auth"})},
        )
    users = [] if has_users else [stock]
    present = {*tables}
    return [model for model in (*users, Group) if model._meta.db_table in present]


def tables_of(found: Sequence[Any], using: str) -> list[SourceTable]:
    """Return the tables of models, including the tables of their many-to-many relations."""
    known = _Known(found, using)
    return [*known.tables()]


class _Known:
    """The models to import by label. It resolves references to these models and to classes."""

    def __init__(self, found: Sequence[Any], using: str) -> None:
        self.using = using
        self.models = {model._meta.label_lower: model for model in found}
        self.users = [model for model in found if is_user(model)]
        self.made: dict[Any, SourceTable] = {}

    def tables(self) -> Iterator[SourceTable]:
        for model in self.models.values():
            table = self.table_of(model)
            yield table
            for field in model._meta.local_many_to_many:
                through = field.remote_field.through
                if isinstance(through, type) and through._meta.auto_created:  # type: ignore[attr-defined]  # a model
                    edges = self.table_of(through)
                    near, far = edges.ends or ("", "")
                    table.links[field.name] = Link(field.name, edges, near, far)
                    yield edges

    def table_of(self, model: Any) -> SourceTable:
        if model not in self.made:
            self.made[model] = self._made(model)
        return self.made[model]

    def _made(self, model: Any) -> SourceTable:
        options = model._meta
        columns = [self._column(model, field) for field in options.local_concrete_fields]
        key = [field.attname for field in getattr(options, "pk_fields", [options.pk])]
        edges = [column.name for column in columns if column.refers is not None] if options.auto_created else []
        return SourceTable(
            options.label,
            options.db_table,
            using=self.using,
            pk=key,
            columns=columns,
            names=[options.object_name],
            is_user=is_user(model),
            ends=(edges[0], edges[1]) if len(edges) == 2 else None,
            parents=[
                (link.attname, self.table_of(parent)) for parent, link in options.parents.items() if link is not None
            ],
        )

    def _column(self, model: Any, field: Any) -> Column:
        names = tuple(dict.fromkeys((field.attname, field.name, field.column)))
        if not field.is_relation:
            return Column(field.attname, field.column, field, names=names)
        target = self._target(model, field)
        if target is None:
            return Column(field.attname, field.column, models.Field(), names=names)
        refers = Place(target.model._meta.db_table, target.column)
        while target is not None and target.is_relation:
            target = self._target(target.model, target)
        return Column(field.attname, field.column, target or models.Field(), refers, names)

    def _target(self, model: Any, field: Any) -> Any:
        """Return the field that a foreign key refers to, ``None`` if its model is not known."""
        target = self._model(model, field.remote_field.model)
        if target is None:
            return None
        name = getattr(field, "to_fields", [None])[0] or field.remote_field.field_name
        return target._meta.pk if name is None else target._meta.get_field(name)

    def _model(self, model: Any, to: Any) -> Any:
        if isinstance(to, type) and not is_stored_in_dynamodb(to):
            return to
        label = to if isinstance(to, str) else to._meta.label
        if label == "self":
            return model
        full = label if "." in label else f"{model._meta.app_label}.{label}"
        if full.lower() == settings.AUTH_USER_MODEL.lower() and full.lower() not in self.models:
            # The setting named another user model in the old project.
            return self.users[0] if len(self.users) == 1 else None
        return self.models.get(full.lower())
