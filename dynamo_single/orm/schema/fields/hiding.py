"""Validation of fields whose errors do not contain secrets.

Django's messages contain the value that was given, and so do the errors that cause them.
"""

from __future__ import annotations

from typing import Any, Protocol

from django.core.exceptions import ValidationError
from django.db import models

from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.schema.encoding.secrets import MASK

#: Parameters of Django's messages that contain the value, and texts that do not.
_VALUES = {"value", "pk"}
_NAMES = {"model", "field"}


class _Attribute(Protocol):
    def is_secret(self) -> bool: ...


class HidingField(models.Field):  # type: ignore[type-arg]  # not generic at run time
    """A field that validates as Django's does; if it is a secret, its errors do not contain the value."""

    def clean(self, value: object, model_instance: Any) -> Any:
        """Django's validation; of a secret, only ``ValidationError`` is raised, without its causes."""
        try:
            return super().clean(value, model_instance)
        except (ValidationError, InvalidValue) as error:
            attribute: _Attribute | None = getattr(self, "attribute", None)
            if attribute is None or not attribute.is_secret():
                raise
            raise _masked(error) from None


def _masked(error: ValidationError | InvalidValue) -> ValidationError:
    if isinstance(error, InvalidValue):
        return ValidationError(error.in_words(), code="invalid_value")
    errors = []
    for each in error.error_list:
        params = {name: _hidden(name, given) for name, given in (each.params or {}).items()}
        errors.append(ValidationError(each.message, each.code, params or None))
    return ValidationError(errors)


def _hidden(name: str, given: object) -> object:
    """Mask the value and any other text; keep bounds, and the names of a model and a field."""
    return MASK if name in _VALUES or (isinstance(given, str) and name not in _NAMES) else given
