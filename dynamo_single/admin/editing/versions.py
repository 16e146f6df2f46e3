"""The version that a form of the admin was shown for: ``check_version`` of a ``DynamoModelAdmin``."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.utils import flatten_fieldsets

from dynamo_single.forms import READ_VERSION, VersionedModelForm, version_name
from dynamo_single.orm.schema.kinds import DynamoModel


def versioned(form: Any, model: type[DynamoModel]) -> Any:
    """The form's class with the hidden field; raises ``ConfigurationError`` if the model has no version."""
    version_name(model)
    return form if issubclass(form, VersionedModelForm) else type(form.__name__, (VersionedModelForm, form), {})


def shown(fieldsets: Any, hidden_field: str = READ_VERSION) -> Any:
    """The fieldsets with a hidden field, in the last one unless it is there."""
    if not fieldsets or hidden_field in flatten_fieldsets(fieldsets):
        return fieldsets
    *others, (title, described) = fieldsets
    return [*others, (title, {**described, "fields": [*described["fields"], hidden_field]})]


def hidden(fieldsets: Any, hidden_field: str = READ_VERSION) -> list[tuple[object, dict[str, object]]]:
    """The fieldsets without it, for who may only look."""
    return [
        (title, {**described, "fields": [name for name in described["fields"] if name != hidden_field]})
        for title, described in fieldsets
    ]
