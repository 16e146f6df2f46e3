"""Read the forms that releases before this protocol recorded, until the first change of a form replaces them.

Their keys and rules were *open*, *filled* or *going*, and their changes had no phases. ``evolution/forms`` derives the
phases before the first change of a form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field, json

from dynamo_single.orm.rollout.states import (
    ABSENT,
    PUBLIC,
    WRITTEN,
    Facet,
    KeyTemplates,
    OpenChange,
    Rename,
    StoredForm,
)

_Phase = Literal["open", "filled", "going"]
#: The facets of keys by their phases. No code reads a key that is going, since later code does not write it.
_KEYS: Mapping[_Phase, Facet] = {"filled": PUBLIC, "going": WRITTEN}
#: The current phase for each former phase of a rename.
_RENAMES: Mapping[_Phase, int] = {"open": 0, "filled": 2, "going": 3}


class _FormerChange(Struct, frozen=True, forbid_unknown_fields=True):
    kind: str
    migration: str
    parameters: Mapping[str, str] = field(default_factory=dict)


class _FormerRename(Struct, frozen=True, forbid_unknown_fields=True):
    old: str
    phase: _Phase = "open"


class _FormerForm(Struct, frozen=True, forbid_unknown_fields=True):
    label: str
    primary: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, _Phase] = field(default_factory=dict)
    templates: Mapping[str, KeyTemplates] = field(default_factory=dict)
    renames: Mapping[str, _FormerRename] = field(default_factory=dict)
    rules: Mapping[str, _Phase] = field(default_factory=dict)
    unfilled: tuple[str, ...] = ()
    opened: tuple[_FormerChange, ...] = ()
    schema_version: int = 1
    raised_to: int = 1


def converted(text: str) -> dict[str, StoredForm]:
    """Return the forms in a string of an earlier release."""
    return {name: _converted(form) for name, form in json.decode(text, type=dict[str, _FormerForm]).items()}


def _converted(form: _FormerForm) -> StoredForm:
    return StoredForm(
        label=form.label,
        primary=form.primary,
        attributes=form.attributes,
        keys={text: _KEYS[phase] for text, phase in form.keys.items() if phase in _KEYS},
        templates=form.templates,
        renames={new: Rename(each.old, _RENAMES[each.phase]) for new, each in form.renames.items()},
        rules={text: PUBLIC if phase == "filled" else ABSENT for text, phase in form.rules.items()},
        unfilled=form.unfilled,
        version=form.schema_version,
        raised_to=form.raised_to,
        opened=tuple(OpenChange(each.kind, each.migration, each.parameters) for each in form.opened),
    )
