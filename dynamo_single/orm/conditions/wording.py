"""Conditions and orderings in words, as a Django developer would write them.

This module must not know keys, plans or requests.
"""

from __future__ import annotations

from collections.abc import Sequence

from dynamo_single.orm.conditions.terms import (
    And,
    ComparePair,
    Condition,
    Not,
    Nothing,
    Or,
    Order,
    Stored,
    StoredPair,
)
from dynamo_single.orm.schema.encoding.shown import shown


def word(condition: Condition) -> str:
    """Write a condition as a Django developer would: ``company_id='1', name__startswith='A'``."""
    if isinstance(condition, And | Or):
        return _word_group(condition)
    if isinstance(condition, Not):
        return f"not ({word(condition.child)})"
    if isinstance(condition, Nothing):
        return "nothing"
    if isinstance(condition, StoredPair):
        other = "__".join(map(str, (condition.other, *condition.other_path)))
        return f"{'__'.join(map(str, (condition.name, *condition.path)))} {condition.operator} {other}"
    if isinstance(condition, Stored):
        steps = "__".join(map(str, (condition.name, *condition.path)))
        return f"{steps} {condition.operator} {', '.join(map(_plain, condition.operands))}".rstrip()
    steps = "__".join(map(str, (condition.attribute, *condition.path)))
    operator = condition.operator.replace("size_", "size__").removesuffix("exact").removesuffix("__")
    lookup = f"__{operator}" if operator else ""
    if isinstance(condition, ComparePair):
        return f"{steps}{lookup}=F({'__'.join(map(str, (condition.other, *condition.other_path)))!r})"
    return f"{steps}{lookup}={_short(condition.value)}"


def _plain(operand: object) -> str:
    """A stored value without its type, where that is one of Python's: ``1`` of ``{"N": "1"}``."""
    match operand:
        case {"N": str(number)}:
            return number
        case {"S": str() as value} | {"BOOL": bool() as value}:
            return shown(value, 200)
        case _:
            return shown(operand, 200)


def _word_group(condition: And | Or) -> str:
    # A step of a path that may be a key or a position reads the same either way.
    texts = tuple(dict.fromkeys(map(word, condition.children)))
    if isinstance(condition, And):
        return ", ".join(texts) if texts else "everything"
    return texts[0] if len(texts) == 1 else f"({' | '.join(texts)})"


def word_order(ordering: Sequence[Order]) -> str:
    """Write an ordering as ``order_by`` takes it: ``-name, person_id``."""
    missing = {None: "", True: " (missing values first)", False: " (missing values last)"}
    return ", ".join(f"{'-' * order.descending}{order.attribute}{missing[order.missing_first]}" for order in ordering)


def _short(value: object) -> str:
    """A list of a thousand identities must not drown the rest of a message."""
    if isinstance(value, list | tuple | set | frozenset) and len(value) > 5:
        first = ", ".join(shown(element) for element in list(value)[:3])
        return f"[{first}, … {len(value)} in all]"
    return shown(value, 200)
