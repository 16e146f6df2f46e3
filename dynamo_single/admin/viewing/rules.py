"""Decide which objects a user may see: one rule for all pages of the admin and for the entries of the log."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, cast

from django.apps import apps
from django.contrib.admin.sites import AdminSite
from django.contrib.auth import get_permission_codename
from django.core.exceptions import ValidationError
from django.db import models
from django.http import HttpRequest
from msgspec import Struct

from dynamo_single.backend.errors import is_stored_in_dynamodb
from dynamo_single.exceptions import DynamoSingleError
from dynamo_single.orm.conditions.lowering import lower
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING, Condition, Nothing
from dynamo_single.orm.items import refresh
from dynamo_single.orm.query.state import state_of
from dynamo_single.orm.schema.registry import all_models

logger = logging.getLogger("dynamo_single.admin")

_NAME: Final = "_dynamo_single_viewing"
#: Modules whose ``has_view_permission()`` does not depend on the object.
_STOCK: Final = ("django.contrib.", "dynamo_single.")


class _Rule(Struct, frozen=True):
    """Which objects of a model the registered admin returns; ``condition`` is ``None`` if that is not known."""

    condition: Condition | None
    is_for_all: bool


def may_view(site: AdminSite, request: HttpRequest, obj: models.Model) -> bool:
    """Return whether a user may see an object.

    The registered admin decides: ``has_view_permission(request, obj)``, and ``get_queryset(request)``, whose conditions
    are matched with the stored object. For a model that is not registered, the permission to view or change decides.
    Does not send a request for a model in DynamoDB; for one in SQL, sends a query if its queryset has conditions.
    """
    model = type(obj)
    if not site.is_registered(model):
        return may_view_model(site, request, model)
    modeladmin = site.get_model_admin(model)
    if not modeladmin.has_view_permission(request, obj):
        return False
    rule = _rule_of(site, request, model)
    if rule.condition == EVERYTHING:
        return True
    if not is_stored_in_dynamodb(model):
        return bool(modeladmin.get_queryset(request).filter(pk=obj.pk).exists())
    stored: Any = obj
    if rule.condition is None or stored._stored is None or refresh.is_partial(stored):
        return False
    return matches(rule.condition, stored._stored)


def may_view_model(site: AdminSite, request: HttpRequest, model: Any) -> bool:
    """Return whether a user may see objects of a model at all; ``None`` is the model of an unknown item."""
    if model is None:
        return True
    if site.is_registered(model):
        return bool(site.get_model_admin(model).has_view_permission(request))
    options = model._meta
    user: Any = request.user
    return any(
        user.has_perm(f"{options.app_label}.{get_permission_codename(action, options)}")
        for action in ("view", "change")
    )


def sees_all(site: AdminSite, request: HttpRequest, model: Any) -> bool:
    """Return whether a user may see every object of a model, so that objects need not be checked.

    This is not known if the project overrides ``has_view_permission()``. Sends no request.
    """
    if not may_view_model(site, request, model):
        return False
    return model is None or not site.is_registered(model) or _rule_of(site, request, model).is_for_all


def is_narrowed(site: AdminSite, request: HttpRequest, alias: str) -> bool:
    """Return whether any registered admin hides objects of a table from a user by a rule of the project.

    Items that no admin decides about are then hidden too, because they may contain values of hidden objects.
    """
    return any(
        is_stored_in_dynamodb(model) and model._options.alias == alias and not _rule_of(site, request, model).is_for_all
        for model in cast("dict[Any, object]", site._registry)
    )


def sees_whole_table(site: AdminSite, request: HttpRequest, alias: str) -> bool:
    """Return whether a user sees every object of a table, so that the cost of a page reveals nothing about others."""
    seen = (sees_all(site, request, model) for model in all_models() if model._options.alias == alias)
    return not is_narrowed(site, request, alias) and all(seen)


def narrowed_queryset(site: AdminSite, request: HttpRequest, model: Any) -> Any:
    """Return the queryset of the registered admin if it has conditions, else ``None``; does not send a request."""
    if not site.is_registered(model) or _rule_of(site, request, model).condition == EVERYTHING:
        return None
    return site.get_model_admin(model).get_queryset(request).all()


def visible_keys(site: AdminSite, request: HttpRequest, model: Any, keys: Iterable[str]) -> set[str]:
    """Return those keys whose objects a user may see.

    Returns all of them if the user sees every object of the model, and none if the user sees none. Otherwise it reads
    the objects: a BatchGetItem for each hundred, or one query for a model in SQL. A deleted object cannot be checked
    and is omitted.
    """
    wanted = {*keys}
    if sees_all(site, request, model):
        return wanted
    if not site.is_registered(model):
        return set()
    values = []
    for key in wanted:
        with suppress(ValidationError, ValueError, TypeError):
            values.append(model._meta.pk.to_python(key))
    if not is_stored_in_dynamodb(model):
        modeladmin = site.get_model_admin(model)
        rows = modeladmin.get_queryset(request).filter(pk__in=values)
        return {str(row.pk) for row in rows if modeladmin.has_view_permission(request, row)}
    found = getattr(model, "all_objects", model._default_manager).in_bulk(values)
    return {str(obj.pk) for obj in found.values() if may_view(site, request, obj)}


def _rule_of(site: AdminSite, request: HttpRequest, model: type[models.Model]) -> _Rule:
    rules: dict[Any, _Rule] = request.__dict__.setdefault(_NAME, {})
    key = site.name, model
    if key not in rules:
        modeladmin = site.get_model_admin(model)
        condition = _condition(modeladmin, request)
        module = getattr(modeladmin.has_view_permission, "__module__", "") or ""
        rules[key] = _Rule(condition, condition == EVERYTHING and module.startswith(_STOCK))
    return rules[key]


def _condition(modeladmin: Any, request: HttpRequest) -> Condition | None:
    queryset = modeladmin.get_queryset(request).all()
    if not is_stored_in_dynamodb(queryset.model):
        return EVERYTHING if not queryset.query.where and not queryset.query.is_sliced else None
    if queryset.query.is_sliced or queryset._asked.inside:
        error = "a slice, a subquery or a condition on another model takes a request"
    else:
        try:
            state = state_of(queryset.order_by())
            return Nothing() if state.is_empty else lower(state.where, state.layout)
        except DynamoSingleError as refusal:
            error = str(refusal)
    logger.error(
        "%s.get_queryset() returns a queryset that cannot be matched with an object in memory: %s. The pages of the "
        "table and the log hide the objects of %s. Filter by attributes of the model itself.",
        type(modeladmin).__name__,
        error,
        queryset.model._meta.label,
    )
    return None


class VisibleEntries:
    """The entries of a queryset that a user may see, for Django's template tag: it filters and slices.

    A slice reads as many entries, and may contain fewer.
    """

    def __init__(self, site: AdminSite, request: HttpRequest, queryset: Any) -> None:
        self._asked = site, request
        self._queryset = queryset

    def filter(self, *args: Any, **kwargs: Any) -> VisibleEntries:
        """Narrow the queryset."""
        return VisibleEntries(*self._asked, self._queryset.filter(*args, **kwargs))

    def __getitem__(self, part: slice) -> list[Any]:
        """Read a part of the entries."""
        return visible_entries(*self._asked, self._queryset[part])

    def __iter__(self) -> Iterator[Any]:
        return iter(self[:])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queryset, name)


def visible_entries(site: AdminSite, request: HttpRequest, entries: Iterable[Any]) -> list[Any]:
    """Return the entries about objects that a user may see.

    If that depends on the object, sends a BatchGetItem for each model of an entry. Entries of models that are not
    installed are left out.
    """
    found = [(entry, model_of(entry), str(entry.object_id)) for entry in entries]
    keys: dict[Any, set[str]] = {}
    for _entry, model, key in found:
        keys.setdefault(model, set()).add(key)
    visible = {model: visible_keys(site, request, model, named) for model, named in keys.items() if model is not None}
    return [entry for entry, model, key in found if model is not None and key in visible[model]]


def model_of(entry: Any) -> Any:
    """Return the model of the object that an entry of the log is about; ``None`` if it is not installed."""
    kind = getattr(entry, "object_type", None)
    if kind is None:
        return entry.content_type.model_class() if entry.content_type is not None else None
    try:
        return apps.get_model(kind)
    except LookupError:
        return None
