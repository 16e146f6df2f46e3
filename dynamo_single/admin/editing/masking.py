"""Mask secrets in what an object's page shows without an input: read-only fields, and those of who may only look."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.admin.utils import flatten_fieldsets
from django.http import HttpRequest

from dynamo_single.admin import secrets
from dynamo_single.admin.editing.page import ExtendsForm
from dynamo_single.backend.errors import is_stored_in_dynamodb
from dynamo_single.orm.schema.kinds import DynamoModel


class MasksReadOnly(ExtendsForm):
    """A ``ModelAdmin`` whose pages mask secrets in what they show without an input, of inlines too."""

    def _prepare_form(self, request: HttpRequest, context: dict[str, Any], obj: DynamoModel | None) -> None:
        super()._prepare_form(request, context, obj)
        shown = context["adminform"]
        shown.fieldsets, shown.readonly_fields = _masked_form(
            self, self.model, shown.fieldsets, shown.readonly_fields, [shown.form.instance]
        )
        for each in context.get("inline_admin_formsets", ()):
            if not is_stored_in_dynamodb(each.formset.model):
                continue
            objects = [form.instance for form in each.formset.forms]
            only = each.readonly_fields if each.has_change_permission else flatten_fieldsets(each.fieldsets)
            each.fieldsets, read_only = _masked_form(each.opts, each.formset.model, each.fieldsets, only, objects)
            if each.has_change_permission:
                each.readonly_fields = read_only


def _masked_form(
    owner: Any, model: type[DynamoModel], fieldsets: Any, read_only: Any, objects: list[Any]
) -> tuple[list[Any], list[Any]]:
    """Return fieldsets and read-only names with callables, which show masks, instead of names of secrets."""
    instead: dict[Any, Any] = {}
    for name in flatten_fieldsets([(None, {"fields": read_only})]):
        found = _shown_instead(owner, model, name, objects)
        if found is not None:
            instead[name] = found

    def replaced(fields: Iterable[Any]) -> list[Any]:
        return [replaced(each) if isinstance(each, list | tuple) else instead.get(each, each) for each in fields]

    return [(title, {**options, "fields": replaced(options["fields"])}) for title, options in fieldsets], replaced(
        read_only
    )


def _shown_instead(owner: Any, model: type[DynamoModel], name: Any, objects: list[Any]) -> Any:
    """Return the callable that shows a field without secrets; ``None`` if it shows none as it is."""
    field_name = name if isinstance(name, str) else getattr(name, "shows_field", None)
    if field_name is None:
        return None
    if secrets.is_secret(owner, field_name, model):
        return secrets.masked(owner, field_name, model)
    field = {each.name: each for each in model._meta.concrete_fields}.get(field_name)
    if field is None or field.is_relation:
        return None
    values = [field.value_from_object(obj) for obj in objects]
    is_hidden = secrets.has_secrets(owner, model, field_name, values)
    return secrets.hidden(owner, model, field_name) if is_hidden else None
