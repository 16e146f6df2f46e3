"""Fields and form fields whose errors do not contain secrets.

Django's messages contain the value that was given, and so do their parameters and the errors that cause them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import Any, Protocol, TypeVar

from django import forms
from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext_lazy as _

from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.schema.encoding.secrets import MASK

_Method = TypeVar("_Method", bound=Callable[..., Any])

#: Parameters of Django's messages that contain the value, and texts that do not.
_VALUES = {"value", "pk"}
_NAMES = {"model", "field"}


class _Attribute(Protocol):
    def is_secret(self) -> bool: ...


class HiddenError(ValidationError):
    """The error of a secret's value: neither its messages nor their parameters contain the value."""


def hiding(method: _Method) -> _Method:
    """Decorate a method of a field: if the field is a secret, any error becomes a ``HiddenError`` without causes."""

    @wraps(method)
    def hidden(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except (ValidationError, ValueError, TypeError, ArithmeticError) as error:
            if isinstance(error, HiddenError) or not _is_secret(self):
                raise
            raise _masked(error) from None

    return hidden  # type: ignore[return-value]  # of the same signature


class HidingField(models.Field):  # type: ignore[type-arg]  # not generic at run time
    """A field that converts and validates as Django's does; if it is a secret, its errors do not contain the value."""

    @hiding
    def to_python(self, value: object) -> Any:
        """Convert a value as Django does."""
        return super().to_python(value)

    @hiding
    def get_db_prep_value(self, value: object, connection: Any, prepared: bool = False) -> Any:
        """Convert a value as Django does; no query of this app uses the result."""
        return super().get_db_prep_value(value, connection, prepared)

    @hiding
    def get_db_prep_save(self, value: object, connection: Any) -> Any:
        """Convert a value as Django does; no query of this app uses the result."""
        return super().get_db_prep_save(value, connection)

    @hiding
    def validate(self, value: object, model_instance: Any) -> None:
        """Validate a value as Django does."""
        super().validate(value, model_instance)

    @hiding
    def run_validators(self, value: object) -> None:
        """Run the field's validators."""
        super().run_validators(value)

    @hiding
    def clean(self, value: object, model_instance: Any) -> Any:
        """Convert and validate a value as Django does."""
        return super().clean(value, model_instance)

    def formfield(self, **kwargs: Any) -> Any:
        """Return Django's form field; its errors do not contain the value of a secret."""
        return hide_errors(self, super().formfield(**kwargs))


def hide_errors(field: HidingField, form_field: Any) -> Any:
    """Return the form field of a field; if the field is a secret, its errors do not contain the value."""
    if form_field is not None and _is_secret(field):
        found: Any = type(form_field)
        form_field.__class__ = _hiding_form_field(found)
    return form_field


class _HidingFormField(forms.Field):
    @hiding
    def to_python(self, value: Any) -> Any:
        """Convert what was sent."""
        return super().to_python(value)

    @hiding
    def clean(self, *args: Any, **kwargs: Any) -> Any:
        """Convert and validate what was sent."""
        return super().clean(*args, **kwargs)


@lru_cache(maxsize=256)
def _hiding_form_field(form_field: Hashable) -> Any:
    """Return a subclass of a class of form fields; its errors do not contain the value."""
    base: Any = form_field
    if issubclass(base, _HidingFormField):
        return base
    return type(base.__name__, (_HidingFormField, base), {"__module__": base.__module__})


def _is_secret(field: Any) -> bool:
    attribute: _Attribute | None = getattr(field, "attribute", None)
    return isinstance(field, _HidingFormField) or (attribute is not None and attribute.is_secret())


def _masked(error: Exception) -> HiddenError:
    if isinstance(error, InvalidValue):
        return HiddenError(error.in_words(), code="invalid_value")
    if not isinstance(error, ValidationError):
        return HiddenError(_("Enter a valid value."), code="invalid")
    errors = []
    for each in error.error_list:
        params = {name: _hidden(name, given) for name, given in (each.params or {}).items()}
        errors.append(HiddenError(each.message, each.code, params or None))
    return HiddenError(errors)


def _hidden(name: str, given: object) -> object:
    """Mask the value and any other text; keep bounds, and the names of a model and a field."""
    return MASK if name in _VALUES or (isinstance(given, str) and name not in _NAMES) else given
