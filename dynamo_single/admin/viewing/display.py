"""Hide secrets and hidden objects in the columns of lists and in read-only fields.

Django displays a column or a field by its name or with a callable. After the view has created a page, these functions
replace names of attributes with callables. They keep names of methods, which are code of the project.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from django.contrib.admin.utils import flatten_fieldsets
from django.db import models
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from dynamo_single.admin import secrets
from dynamo_single.admin.viewing.references import without_hidden
from dynamo_single.backend.errors import is_stored_in_dynamodb


def hide_in_view(owner: Any, view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Wrap a view of Django's ``ModelAdmin`` to hide the same values as ``DynamoModelAdmin``."""

    @functools.wraps(view)
    def shown(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        response = view(request, *args, **kwargs)
        context = getattr(response, "context_data", None) or {}
        if "adminform" in context:
            hide_in_form(owner, request, context)
        elif "cl" in context:
            hide_in_list(context["cl"], request)
        return response

    return shown


def hide_in_list(changelist: Any, request: HttpRequest) -> None:
    """Hide secrets and hidden objects in the columns of a list; sends what ``without_hidden()`` sends."""
    rows = changelist.result_list
    instead = {
        name: found
        for name in changelist.list_display
        if isinstance(name, str) and name not in changelist.list_editable
        if (found := _replacement(changelist.model_admin, request, changelist.model, name, rows)) is not None
    }
    for name, found in instead.items():
        if not secrets.is_secret(changelist.model_admin, name, changelist.model):
            found.admin_order_field = name
    secrets.replace_columns(changelist.__dict__, instead)


def hide_in_form(owner: Any, request: HttpRequest, context: dict[str, object]) -> None:
    """Hide secrets and hidden objects in the read-only fields of an object's page, also of its inlines."""
    shown: Any = context["adminform"]
    inlines: Any = context.get("inline_admin_formsets", ())
    shown.fieldsets, shown.readonly_fields = _without(
        owner, request, owner.model, shown.fieldsets, shown.readonly_fields, [shown.form.instance]
    )
    for each in inlines:
        rows = [form.instance for form in each.formset.forms]
        only = each.readonly_fields if each.has_change_permission else flatten_fieldsets(each.fieldsets)
        each.fieldsets, read_only = _without(each.opts, request, each.formset.model, each.fieldsets, only, rows)
        if each.has_change_permission:
            each.readonly_fields = read_only


def _without(
    owner: Any, request: HttpRequest, model: type[models.Model], fieldsets: Any, read_only: Any, rows: list[Any]
) -> tuple[list[Any], list[Any]]:
    """Return fieldsets and read-only names with callables instead of the names that would show too much."""
    instead = {
        name: found
        for name in flatten_fieldsets([(None, {"fields": read_only})])
        if (found := _replacement(owner, request, model, name, rows, linked=True)) is not None
    }
    return secrets.replaced_in_fieldsets(fieldsets, instead), secrets.replaced(read_only, instead)


def _replacement(
    owner: Any, request: HttpRequest, model: Any, name: Any, rows: Iterable[Any], *, linked: bool = False
) -> Any:
    """Return the callable that shows a column or a field; ``None`` if Django may show it.

    Secrets of models in SQL are shown as Django shows them.
    """
    field_name = name if isinstance(name, str) else getattr(name, "shows_field", None)
    if field_name is None:
        return None
    is_ours = is_stored_in_dynamodb(model)
    if is_ours and secrets.is_secret(owner, field_name, model):
        return secrets.mask_column(owner, field_name, model)
    found = without_hidden(owner, request, model, field_name, rows, linked=linked)
    if found is not None:
        return secrets.with_label(found, field_name, model)
    field = {each.name: each for each in model._meta.concrete_fields}.get(field_name)
    if not is_ours or field is None or field.is_relation:
        return None
    values = [field.value_from_object(row) for row in rows]
    is_hidden = secrets.has_secrets(owner, model, field_name, values)
    return secrets.hide_values(owner, model, field_name) if is_hidden else None
