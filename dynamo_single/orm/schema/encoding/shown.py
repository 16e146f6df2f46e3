"""Show values in messages.

A message never runs the ``__str__`` of a project's model: that may fail, and would replace the error that is to be
reported, or read from the table. This module must not depend on attributes, so it cannot recognize all secrets: it
shows conditions and expressions without their values.
"""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models.expressions import CombinedExpression

from dynamo_single.orm.schema.encoding.secrets import MASK, hide, is_secret_name

#: How much of a value is shown, and how deep lists and dictionaries are followed.
LONGEST = 100
_MEMBERS = 5
_LEVELS = 4
_OMITTED = "..."
_BRACKETS: dict[type, str] = {dict: "{}", list: "[]", tuple: "()", set: "{}", frozenset: "{}"}


def shown(value: object, longest: int = LONGEST) -> str:
    """Return any value in at most ``longest`` characters: an object of a model by its label and its ``pk``.

    A condition or an expression is shown without its values: ``Count(Q(name=...))``.
    """
    text = _text(value, _LEVELS)
    return text if len(text) <= longest else f"{text[:longest]}..."


def named(obj: models.Model) -> str:
    """Return an object of a model for a message: ``shop.Firm with pk 'f1'``."""
    try:
        parts = (getattr(type(obj), name, None) for name in getattr(obj, "_identity", ()))
        is_hidden = any(part.is_secret() for part in parts if part is not None)
        return f"{obj._meta.label} with pk {MASK if is_hidden else _plain(obj.pk)}"
    except Exception:
        # The value has another type than the key's, as in an object that is only half made. This is the text of another
        # error, which has to be raised.
        return f"a {obj._meta.label}"


def _text(value: object, levels: int) -> str:
    if isinstance(value, models.Model):
        return named(value)
    if isinstance(value, models.QuerySet | models.Manager):
        return f"a {type(value).__name__} of {value.model._meta.label}"  # its own repr() would evaluate it
    if isinstance(value, models.Q):
        return _condition(value, levels)
    if isinstance(value, models.Value):
        return f"Value({_text(value.value, levels)})"
    if hasattr(value, "resolve_expression"):
        return _expression(value, levels)
    brackets = _BRACKETS.get(type(value))
    if brackets is None or not levels:
        return _plain(value)
    return _several(value, brackets, levels - 1)


def _several(value: Any, brackets: str, levels: int) -> str:
    members = []
    for number, member in enumerate(value):
        if number == _MEMBERS:
            members.append(f"… {len(value)} in all")
            break
        text = _text(member, levels)
        members.append(f"{text}: {_of(member, value[member], levels)}" if isinstance(value, dict) else text)
    alone = "," if brackets == "()" and len(members) == 1 else ""
    return f"{brackets[0]}{', '.join(members)}{alone}{brackets[1]}"


def _of(name: object, value: object, levels: int) -> str:
    """Return a value that has a name; it is masked if the name is that of a secret."""
    return MASK if isinstance(name, str) and is_secret_name(name) else _text(value, levels)


def _condition(condition: models.Q, levels: int) -> str:
    if not levels:
        return "Q(...)"
    parts = []
    for child in condition.children:
        parts.append(f"{child[0]}={_OMITTED}" if isinstance(child, tuple) else _text(child, levels - 1))
    joint = ", " if condition.connector == models.Q.AND else f" {condition.connector} "
    return f"{'~' if condition.negated else ''}Q({joint.join(parts)})"


def _expression(expression: Any, levels: int) -> str:
    if isinstance(expression, models.F):
        return repr(expression)
    if isinstance(expression, models.Value):
        return f"Value({_OMITTED})"
    sources: list[Any] = getattr(expression, "get_source_expressions", list)() if levels else []
    texts = [_part(each, levels - 1) for each in sources if each is not None]
    if isinstance(expression, CombinedExpression):
        return f" {expression.connector} ".join(texts)
    return f"{type(expression).__name__}({', '.join(texts) or _OMITTED})"


def _part(source: Any, levels: int) -> str:
    return _condition(source, levels) if isinstance(source, models.Q) else _expression(source, levels)


def _plain(value: object) -> str:
    try:
        return repr(hide(value) if isinstance(value, str) else value)
    except Exception:
        # An integer of thousands of digits, a list of thousands of levels, or a repr() of a project's own that fails.
        return f"<{type(value).__name__} that cannot be shown>"
