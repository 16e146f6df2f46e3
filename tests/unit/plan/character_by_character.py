"""The possible contents of a key's ranges, computed character by character: the reference for all decisions.

It is slow and simple on purpose, and knows only templates and ranges.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from dynamo_single.orm.plan.plan import KeyCondition
from dynamo_single.orm.schema.keys.template import Template
from dynamo_single.orm.schema.layout import AccessKey, ModelLayout


@dataclass(frozen=True)
class Token:
    """One step of a template's keys: a literal character, or one or more characters of a value."""

    literal: str
    terminator: str = ""
    repeats: bool = False

    def takes(self, character: str) -> bool:
        """Return whether the character can be here."""
        if self.literal:
            return character == self.literal
        return character >= "$" and character != self.terminator

    def meets(self, other: Token) -> bool:
        """Return whether one character can be in both places."""
        if self.literal:
            return other.takes(self.literal)
        return not other.literal or self.takes(other.literal)

    def next(self, place: int) -> int:
        """The place after one character."""
        return place if self.repeats else place + 1


def tokens_of(template: Template) -> tuple[Token, ...]:
    """The steps of a template."""
    tokens: list[Token] = []
    for part in template.parts:
        tokens.extend(Token(character) for character in part.literal)
        tokens += [Token("", part.terminator), Token("", part.terminator, repeats=True)]
    tokens.extend(Token(character) for character in template.tail)
    return tuple(tokens)


def skips(tokens: tuple[Token, ...], place: int) -> tuple[int, ...]:
    """Return the place after an optional one."""
    return (place + 1,) if place < len(tokens) and tokens[place].repeats else ()


def settle(tokens: tuple[Token, ...], places: set[int]) -> set[int]:
    """Return the places, and those that they reach without a character."""
    return places | {after for place in places for after in skips(tokens, place)}


def reach(template: Template, text: str) -> set[int]:
    """Return the places in a template where a string can end."""
    tokens = tokens_of(template)
    places = settle(tokens, {0})
    for character in text:
        steps = {tokens[i].next(i) for i in places if i < len(tokens) and tokens[i].takes(character)}
        places = settle(tokens, steps)
    return places


def makes(template: Template, text: str) -> bool:
    """Return whether the template can create exactly this key."""
    return len(tokens_of(template)) in reach(template, text)


def makes_beginning(template: Template, text: str) -> bool:
    """Return whether the template can create a key with this prefix."""
    return bool(reach(template, text))


def could_equal(first: Template, second: Template) -> bool:
    """Return whether two templates can create the same key."""
    ours, theirs = tokens_of(first), tokens_of(second)
    seen: set[tuple[int, int]] = set()
    waiting = [(0, 0)]
    while waiting:
        pair = waiting.pop()
        if pair in seen:
            continue
        seen.add(pair)
        i, j = pair
        if i == len(ours) and j == len(theirs):
            return True
        waiting.extend((a, j) for a in skips(ours, i))
        waiting.extend((i, b) for b in skips(theirs, j))
        if i < len(ours) and j < len(theirs) and ours[i].meets(theirs[j]):
            waiting.append((ours[i].next(i), theirs[j].next(j)))
    return False


def lies_in(other: AccessKey, key: AccessKey, condition: KeyCondition, prefix: str) -> bool:
    """Return whether keys of another template are in the range of a key condition."""
    if other.index != key.index or not makes(other.partition, condition.partition):
        return False
    if condition.operator == "=":
        return makes(other.sort, condition.operands[0])
    if condition.operator == "begins_with":
        return makes_beginning(other.sort, condition.operands[0])
    # All keys between two limits have their common prefix, except the upper limit itself.
    return makes_beginning(other.sort, prefix) or any(makes(other.sort, operand) for operand in condition.operands)


def is_foreign(layout: ModelLayout, key: AccessKey, condition: KeyCondition, prefix: str) -> bool:
    """Return whether items of other models, or claims, can be in the range."""
    if key.index is None and condition.partition.startswith("UNIQUE#"):
        return True
    others = [other for other in layout.neighbours() if other is not layout]
    keys = chain.from_iterable((other.primary, *other.index_keys) for other in others)
    return any(lies_in(other, key, condition, prefix) for other in keys)


def is_shared(layout: ModelLayout, key: AccessKey, condition: KeyCondition, prefix: str) -> bool:
    """Return whether items other than the model's with this key can be in the range."""
    own = [other for other in (layout.primary, *layout.index_keys) if other is not key]
    return is_foreign(layout, key, condition, prefix) or any(lies_in(other, key, condition, prefix) for other in own)


def holds_opposite(layout: ModelLayout, key: AccessKey, condition: KeyCondition, prefix: str) -> bool:
    """Return whether deleted and live items of the model can be mixed in a range."""
    opposite = [other for other in layout.index_keys if (other is layout.trash) != (key is layout.trash)]
    return any(lies_in(other, key, condition, prefix) for other in opposite if other is not key)
