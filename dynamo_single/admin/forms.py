"""The forms of the admin: formsets in a key's order, sets shown read-only, and widgets for choosing several of many."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib.admin.widgets import FilteredSelectMultiple
from django.core.exceptions import ValidationError
from django.forms import BaseModelFormSet, HiddenInput, ModelChoiceField
from django.utils.html import format_html
from django.utils.safestring import SafeString

from dynamo_single.orm.schema.fields.fields import SetField
from dynamo_single.orm.schema.kinds import DynamoModel, ModelField
from dynamo_single.permission_fields import ShowsAllChosen


class KeyModelFormSet(BaseModelFormSet):  # type: ignore[type-arg]  # not generic at run time
    """Takes its rows as they come: Django would sort them by ``pk``, which few keys serve."""

    def get_queryset(self) -> Any:
        """The rows, read once."""
        if not hasattr(self, "_rows"):
            model: Any = self.model
            self._rows = list(model._default_manager.all() if self.queryset is None else self.queryset)
        return self._rows

    def add_fields(self, form: Any, index: int | None) -> None:
        """Django's; the hidden key of a row is one of those read, where Django would ask for each by itself."""
        super().add_fields(form, index)
        for field in form.fields.values():
            if isinstance(field, ModelChoiceField) and isinstance(field.widget, HiddenInput):
                field.to_python = partial(self._row, field)  # type: ignore[method-assign]  # of this form's field

    def _row(self, field: Any, value: Any) -> Any:
        if value in field.empty_values:
            return None
        rows = {str(row.pk): row for row in self.get_queryset()}
        key = str(getattr(value, "pk", value))
        if key not in rows:
            raise ValidationError(field.error_messages["invalid_choice"], "invalid_choice", {"value": value})
        return rows[key]


def with_members(options: Any, fieldsets: Any) -> list[tuple[object, dict[str, object]]]:
    """The fieldsets, with sets shown as their members, sorted, separated by commas."""
    sets = {field.name: _members(field) for field in options.concrete_fields if isinstance(field, SetField)}

    def replaced(fields: Any) -> Any:
        return [replaced(each) if isinstance(each, list | tuple) else sets.get(each, each) for each in fields]

    return [(title, {**described, "fields": replaced(described["fields"])}) for title, described in fieldsets]


def _members(field: ModelField) -> Callable[[Any], str]:
    def members(obj: DynamoModel) -> str:
        return ", ".join(str(member) for member in sorted(field.value_from_object(obj) or ()))

    # The page finds the help text by this name, and the label by the other.
    members.__name__ = field.name
    members.short_description = field.verbose_name  # type: ignore[attr-defined]  # read by Django
    return members


class FilteredSelect(FilteredSelectMultiple):
    """Two lists with a search: what there is, and what is chosen. ``FilteredSelect(verbose_name)``."""

    def __init__(self, verbose_name: Any, is_stacked: bool = False, attrs: Any = None, choices: Any = ()) -> None:
        super().__init__(verbose_name, is_stacked, attrs, choices)

    def render(self, name: str, value: object, attrs: Any = None, renderer: Any = None) -> SafeString:
        """In a box of its own, as the script that makes the two lists expects; else they come before their label."""
        return format_html('<div class="related-widget-wrapper">{}</div>', super().render(name, value, attrs, renderer))


class PermissionsFilter(ShowsAllChosen, FilteredSelect):
    """The permissions."""
