"""Show the targets of references in columns and read-only fields, without the names and values of hidden objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django.contrib.admin.utils import quote
from django.core.exceptions import FieldDoesNotExist
from django.db import models
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html

from dynamo_single.admin.viewing.choices import VisibleObjects
from dynamo_single.admin.viewing.rules import sees_all
from dynamo_single.backend.errors import is_stored_in_dynamodb


def without_hidden(
    owner: Any, request: HttpRequest, model: type[models.Model], path: str, rows: Iterable[Any], *, linked: bool = False
) -> Callable[[Any], Any] | None:
    """Return a callable that shows a reference of an object, or a path along references.

    It shows a hidden object by its kind, and omits it from a many-to-many relation. Returns ``None`` if the user sees
    every object on the path, or if ``path`` is something else, such as a method. ``owner`` is the admin or the inline,
    ``rows`` are the objects that the page shows, and ``linked`` adds links to the objects' pages, as in Django's
    read-only fields.

    Sends no request, except one query for the objects of all rows if their model is in SQL. The callable reads what the
    path reads, and sends a query for each other object in SQL.
    """
    fields = _references(model, path)
    if all(sees_all(owner.admin_site, request, field.related_model) for field in fields):
        return None
    seen = VisibleObjects(owner.admin_site, request)
    if fields[0].concrete and not is_stored_in_dynamodb(fields[0].related_model):
        seen.learn(fields[0].related_model, {getattr(row, fields[0].attname) for row in rows})

    def shown(obj: Any) -> Any:
        value = obj
        for step in path.split("__"):
            value = getattr(value, step, None)
            if isinstance(value, models.Model) and not seen.is_seen(value):
                return seen.kind(value)
        if hasattr(value, "get_queryset"):
            return ", ".join(str(each) for each in value.all() if seen.is_seen(each))
        if value in (None, ""):
            return owner.get_empty_value_display()
        return _link(owner, value) if linked and isinstance(value, models.Model) else value

    return shown


def _references(model: Any, path: str) -> list[Any]:
    """Return the fields of the references that a path begins with."""
    found: list[Any] = []
    for step in path.split("__"):
        try:
            field = model._meta.get_field(step)
        except FieldDoesNotExist:
            break
        if not field.is_relation or field.related_model is None:
            break
        if hasattr(field, "kept_in") and not is_stored_in_dynamodb(field.related_model):
            break  # names of permissions, which are values of the user
        found.append(field)
        model = field.related_model
    return found


def _link(owner: Any, obj: models.Model) -> Any:
    name = f"admin:{obj._meta.app_label}_{obj._meta.model_name}_change"
    try:
        address = reverse(name, args=(quote(obj.pk),), current_app=owner.admin_site.name)
    except NoReverseMatch:
        return str(obj)
    return format_html('<a href="{}">{}</a>', address, obj)
