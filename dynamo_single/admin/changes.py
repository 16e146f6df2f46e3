"""The log's message of a change: the fields of an object and its inlines, with their values before and after."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from django.utils.encoding import force_str
from django.utils.translation import gettext

from dynamo_single.admin.secrets import Masks
from dynamo_single.forms import in_words
from dynamo_single.orm.schema.keys.secret_values import MASK

#: Characters of a value that the log keeps, and fields of one change whose values it keeps.
MAX_LENGTH: Final = 100
MAX_FIELDS: Final = 50


def with_values(message: list[dict[str, Any]], form: Any, formsets: Iterable[Any], masks: Masks) -> list[Any]:
    """Django's message of a change with the values of each field before and after, where they are known.

    Django names the changed rows of an inline in the order in which it saved them.
    """
    rows = [*_changed_rows(formsets or ())]
    found: list[Any] = []
    left = MAX_FIELDS
    for entry in message:
        changed = entry.get("changed")
        if changed is None:
            found.append(entry)
            continue
        source = (rows.pop(0) if rows else None) if "object" in changed else form
        values = {} if source is None else dict(islice(_values(source, masks), left))
        left -= len(values)
        found.append({"changed": {**changed, "values": values}} if values else entry)
    return found


def readable_message(message: list[dict[str, Any]], text: str) -> str:
    """A message for people: Django's text of it, and below it the values."""
    lines = [
        _of(changed)
        + gettext('%(field)s: from "%(before)s" to "%(after)s"')
        % {"field": gettext(label), "before": old, "after": new}
        for changed in (entry.get("changed", {}) for entry in message)
        for label, (old, new) in changed.get("values", {}).items()
    ]
    return f"{text} {'; '.join(lines)}." if lines else text


def _of(changed: dict[str, Any]) -> str:
    """Whose values they are, of a row of an inline."""
    return f"{gettext(changed['name'])} “{changed['object']}”, " if "object" in changed else ""


def _changed_rows(formsets: Iterable[Any]) -> Iterator[Any]:
    for formset in formsets:
        by_object = {id(form.instance): form for form in formset.initial_forms}
        for changed, _fields in formset.changed_objects:
            yield by_object.get(id(changed))


def _values(form: Any, masks: Masks) -> Iterator[tuple[str, tuple[str, str]]]:
    for name in form.changed_data:
        field = form.fields.get(name)
        if field is None:
            continue
        label, model = force_str(field.label or name), type(form.instance)
        if masks.hides(model, "", name):
            yield label, (MASK, MASK)
            continue
        shown = (masks.inside(model, name, each) for each in (form[name].initial, form.cleaned_data.get(name)))
        before, after = (_shortened(in_words(field, each)) for each in shown)
        yield label, (before, after)


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_LENGTH else f"{text[: MAX_LENGTH - 1]}…"
