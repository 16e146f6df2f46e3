"""The attribute that stores permissions, and its form fields.

This module depends on Django's forms, and is independent of users, groups and the admin.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from dynamo_single.orm.schema.attributes import UnicodeSetAttribute
from dynamo_single.orm.schema.fields import base
from dynamo_single.permissions import permission_choices

NO_PERMISSION = _("%(value)s is not a permission. Write it as app_label.codename.")


def is_permission(text: str) -> bool:
    """Return whether a string is an app label and a codename; neither has to exist."""
    label, _dot, codename = text.partition(".")
    return label.isidentifier() and bool(codename) and "." not in codename and not any(map(str.isspace, codename))


class PermissionsFormField(forms.MultipleChoiceField):
    """A choice of permissions, which also accepts permissions of apps that are not installed."""

    default_error_messages: ClassVar[dict[str, Any]] = {"invalid_choice": NO_PERMISSION}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=permission_choices, **kwargs)

    def valid_value(self, value: object) -> bool:
        """Return whether the value is a permission."""
        return is_permission(str(value))

    def prepare_value(self, value: object) -> object:
        """Return a set as a sorted list, because Django's widgets treat a set as a single value."""
        return sorted(value) if isinstance(value, set) else value

    def clean(self, value: object) -> set[str] | None:
        """Return the selected permissions, or ``None`` if the user selected none."""
        return set(super().clean(value)) or None


class ShowsAllChosen:
    """A widget that adds options for selected values without a choice, so that saving the form keeps them."""

    choices: Any

    def optgroups(self, name: str, value: list[str], attrs: object = None) -> Any:
        """Return Django's option groups, followed by the values without a choice."""
        declared = self.choices
        known = {option for option, _label in declared}
        unknown = [text for text in value if text and text not in known]
        behind: Any = super()
        try:
            self.choices = [*declared, *((text, _("%s (not of an installed app)") % text) for text in unknown)]
            return behind.optgroups(name, value, attrs)
        finally:
            self.choices = declared


class PermissionsSelect(ShowsAllChosen, forms.SelectMultiple):
    """A multiple select of permissions."""


class PermissionsField(base.SetField):
    """The model field of ``PermissionsAttribute``."""

    def formfield(self, **kwargs: object) -> Any:
        """Return the form field with a choice of permissions."""
        offered = {"form_class": PermissionsFormField, "widget": PermissionsSelect, **kwargs}
        # SetField.formfield() would add the arguments of its own widget.
        return super(base.SetField, self).formfield(**offered)

    def validate(self, value: Any, model_instance: object) -> None:
        """Raise ``ValidationError`` for strings that are not permissions."""
        super().validate(value, model_instance)
        wrong = sorted(text for text in value or () if not is_permission(text))
        if wrong:
            raise ValidationError(NO_PERMISSION, code="invalid_choice", params={"value": ", ".join(wrong)})


class PermissionsAttribute(UnicodeSetAttribute):
    """A set of permissions such as ``directory.change_company``."""

    field_class = PermissionsField
    holds_labels = True
