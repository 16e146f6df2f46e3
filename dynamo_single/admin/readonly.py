"""Sets on pages that can only be looked at: their members, in the place of Python's notation.

Django shows a value that it does not know as ``str()`` gives it, and has no hook for a field's own words. So the page
gets a function in the place of the field's name. Nothing here sends a request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynamo_single.orm.schema.fields.fields import SetField


def with_members(options: Any, fieldsets: Any) -> list[Any]:
    """The fieldsets, with sets shown as their members, sorted, separated by commas."""
    sets = {field.name: _members(field) for field in options.concrete_fields if isinstance(field, SetField)}

    def replaced(fields: Any) -> Any:
        return [replaced(each) if isinstance(each, list | tuple) else sets.get(each, each) for each in fields]

    return [(title, {**described, "fields": replaced(described["fields"])}) for title, described in fieldsets]


def _members(field: Any) -> Callable[[Any], str]:
    def members(obj: Any) -> str:
        return ", ".join(str(member) for member in sorted(field.value_from_object(obj) or ()))

    # The page finds the help text by this name, and the label by the other.
    members.__name__ = field.name
    members.short_description = field.verbose_name  # type: ignore[attr-defined]  # read by Django
    return members
