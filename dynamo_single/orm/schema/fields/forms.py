"""Documents and sets in a form: JSON text, and one member per line.

This module knows Django's forms and values, and must not know models or attributes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable
from decimal import Decimal
from functools import lru_cache, partial, wraps
from typing import Any, ClassVar, TypeVar

from django import forms
from django.core.exceptions import ValidationError
from django.db import models
from django.utils import formats
from django.utils.translation import gettext_lazy as _

from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.schema.fields.documents import document_of, document_text
from dynamo_single.orm.schema.keys.secret_values import MASK
from dynamo_single.orm.schema.types import DynamoModel, StoredAttribute
from dynamo_single.table.request import MAX_EXPONENT


class _Typed(str):
    """Text that a user typed, shown unchanged."""


class DocumentWidget(forms.Textarea):
    """JSON text in a monospaced font; as high as its content, up to a limit."""

    class Media:
        css = {"all": ("dynamo_single/admin/forms.css",)}  # noqa: RUF012 - as Django declares it

    def __init__(self, attrs: dict[str, object] | None = None) -> None:
        super().__init__({"class": "dynamo-document", "spellcheck": "false", "cols": 80, **(attrs or {})})

    def get_context(self, name: str, value: Any, attrs: dict[str, object] | None) -> dict[str, object]:
        """Django's, with as many rows as there are lines, of three to thirty."""
        context: dict[str, Any] = super().get_context(name, value, attrs)
        if "rows" not in (attrs or {}):
            context["widget"]["attrs"]["rows"] = min(max(str(value or "").count("\n") + 2, 3), 30)
        return context


class DocumentFormField(forms.JSONField):
    """JSON in a form, indented, with decimal numbers kept digit for digit.

    ``holds`` is the type of a document that is a map or a list, in which sets and binary have a form of their own
    (``documents``); ``None`` for any JSON.
    """

    widget = DocumentWidget

    default_error_messages: ClassVar[dict[str, Any]] = {
        "no_dict": _('Enter an object of JSON, such as {"key": "value"}.'),
        "no_list": _("Enter a list of JSON, such as [1, 2]."),
    }

    def __init__(self, *, holds: type | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.holds = holds

    def to_python(self, value: object) -> Any:
        """Parse JSON; a number with a fraction becomes a ``Decimal``."""
        if self.disabled or value in self.empty_values or not isinstance(value, str):
            return None if value in self.empty_values else value
        found = document_of(value, marked=self.holds is not None)
        if self.holds is not None and found is not None and not isinstance(found, self.holds):
            code = f"no_{self.holds.__name__}"
            raise ValidationError(self.error_messages[code], code="invalid")
        return found

    def bound_data(self, data: object, initial: object) -> object:
        """Show the typed text, even if it is not JSON."""
        if self.disabled:
            return initial
        return None if data is None else _Typed(data)

    def prepare_value(self, value: object) -> Any:
        """Return the document as indented JSON text; a string is also JSON, in quotation marks."""
        if value is None or isinstance(value, _Typed):
            return value
        return document_text(value, marked=self.holds is not None)

    def in_words(self, value: object) -> str:
        """The document on one line, for messages and the log."""
        return "" if value is None else document_text(value, marked=self.holds is not None, indent=None)

    def has_changed(self, initial: object, data: object) -> bool:
        """Compare documents, not their spelling."""
        if forms.Field.has_changed(self, initial, data):
            try:
                return bool(initial != self.to_python(data))
            except ValidationError:
                return True
        return False


class SetFormField(forms.CharField):
    """A set in a form: one member a line.

    Spaces around a member are ignored. A string with spaces at its ends, or with several lines, is in quotation marks,
    as in JSON.
    """

    widget = forms.Textarea

    def __init__(self, *, member: Any = str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.member = member

    def prepare_value(self, value: Any) -> object:
        """Write one member per line, sorted."""
        return value if isinstance(value, str) or value is None else "\n".join(map(self._line, sorted(value)))

    def to_python(self, value: Any) -> Any:
        """The set of the lines that are not empty; ``None`` if there are none."""
        if value in self.empty_values or not isinstance(value, str):
            return value or None
        found = [
            self._member(number, line.strip()) for number, line in enumerate(value.splitlines(), 1) if line.strip()
        ]
        return set(found) or None

    def in_words(self, value: Any) -> str:
        """The members on one line, sorted, for messages and the log."""
        return ", ".join(map(str, sorted(value or ())))

    def has_changed(self, initial: object, data: object) -> bool:
        """Compare the members, not their order."""
        try:
            return (self.to_python(data) or set()) != (initial or set())
        except ValidationError:
            return True

    def _line(self, member: object) -> str:
        text = str(member)
        fits = text.splitlines() == [text] and text == text.strip() and not text.startswith('"')
        return text if fits or self.member is not str else json.dumps(text)

    def _member(self, number: int, line: str) -> Any:
        try:
            if self.member is str and len(line) > 1 and line[0] == line[-1] == '"':
                return str(json.loads(line))
            return self.member(line)
        except (ValueError, ArithmeticError) as error:
            text = _('Line %(number)d: "%(line)s" is no number.')
            if self.member is str:
                text = _("Line %(number)d: %(line)s is not a string in quotation marks. Write its content as in JSON.")
            raise ValidationError(text, code="invalid", params={"number": number, "line": line}) from error


class LimitedChoices:
    """A form field for objects, before Django's: a filter applies ``limit_choices_to``, instead of a subquery."""

    queryset: Any

    def get_limit_choices_to(self) -> Any:
        """Filter the objects, and return nothing that is still to be done: called once for each form."""
        django: Any = super()
        limit = django.get_limit_choices_to()
        if limit and self.queryset is not None:
            self.queryset = self.queryset.complex_filter(limit)
        return {}


class LimitedChoiceField(LimitedChoices, forms.ModelChoiceField):  # type: ignore[type-arg]  # not generic at run time
    """Django's field of a reference, limited by a filter."""


def number_member(text: str) -> int | Decimal:
    """A line of a number set as a number."""
    number = Decimal(text)
    # A number that DynamoDB cannot hold is refused by the attribute; int() would write a billion digits first.
    whole = number.is_finite() and number.adjusted() <= MAX_EXPONENT and number == number.to_integral_value()
    return int(number) if whole else number


class NumberFormField(forms.FloatField):
    """A number in a form; an integer keeps all its digits, while a ``float`` ends at 16."""

    def to_python(self, value: object) -> Any:
        """Return an ``int`` if the number is an integer, else a ``float``."""
        found = super().to_python(value)
        if found is None:
            return None
        return whole_or_float(formats.sanitize_separators(value) if self.localize else value, found)


def whole_or_float(value: object, found: float) -> int | float:
    """The whole number that a value is, exactly, or what was found of it as a ``float``."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        number = number_member(str(value).strip())
    except ArithmeticError:
        return found
    return number if isinstance(number, int) else found


def shown_once_stored(model_field: object, field: Any) -> object:
    """The form field of an immutable attribute, disabled in a form of a stored object, whatever is sent for it."""
    if field is not None and getattr(getattr(model_field, "attribute", None), "immutable", False):
        # Django copies a form's fields with their instance attributes; a method would still belong to the first field.
        field.get_bound_field = partial(_bound, model_field)
    return field


def _bound(model_field: Any, form: Any, name: str) -> object:
    field, instance = form.fields[name], getattr(form, "instance", None)
    if instance is not None and not instance._state.adding:
        field.disabled = True
        if not model_field.is_relation:
            # Django would return the shown text, which cuts off a datetime to the widget's precision.
            field.clean = partial(_held, model_field, instance)
    return type(field).get_bound_field(field, form, name)


def _held(model_field: Any, instance: DynamoModel, shown: object) -> object:
    return model_field.value_from_object(instance)


# Fields and form fields whose errors do not contain secrets.  Django's messages contain the value, and so do their
# parameters and the errors that cause them.

_Method = TypeVar("_Method", bound=Callable[..., Any])

#: Parameters of Django's messages that contain the value, and replacements without it.
_VALUES = {"value", "pk"}
_NAMES = {"model", "field"}


class HiddenError(ValidationError):
    """The error of a secret's value: neither its messages nor their parameters contain the value."""


def hide_value_errors(method: _Method) -> _Method:
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

    @hide_value_errors
    def to_python(self, value: object) -> Any:
        """Convert a value as Django does."""
        return super().to_python(value)

    @hide_value_errors
    def get_db_prep_value(self, value: object, connection: Any, prepared: bool = False) -> Any:
        """Convert a value as Django does; no query of this app uses the result."""
        return super().get_db_prep_value(value, connection, prepared)

    @hide_value_errors
    def get_db_prep_save(self, value: object, connection: Any) -> Any:
        """Convert a value as Django does; no query of this app uses the result."""
        return super().get_db_prep_save(value, connection)

    @hide_value_errors
    def validate(self, value: object, model_instance: Any) -> None:
        """Validate a value as Django does."""
        super().validate(value, model_instance)

    @hide_value_errors
    def run_validators(self, value: object) -> None:
        """Run the field's validators."""
        super().run_validators(value)

    @hide_value_errors
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
    @hide_value_errors
    def to_python(self, value: Any) -> Any:
        """Convert what was sent."""
        return super().to_python(value)

    @hide_value_errors
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
    attribute: StoredAttribute | None = getattr(field, "attribute", None)
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
