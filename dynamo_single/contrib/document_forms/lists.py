"""A form field for a list with declared elements: a row for each, which can be changed, moved and removed.

This module depends only on the form field of a row, not on how elements are declared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _
from msgspec import Struct

from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.schema.fields.documents import document_text
from dynamo_single.orm.schema.fields.forms import DocumentFormField
from dynamo_single.orm.schema.types import SentData, SentFiles

#: The values of an empty row, which is omitted.
EMPTY: Final = (None, "")
#: The most inputs of one list's rows; a longer list is JSON. Django accepts 1,000 inputs in a request (setting
#: ``DATA_UPLOAD_MAX_NUMBER_FIELDS``).
MAX_INPUTS: Final = 400
#: The placeholder for the number of a row in the row that the script copies.
ANOTHER: Final = "__row__"
_LIST_TWICE: Final = _(
    "The JSON contains a different list than the rows. Remove it from the JSON, or leave the rows empty."
)


class SentRow(Struct, frozen=True):
    """A submitted row: the data of its field, the position that the user typed, and whether to remove it."""

    value: Any
    position: str
    is_removed: bool


class SentRows(Struct, frozen=True):
    """A submitted list. ``is_whole`` is false if the number of rows is invalid."""

    rows: tuple[SentRow, ...] = ()
    rest: str | None = None
    is_whole: bool = True

    def __str__(self) -> str:
        """Return a text that differs if the submitted data differs."""
        return "\x00".join(
            (*(_as_text([each.value, each.position, each.is_removed]) for each in self.rows), self.rest or "")
        )


def _as_text(value: object) -> str:
    return "\x01".join(map(_as_text, value)) if isinstance(value, list | tuple) else "" if value is None else str(value)


class Elements(Struct, frozen=True):
    """The elements of a list's form.

    ``shown`` returns what a row's widget shows of a stored element, or ``None`` if the row would not return the same
    element. ``held`` returns a cleaned value as a document stores it. ``extra`` is the number of empty rows.
    """

    field: Any
    shown: Callable[[Any], Any]
    held: Callable[[Any], Any]
    extra: int

    def fits(self, value: object) -> bool:
        """Return whether rows show a list and return it unchanged."""
        if not isinstance(value, list):
            return False
        return self.inputs(value) <= MAX_INPUTS and all(self.shown(each) is not None for each in value)

    def inputs(self, value: Any) -> int:
        """Return the number of inputs of a list's rows."""
        rows = [*(value if isinstance(value, list) else ()), *([None] * self.extra)]
        return sum(inputs_of(self.field, each) + 2 for each in rows) + 2


def inputs_of(field: object, value: object) -> int:
    """Return the number of inputs that a form field has for a value."""
    return int(field.inputs(value)) if hasattr(field, "inputs") else 1


class ListedWidget(forms.Widget):
    """The rows of a list. Also accepts the complete list as JSON under its own name."""

    template_name = "dynamo_single/forms/listed.html"
    use_fieldset = True

    def __init__(self, elements: Elements, rest: Any, attrs: dict[str, object] | None = None) -> None:
        super().__init__(attrs)
        self.elements, self.rest = elements, rest

    @property
    def media(self) -> Any:
        """The assets of the inner widgets, and the script that adds rows."""
        own = forms.Media(js=["dynamo_single/admin/rows.js"])
        return self.elements.field.widget.media + self.rest.media + own

    def id_for_label(self, id_: str) -> str:
        """Return no identifier: each input has its own label."""
        return ""

    def use_required_attribute(self, initial: object) -> bool:
        """Return False: an empty row is omitted."""
        return False

    def value_from_datadict(self, data: SentData, files: SentFiles, name: str) -> SentRows:
        """Return the submitted rows, or no rows for a list that was sent as one text."""
        if name in data:
            return SentRows(rest=data[name])
        try:
            count = int(data.get(_part(name, "count")) or 0)
        except ValueError:
            count = -1
        if not 0 <= count <= MAX_INPUTS:
            return SentRows(is_whole=False)
        widget = self.elements.field.widget
        rows = (
            SentRow(
                widget.value_from_datadict(data, files, _part(name, number)),
                str(data.get(_part(name, number, "position"), "")).strip(),
                bool(data.get(_part(name, number, "remove"))),
            )
            for number in range(count)
        )
        return SentRows(tuple(rows), data.get(_part(name, "json")))

    def value_omitted_from_data(self, data: SentData, files: SentFiles, name: str) -> bool:
        """Return whether neither the list nor its rows were sent."""
        return name not in data and _part(name, "count") not in data

    def put(self, data: Any, name: str, value: object, put: Callable[[object, str, object, object], None]) -> None:
        """Write the data that this widget would send for a list; ``put`` does so for the widget of an input."""
        sent, _is_listed = self._rows(value)
        data.pop(name, None)
        data[_part(name, "count")] = str(len(sent.rows))
        data[_part(name, "json")] = sent.rest or ""
        for number, row in enumerate(sent.rows):
            put(data, _part(name, number), self.elements.field.widget, row.value)
            data[_part(name, number, "position")] = row.position
            data.pop(_part(name, number, "remove"), None)

    def format_value(self, value: object) -> object:
        """Return the value unchanged: the rows are built from it."""
        return value

    def get_context(self, name: str, value: Any, attrs: dict[str, object] | None) -> dict[str, Any]:
        """Return Django's context with the rows."""
        context: dict[str, Any] = super().get_context(name, value, attrs)
        sent, is_listed = self._rows(value)
        shared = {"disabled": True} if context["widget"]["attrs"].get("disabled") else {}
        stem = context["widget"]["attrs"].get("id") or f"id_{name}"
        found = []
        for number, row in enumerate(sent.rows):
            text = _("Row %(number)d") if row.position else _("Row %(number)d, new")
            found.append(self._row(name, number, stem, row, text % {"number": number + 1}, shared))
        rest = self.rest.get_context(_part(name, "json"), sent.rest, {**shared, "id": f"{stem}-json"})["widget"]
        rest["attrs"].pop("required", None)
        context["widget"] |= {
            "rows": found,
            "rest": rest,
            "count_name": _part(name, "count"),
            "is_listed": is_listed,
            "is_disabled": bool(shared),
            "name": name,
            "stem": stem,
            "another": self._another(name, stem) if is_listed and not shared else None,
            "most": MAX_INPUTS,
            "most_of_form": settings.DATA_UPLOAD_MAX_NUMBER_FIELDS,
        }
        return context

    def _row(self, name: str, number: object, stem: str, row: SentRow, label: str, shared: Any) -> dict[str, Any]:
        """Return a row for the template."""
        place = {**shared, "id": f"{stem}-{number}", "aria-label": label}
        shown = self.elements.field.widget.get_context(_part(name, number), row.value, place)["widget"]
        shown["attrs"].pop("required", None)
        return {"label": label, "widget": shown, "sent": row, "name": _part(name, number), "id": place["id"]}

    def _another(self, name: str, stem: str) -> dict[str, Any]:
        """Return an empty row that the script copies. The script replaces its placeholders with numbers."""
        # The placeholder in brackets counts from 1.
        label = str(_("Row %(number)d, new")).replace("%(number)d", f"{{{_part(name, ANOTHER)}}}")
        return self._row(name, ANOTHER, stem, SentRow(None, "", False), label, {})

    def _rows(self, value: Any) -> tuple[SentRows, bool]:
        """Return the rows that would be sent for a value, and whether rows show it."""
        if isinstance(value, SentRows):
            return value, bool(value.rows) or not value.rest
        if value is not None and not self.elements.fits(value):
            return SentRows(rest=document_text(value)), False
        shown = [SentRow(self.elements.shown(each), str(number), False) for number, each in enumerate(value or (), 1)]
        rows = (*shown, *([SentRow(None, "", False)] * self.elements.extra))
        return SentRows(rows, "[]" if value == [] else ""), True


class ListedFormField(forms.Field):
    """A form field for a list with declared elements. Empty rows and rows marked for removal are omitted.

    Rows are sorted by their positions. A list that rows cannot show unchanged, because it is too long or contains
    undeclared values, is JSON.
    """

    default_error_messages = {  # noqa: RUF012 - as Django declares it
        "broken": _("The rows of this list arrived incomplete. Open the page again."),
        "position": _("Enter the position of the row as an integer."),
        "twice": _LIST_TWICE,
    }

    def __init__(self, *, elements: Elements, is_inside: bool = False, empty: Any = None, **kwargs: Any) -> None:
        for name in ("encoder", "decoder", "max_length", "holds"):
            kwargs.pop(name, None)
        self.rest = DocumentFormField(holds=list, required=False)
        self.elements, self.empty = elements, empty
        # If the list is inside a map, the map's JSON contains what rows do not show.
        kwargs["widget"] = ListedWidget(elements, forms.HiddenInput() if is_inside else self.rest.widget)
        # Django adds it if a default is a function.
        kwargs["show_hidden_initial"] = False
        super().__init__(**kwargs)

    def inputs(self, value: object) -> int:
        """Return the number of inputs of a list."""
        return self.elements.inputs(value)

    def gives_back(self, value: object) -> bool:
        """Return whether rows show a list and return it unchanged."""
        return self.elements.fits(value)

    def clean(self, value: Any) -> Any:
        """Return the list. An error names its row."""
        if not isinstance(value, SentRows):
            return value
        cleaned = self._listed(value)
        if self.required and not cleaned:
            raise ValidationError(self.error_messages["required"], "required")
        self.run_validators(cleaned)
        return cleaned

    def has_changed(self, initial: object, data: object) -> bool:
        """Return whether the list changed. A required list that was left empty has not changed."""
        try:
            found = self._listed(data) if isinstance(data, SentRows) else data
            return not self.disabled and bool(found != (self.empty if initial is None else initial))
        except ValidationError:
            return True

    def in_words(self, value: object) -> str:
        """Return the list on one line, for messages and the log."""
        return "" if value is None else document_text(value, indent=None)

    def _listed(self, value: SentRows) -> Any:
        """Return the submitted list, regardless of whether the attribute accepts it."""
        if not value.is_whole:
            raise ValidationError(self.error_messages["broken"], "broken")
        errors: list[Any] = []
        found: list[tuple[float, Any]] = []
        for number, row in enumerate(value.rows, 1):
            held = None if row.is_removed else self._held(row, number, errors)
            if held not in EMPTY:
                found.append((self._place(row, number, errors), held))
        rest = tried(self.rest.clean, value.rest, "", errors)
        if errors:
            raise ValidationError(errors)
        listed = [held for _place, held in sorted(found, key=_first)]
        if listed and rest != listed and (rest or self._is_typed(value)):
            raise ValidationError(self.error_messages["twice"], "invalid")
        return listed or (self.empty if rest is None else rest)

    def _is_typed(self, value: SentRows) -> bool:
        """Return whether a user wrote JSON in addition to rows. The JSON input is shown for an empty list."""
        is_said = not self.widget.rest.is_hidden and bool(str(value.rest or "").strip())
        return is_said and any(row.position for row in value.rows)

    def _held(self, row: SentRow, number: int, errors: list[object]) -> Any:
        said = _("Row %(number)d") % {"number": number}
        cleaned = None if row.value in EMPTY else tried(self.elements.field.clean, row.value, f"{said}: ", errors)
        return None if cleaned in EMPTY else tried(self.elements.held, cleaned, f"{said}: ", errors)

    def _place(self, row: SentRow, number: int, errors: list[object]) -> float:
        """Return the sort position of a row: a row that moves up comes before the existing one, else after it."""
        if not row.position:
            return float("inf")
        try:
            wanted = int(row.position)
        except ValueError:
            said = _("Row %(number)d") % {"number": number}
            errors.append(ValidationError(f"{said}: {self.error_messages['position']}", "invalid"))
            return 0.0
        # greater than the number of any row, since a float has limited precision
        wanted = min(max(wanted, 0), MAX_INPUTS + 1)
        return wanted + (0 if wanted == number else 0.5 if wanted > number else -0.5)


def _part(name: str, *parts: object) -> str:
    """Return the name of an input of a list. No attribute's name contains a point, so that it is unique."""
    return ".".join(map(str, (name, *parts)))


def _first(pair: Sequence[object]) -> Any:
    return pair[0]


def tried(make: Callable[[Any], Any], given: Any, said: str, errors: list[Any]) -> Any:
    """Return the result for a value. If it is rejected, return ``None`` and append the errors with a prefix."""
    try:
        return make(given)
    except ValidationError as error:
        errors += [ValidationError(f"{said}{message}", "invalid") for message in error.messages]
    except InvalidValue as error:
        errors.append(ValidationError(f"{said}{error.in_words()}", "invalid"))
    return None
