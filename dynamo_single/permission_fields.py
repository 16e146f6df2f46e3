"""The attribute for permissions, and the form fields that offer them by name.

This module depends on Django's forms, but not on users, groups or the admin.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from dynamo_single.orm.schema.attributes import UnicodeSetAttribute
from dynamo_single.orm.schema.fields import base
from dynamo_single.permissions import permission_choices

NO_PERMISSION = _("%(value)s is no permission: it has the form app_label.codename.")


def is_permission(text: str) -> bool:
    """Return whether a text has the form of a permission of any app."""
    label, _dot, codename = text.partition(".")
    return label.isidentifier() and bool(codename) and "." not in codename and not any(map(str.isspace, codename))


class PermissionsFormField(forms.MultipleChoiceField):
    """A choice of permissions. It also accepts permissions of apps that are not installed."""

    default_error_messages: ClassVar[dict[str, Any]] = {"invalid_choice": NO_PERMISSION}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=permission_choices, **kwargs)

    def valid_value(self, value: object) -> bool:
        """Return whether the value is a permission."""
        return is_permission(str(value))

    def prepare_value(self, value: object) -> object:
        """Return a list: Django's widgets treat a set as one value."""
        return sorted(value) if isinstance(value, set) else value

    def clean(self, value: object) -> set[str] | None:
        """Return the set of the chosen permissions, or ``None`` if there are none."""
        return set(super().clean(value)) or None


class ShowsAllChosen:
    """A widget that also offers chosen values without a choice, so that saving a form does not remove them."""

    choices: Any

    def optgroups(self, name: str, value: list[str], attrs: object = None) -> Any:
        """Return Django's groups of options, with the unknown ones last."""
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
    """The permissions as a multiple select."""


class PermissionsField(base.SetField):
    """The Django field of permissions."""

    def formfield(self, **kwargs: object) -> Any:
        """Return a choice of permissions by name."""
        offered = {"form_class": PermissionsFormField, "widget": PermissionsSelect, **kwargs}
        # SetField would otherwise add the arguments of a field of lines.
        return super(base.SetField, self).formfield(**offered)

    def validate(self, value: Any, model_instance: object) -> None:
        """Reject texts that are not permissions."""
        super().validate(value, model_instance)
        wrong = sorted(text for text in value or () if not is_permission(text))
        if wrong:
            raise ValidationError(NO_PERMISSION, code="invalid_choice", params={"value": ", ".join(wrong)})


class PermissionsAttribute(UnicodeSetAttribute):
    """A set of permissions such as ``directory.change_company``."""

    field_class = PermissionsField
    holds_labels = True
