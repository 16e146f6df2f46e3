"""What documents and sets are in a form: JSON text, and one member a line.

This module knows Django's forms and values, and must not know models or attributes.
"""

from __future__ import annotations

import json
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from dynamo_single.later import Later
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.table.limits import MAX_EXPONENT

if TYPE_CHECKING:
    import simplejson
else:
    simplejson = Later("simplejson")


class DocumentFormField(forms.JSONField):
    """JSON in a form, with decimal numbers kept digit for digit."""

    def to_python(self, value: object) -> Any:
        """Parse JSON; a number with a fraction becomes a ``Decimal``."""
        if self.disabled or value in self.empty_values or not isinstance(value, str):
            return None if value in self.empty_values else value
        try:
            return json.loads(value, parse_float=Decimal)
        except (ValueError, RecursionError) as error:  # no JSON, a whole number of thousands of digits, or too deep
            raise ValidationError(self.error_messages["invalid"], code="invalid", params={"value": value}) from error

    def bound_data(self, data: object, initial: object) -> object:
        """Show what was typed, also when it is not JSON."""
        return initial if self.disabled else data

    def prepare_value(self, value: object) -> Any:
        """The document as JSON text."""
        return value if isinstance(value, str) else simplejson.dumps(value, use_decimal=True, ensure_ascii=False)

    def has_changed(self, initial: object, data: object) -> bool:
        """Compare documents, not their spelling."""
        if forms.Field.has_changed(self, initial, data):
            try:
                return bool(initial != self.to_python(data))
            except ValidationError:
                return True
        return False


class SetFormField(forms.CharField):
    """A set in a form: one member a line."""

    widget = forms.Textarea

    def __init__(self, *, member: Any = str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.member = member

    def prepare_value(self, value: Any) -> Any:
        """One member a line, sorted."""
        return value if isinstance(value, str) or value is None else "\n".join(str(v) for v in sorted(value))

    def to_python(self, value: Any) -> Any:
        """The set of the lines that are not empty; ``None`` if there are none."""
        if value in self.empty_values or not isinstance(value, str):
            return value or None
        lines = [line.strip() for line in value.splitlines() if line.strip()]
        try:
            return {self.member(line) for line in lines} or None
        except (ValueError, ArithmeticError) as error:
            raise ValidationError(_("Enter one number a line."), code="invalid") from error

    def has_changed(self, initial: object, data: object) -> bool:
        """Compare the members, not their order."""
        try:
            return (self.to_python(data) or set()) != (initial or set())
        except ValidationError:
            return True


def number_member(text: str) -> int | Decimal:
    """A line of a number set as a number."""
    number = Decimal(text)
    # A number that DynamoDB cannot hold is refused by the attribute; int() would write a billion digits first.
    whole = number.is_finite() and number.adjusted() <= MAX_EXPONENT and number == number.to_integral_value()
    return int(number) if whole else number


def shown_once_stored(model_field: object, field: Any) -> object:
    """The form field of an immutable attribute, disabled in a form of a stored object, whatever is sent for it."""
    if field is not None and getattr(getattr(model_field, "attribute", None), "immutable", False):
        # Django copies a form's fields with what is set on them; a method would stay that of the first one.
        field.get_bound_field = partial(_bound, model_field)
    return field


def _bound(model_field: Any, form: Any, name: str) -> object:
    field, instance = form.fields[name], getattr(form, "instance", None)
    if instance is not None and not instance._state.adding:
        field.disabled = True
        if not model_field.is_relation:
            # Django would give back what is shown: of a moment no more than the widget has a place for.
            field.clean = partial(_held, model_field, instance)
    return type(field).get_bound_field(field, form, name)


def _held(model_field: Any, instance: DynamoModel, shown: object) -> object:
    return model_field.value_from_object(instance)
