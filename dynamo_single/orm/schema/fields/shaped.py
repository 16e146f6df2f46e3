"""A map with a schema in a form: a row for each declared place, by its type, and JSON for whatever else it holds."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.schema.encoding import values
from dynamo_single.orm.schema.fields.documents import document_text
from dynamo_single.orm.schema.fields.forms import DocumentFormField

_EMPTY: Final = (None, "")
_TWICE: Final = _("%(row)s: the JSON has another value of %(key)s. Take it out there, or leave this row empty.")


class Place:
    """A declared place of a map: its path, its attribute, and the form field that its row has."""

    def __init__(self, path: tuple[str, ...], attribute: Any, field: Any) -> None:
        self.path, self.attribute, self.field = path, attribute, field
        field.required = False  # what is missing the schema says itself, by its path
        if hasattr(field, "strip"):
            field.strip = False

    @property
    def label(self) -> str:
        """The names on the way, as people read them."""
        return " / ".join(str(capfirst(step.replace("_", " "))) for step in self.path)

    def shown(self, stored: object) -> Any:
        """What the row shows of a stored value; ``None`` where it would not give the same value back."""
        try:
            text = self.field.widget.format_value(self.field.prepare_value(self._read(stored)))
            text = text[0] if isinstance(text, list) else text
            return text if text not in _EMPTY and self.held(self.field.clean(text)) == stored else None
        except (InvalidValue, ValidationError, ValueError, TypeError, LookupError):
            return None

    def held(self, value: object) -> Any:
        """A value as a document holds it: a date is the text that it is stored as."""
        return values.from_attribute_value(self.attribute.to_attribute_value(value))

    def _read(self, stored: object) -> Any:
        return self.attribute.from_attribute_value(dict(values.to_attribute_value(stored)))


def places_of(shape: Any, path: tuple[str, ...] = ()) -> list[Place]:
    """The places that a row can hold: one value each, by a field with one input; the others are left to the JSON."""
    found: list[Place] = []
    for name, member in shape.members.items():
        here = (*path, name)
        if hasattr(member, "members"):
            found += places_of(member, here)
        elif member.attr_type in ("S", "N", "BOOL") and not member.document:
            # A box cannot say that there is no value.
            field = forms.NullBooleanField() if member.attr_type == "BOOL" else member.field.formfield()
            if field is not None and not isinstance(field.widget, forms.MultiWidget):
                found.append(Place(here, member, deepcopy(field)))
    return found


class ShapedWidget(forms.MultiWidget):
    """A row for each place, and one for the rest; takes the whole map as JSON under its own name as well."""

    template_name = "dynamo_single/forms/shaped.html"
    use_fieldset = True

    def __init__(self, places: Sequence[Place], rest: Any, attrs: Any = None) -> None:
        super().__init__([*(place.field.widget for place in places), rest], attrs)
        self.places = places

    def decompress(self, value: Any) -> list[Any]:
        """What each row shows, and the text of the rest; nothing for no map."""
        if not isinstance(value, dict):
            return [None] * len(self.widgets)
        rest, shown = deepcopy(value), []
        for place in self.places:
            text = place.shown(_at(value, place.path))
            shown.append(text)
            if text is not None:
                _take(rest, place.path)
        return [*shown, document_text(rest) if rest or not value else ""]

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        """Django's; a map that was sent as one text is the rest."""
        if name in data:
            return [*([None] * len(self.places)), data[name]]
        return super().value_from_datadict(data, files, name)

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        """Whether neither the map nor a row of it was sent."""
        return name not in data and super().value_omitted_from_data(data, files, name)

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        """Django's, with the label of each row."""
        context: dict[str, Any] = super().get_context(name, value, attrs)
        labels = [*(place.label for place in self.places), _("Further keys, as JSON")]
        for row, label in zip(context["widget"]["subwidgets"], labels, strict=True):
            row["label"] = label
            row["attrs"].pop("required", None)
        return context


class ShapedFormField(forms.MultiValueField):
    """A map that has a schema. A row left empty leaves its place out, unless the rest has it.

    What a row cannot show as it is, such as a value of another type than the declared one, stays in the rest. Two
    values of one place, in its row and in the rest, are an error.
    """

    def __init__(self, *, shape: Any, **kwargs: Any) -> None:
        for name in ("encoder", "decoder", "max_length"):
            kwargs.pop(name, None)
        self.places = places_of(shape)
        rest = DocumentFormField(holds=dict, required=False)
        kwargs["widget"] = ShapedWidget(self.places, rest.widget)
        # Django asks for it where a default is a function. The hidden text of a map is Python's, which equals no map.
        kwargs["show_hidden_initial"] = False
        fields = [*(place.field for place in self.places), rest]
        super().__init__(fields, require_all_fields=False, **{**kwargs, "required": False})

    def clean(self, value: Any) -> Any:
        """The map; an error names the row."""
        if self.disabled and not isinstance(value, list):
            return value
        given = value if isinstance(value, list | tuple) else self.widget.decompress(value)
        *rows, rest = given or [None] * len(self.fields)
        errors: list[Any] = []
        found = self._row(self.fields[-1], rest, "", errors)
        found = deepcopy(found) if isinstance(found, dict) else None
        for place, text in zip(self.places, rows, strict=True):
            cleaned = None if text in _EMPTY else self._row(place.field, text, f"{place.label}: ", errors)
            if cleaned in _EMPTY:
                continue
            try:
                held = place.held(cleaned)
            except InvalidValue as error:
                errors.append(ValidationError(f"{place.label}: {error}", "invalid"))
                continue
            if _in_the_way(found, place.path, held):
                errors.append(ValidationError(_TWICE % {"row": place.label, "key": ".".join(place.path)}, "invalid"))
            else:
                found = _with(found or {}, place.path, held)
        if errors:
            raise ValidationError(errors)
        return found

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Compare maps."""
        try:
            return not self.disabled and bool(self.clean(data) != initial)
        except ValidationError:
            return True

    def in_words(self, value: object) -> str:
        """The map on one line, for messages and the log."""
        return "" if value is None else document_text(value, indent=None)

    def _row(self, field: Any, text: Any, said: str, errors: list[Any]) -> Any:
        try:
            return field.clean(text)
        except ValidationError as error:
            errors += [ValidationError(f"{said}{message}", "invalid") for message in error.messages]
            return None


def _at(value: Any, path: Sequence[str]) -> Any:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _in_the_way(value: object, path: Sequence[str], held: object) -> bool:
    """Whether a place, or one on the way to it, has a value that would be lost if this one were put there."""
    for step in path:
        if not isinstance(value, dict):
            break
        value = value.get(step)
    else:
        return value is not None and value != held
    return value is not None


def _take(value: dict[str, Any], path: Sequence[str]) -> None:
    """Take a place away, with the maps that hold nothing else."""
    step, *below = path
    if not below:
        del value[step]
        return
    _take(value[step], below)
    if not value[step]:
        del value[step]


def _with(value: dict[str, Any], path: Sequence[str], held: object) -> dict[str, Any]:
    step, *below = path
    if not below:
        return {**value, step: held}
    within = value.get(step)
    return {**value, step: _with(within if isinstance(within, dict) else {}, below, held)}
