"""The attribute that holds permissions, and the fields of forms in which they are chosen by what they are called.

This module knows Django's forms, and must not know users, groups or the admin.
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
    """Whether a text is a permission, of whichever app."""
    label, _dot, codename = text.partition(".")
    return label.isidentifier() and bool(codename) and "." not in codename and not any(map(str.isspace, codename))


class PermissionsFormField(forms.MultipleChoiceField):
    """A choice among the permissions that there are; one of an app that is not installed is accepted too."""

    default_error_messages: ClassVar[dict[str, Any]] = {"invalid_choice": NO_PERMISSION}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=permission_choices, **kwargs)

    def valid_value(self, value: object) -> bool:
        """Whether it is a permission."""
        return is_permission(str(value))

    def prepare_value(self, value: object) -> object:
        """A list: Django's widgets take a set for one value."""
        return sorted(value) if isinstance(value, set) else value

    def clean(self, value: object) -> set[str] | None:
        """The set of those that are chosen; ``None`` for none."""
        return set(super().clean(value)) or None


class ShowsAllChosen:
    """A widget that offers what is chosen and not among the choices too, so that saving a form drops nothing."""

    choices: Any

    def optgroups(self, name: str, value: list[str], attrs: object = None) -> Any:
        """Django's groups of options, the unknown ones last."""
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
    """The permissions as a list to choose from."""


class PermissionsField(base.SetField):
    """The Django field of permissions."""

    def formfield(self, **kwargs: object) -> Any:
        """A choice by what the permissions are called."""
        offered = {"form_class": PermissionsFormField, "widget": PermissionsSelect, **kwargs}
        # What SetField gives to a form field of lines.
        return super(base.SetField, self).formfield(**offered)

    def validate(self, value: Any, model_instance: object) -> None:
        """Refuse what is not the text of a permission."""
        super().validate(value, model_instance)
        wrong = sorted(text for text in value or () if not is_permission(text))
        if wrong:
            raise ValidationError(NO_PERMISSION, code="invalid_choice", params={"value": ", ".join(wrong)})


class PermissionsAttribute(UnicodeSetAttribute):
    """A set of permissions such as ``directory.change_company``."""

    field_class = PermissionsField
