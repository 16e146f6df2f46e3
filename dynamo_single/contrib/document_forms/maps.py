"""A form field for a map with a schema: a row for each declared key, by its type, and JSON for its other contents.

Lists in the map whose elements are declared have their own rows (``lists``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from dynamo_single.contrib.document_forms.lists import EMPTY, Elements, ListedFormField, inputs_of, tried
from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.schema.attributes import Attribute, BooleanAttribute
from dynamo_single.orm.schema.fields.documents import document_text
from dynamo_single.orm.schema.fields.forms import DocumentFormField
from dynamo_single.orm.schema.keys import values
from dynamo_single.orm.schema.types import SentData, SentFiles

#: The number of empty rows of a list. A list inside a row of another list has one.
_EXTRA: Final = 3
_PLACE_TWICE: Final = _(
    "%(row)s: the JSON contains another value of %(key)s. Remove it from the JSON, or leave this row empty."
)


class Place:
    """A declared key of a map, or an element of a list: its path, its attribute, and the form field of its row.

    The field of a map or list with several inputs determines itself whether it returns a value unchanged.
    """

    def __init__(
        self, path: tuple[str, ...], attribute: Any, field: Any, optional: Sequence[tuple[str, ...]] = ()
    ) -> None:
        self.path, self.attribute, self.field = path, attribute, field
        #: The paths of the maps around it that may be missing.
        self.optional = optional
        # A single-line input drops line ends, and a text area sends "\r\n" for each.
        self._line_ends = frozenset("\r" if isinstance(field.widget, forms.Textarea) else "\r\n")
        field.required = False  # the schema reports a missing value with its path
        if hasattr(field, "strip"):
            field.strip = False

    @property
    def label(self) -> str:
        """The readable names of the path, and of the attribute."""
        names = [*(step.replace("_", " ") for step in self.path[:-1]), str(self.attribute.field.verbose_name)]
        return " / ".join(str(capfirst(name)) for name in names)

    def shown(self, stored: object) -> Any:
        """Return what the row shows of a stored value, or ``None`` if the row would not return the same value."""
        if hasattr(self.field, "gives_back"):
            return stored if self.field.gives_back(stored) else None
        if stored is None:
            return None
        try:
            text = self.field.widget.format_value(self.field.prepare_value(self._read(stored)))
            text = text[0] if isinstance(text, list) else text
            if isinstance(text, str) and self._line_ends.intersection(text):
                return None  # a browser would send another text
            return text if text not in EMPTY and self.held(self.field.clean(text)) == stored else None
        except (InvalidValue, ValidationError, ValueError, TypeError, LookupError):
            return None

    def held(self, value: object) -> Any:
        """Return a value as a document stores it: a date becomes its stored text.

        Raises ``ValidationError`` for a value that the attribute's own validators reject, and ``InvalidValue``.
        """
        if hasattr(self.field, "gives_back"):
            return value
        if isinstance(value, str) and isinstance(self.field.widget, forms.Textarea):
            value = value.replace("\r\n", "\n")
        self.attribute.field.run_validators(self.attribute.prepare(value))
        return values.from_attribute_value(self.attribute.to_attribute_value(value))

    def is_missing(self, value: object) -> bool:
        """Return whether a map lacks the key, and contains all maps around it."""
        if self.attribute.null or self.attribute.field.has_default() or _at(value, self.path) is not None:
            return False
        return all(_at(value, path) is not None for path in self.optional)

    def _read(self, stored: object) -> Any:
        return self.attribute.from_attribute_value(dict(values.to_attribute_value(stored)))


def places_of(
    shape: Any, path: tuple[str, ...] = (), optional: tuple[tuple[str, ...], ...] = (), *, extra: int = _EXTRA
) -> list[Place]:
    """Return the keys that rows can edit: values with a single input, and lists of such values.

    The others stay in the JSON.
    """
    found: list[Place] = []
    for name, member in shape.members.items():
        here = (*path, name)
        if (within := _shape_of(member)) is not None:
            may_be_missing = isinstance(member, Attribute) and member.null
            found += places_of(within, here, (*optional, here) if may_be_missing else optional, extra=extra)
        else:
            field = _field_of(member, extra)
            found += [] if field is None else [Place(here, member, field, optional)]
    return found


def _shape_of(member: Any) -> Any:
    """Return what a map declares, as a member of a map or a list; ``None`` for another value."""
    if not isinstance(member, Attribute):
        return member
    return member.shape if member.attr_type == "M" else None


def _field_of(member: Any, extra: int) -> Any:
    """Return the form field of a value, or ``None`` if a single input cannot contain it."""
    if member.attr_type == "L" and member.shape is not None:
        elements = elements_of(member.shape, extra=extra)
        return None if elements is None else ListedFormField(elements=elements, is_inside=True)
    if member.attr_type not in ("S", "N", "BOOL") or member.document:
        return None
    # A checkbox cannot express a missing value.
    field = forms.NullBooleanField() if isinstance(member, BooleanAttribute) else member.field.formfield()
    return None if field is None or isinstance(field.widget, forms.MultiWidget) else deepcopy(field)


def elements_of(declared: Any, *, extra: int = _EXTRA) -> Elements | None:
    """Return the description of a list's elements for its form, or ``None`` if a row cannot contain one."""
    member = declared.member
    shape = _shape_of(member)
    if shape is not None:
        field = ShapedFormField(shape=shape, extra=1, says_missing=True)
        return Elements(field, partial(_given_back, field), _as_it_is, extra)
    field = _field_of(member, 1)
    if field is None:
        return None
    place = Place((), member, field)
    return Elements(field, place.shown, place.held, extra)


def form_class_of(attribute: Any) -> Any:
    """Return the class of a form field with rows, or ``None`` for an attribute without a schema or without rows."""
    shape = attribute.shape
    if shape is None:
        return None
    if attribute.attr_type == "M":
        return partial(ShapedFormField, shape=shape)
    elements = elements_of(shape)
    if elements is None:
        return None
    return partial(ListedFormField, elements=elements, empty=None if attribute.null else [])


def _given_back(field: Any, value: object) -> object:
    return value if field.gives_back(value) else None


def _as_it_is(value: object) -> object:
    return value


class ShapedWidget(forms.MultiWidget):
    """A row for each key, and one for the rest. Also accepts the complete map as JSON under its own name."""

    template_name = "dynamo_single/forms/shaped.html"
    use_fieldset = True

    def __init__(self, places: Sequence[Place], rest: Any, attrs: dict[str, object] | None = None) -> None:
        super().__init__([*(place.field.widget for place in places), rest], attrs)
        self.places = places

    def decompress(self, value: Any) -> list[Any]:
        """Return the value of each row and the text of the rest, or ``None`` values without a map."""
        if not isinstance(value, dict):
            return [None] * len(self.widgets)
        rest, shown = deepcopy(value), []
        for place in self.places:
            text = place.shown(_at(value, place.path))
            shown.append(text)
            if text is not None:
                _take(rest, place.path)
        return [*shown, document_text(rest) if rest or not value else ""]

    def value_from_datadict(self, data: SentData, files: SentFiles, name: str) -> list[object]:
        """Return the rows. A map that was sent as one text is the rest."""
        if name in data:
            return [*([None] * len(self.places)), data[name]]
        return super().value_from_datadict(data, files, name)

    def value_omitted_from_data(self, data: SentData, files: SentFiles, name: str) -> bool:
        """Return whether neither the map nor one of its rows was sent."""
        return name not in data and super().value_omitted_from_data(data, files, name)

    def put(self, data: Any, name: str, value: object, put: Callable[[object, str, object, object], None]) -> None:
        """Write the data that this widget would send for a map; ``put`` does so for the widget of an input."""
        data.pop(name, None)
        for number, (widget, part) in enumerate(zip(self.widgets, self.decompress(value), strict=True)):
            put(data, f"{name}_{number}", widget, part)

    def get_context(self, name: str, value: object, attrs: dict[str, object] | None) -> dict[str, object]:
        """Return Django's context with the label of each row."""
        # The row of a list has a label for the complete row.
        attrs = {key: each for key, each in (attrs or {}).items() if key != "aria-label"}
        context: dict[str, Any] = super().get_context(name, value, attrs)
        labels = [*(place.label for place in self.places), _("Additional keys, as JSON")]
        for row, label in zip(context["widget"]["subwidgets"], labels, strict=True):
            row["label"], row["has_rows"] = label, "rows" in row
            row["attrs"].pop("required", None)
        # A form shows the rest on demand, unless it contains something.
        rest = context["widget"]["subwidgets"][-1]
        rest["is_rest"] = not rest["is_hidden"]
        return context


class ShapedFormField(forms.MultiValueField):
    """A form field for a map with a schema. An empty row omits its key, unless the rest contains it.

    A value that a row cannot show unchanged, such as a value of another type, stays in the rest. Two values of one key,
    in its row and in the rest, are an error. With ``says_missing``, a missing required value is also an error.
    """

    def __init__(self, *, shape: Any, extra: int = _EXTRA, says_missing: bool = False, **kwargs: Any) -> None:
        for name in ("encoder", "decoder", "max_length"):
            kwargs.pop(name, None)
        self.places, self.says_missing = places_of(shape, extra=extra), says_missing
        rest = DocumentFormField(holds=dict, required=False)
        kwargs["widget"] = ShapedWidget(self.places, rest.widget)
        # Django adds it if a default is a function. The hidden text of a map is Python's, which equals no map.
        kwargs["show_hidden_initial"] = False
        fields = [*(place.field for place in self.places), rest]
        super().__init__(fields, require_all_fields=False, **{**kwargs, "required": False})

    def inputs(self, value: object) -> int:
        """Return the number of inputs of a map."""
        return sum(inputs_of(place.field, _at(value, place.path)) for place in self.places) + 1

    def gives_back(self, value: object) -> bool:
        """Return whether the form returns a map unchanged: everything that rows do not show is JSON."""
        return isinstance(value, dict)

    def clean(self, value: Any) -> Any:
        """Return the map. An error names its row."""
        if self.disabled and not isinstance(value, list):
            return value
        given = value if isinstance(value, list | tuple) else self.widget.decompress(value)
        *rows, rest = given or [None] * len(self.fields)
        errors: list[Any] = []
        found = tried(self.fields[-1].clean, rest, "", errors)
        found = deepcopy(found) if isinstance(found, dict) else None
        for place, text in zip(self.places, rows, strict=True):
            cleaned = None if text in EMPTY else tried(place.field.clean, text, f"{place.label}: ", errors)
            if cleaned in EMPTY:
                continue
            held = tried(place.held, cleaned, f"{place.label}: ", errors)
            if held is None:
                continue
            if _in_the_way(found, place.path, held):
                text = _PLACE_TWICE % {"row": place.label, "key": ".".join(place.path)}
                errors.append(ValidationError(text, "invalid"))
            else:
                found = _with(found or {}, place.path, held)
        if self.says_missing and found is not None and not errors:
            errors += [
                ValidationError(f"{place.label}: {place.field.error_messages['required']}", "required")
                for place in self.places
                if place.is_missing(found)
            ]
        if errors:
            raise ValidationError(errors)
        return found

    def has_changed(self, initial: object, data: object) -> bool:
        """Return whether the map changed."""
        try:
            return not self.disabled and bool(self.clean(data) != initial)
        except ValidationError:
            return True

    def in_words(self, value: object) -> str:
        """Return the map on one line, for messages and the log."""
        return "" if value is None else document_text(value, indent=None)


def _at(value: Any, path: Sequence[str]) -> Any:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _in_the_way(value: object, path: Sequence[str], held: object) -> bool:
    """Return whether writing a path would replace a value, at the path itself or on the way to it."""
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


def _with(value: Mapping[str, object], path: Sequence[str], held: object) -> dict[str, object]:
    step, *below = path
    if not below:
        return {**value, step: held}
    within = value.get(step)
    return {**value, step: _with(within if isinstance(within, dict) else {}, below, held)}
