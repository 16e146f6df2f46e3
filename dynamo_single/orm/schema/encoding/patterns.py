"""Which texts a key template can make, and what two templates can have in common whatever their values are.

A pattern is deterministic: the literal after a value begins with a character that the value cannot hold, so that there
is one way to read a text. This module must not know the values' kinds, models or queries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.table.escaping import ESCAPE

#: How much of a text a pattern can read: all of it as one of its own texts, all of it as the beginning of one, or not.
Reading = Literal["whole", "beginning", "none"]


class Pattern(Struct, frozen=True):
    """Literals with a value between each two: one or more characters from ``$`` up, but not the next literal's first.

    A pattern that ends with a value has an empty literal after it.
    """

    literals: tuple[str, ...]

    def read(self, text: str) -> Reading:
        """Say how much of a text is one of this pattern."""
        place = 0
        for number, literal in enumerate(self.literals):
            if number:
                value = _value(literal[:1]).match(text, place)
                if value is None:
                    return "beginning" if place == len(text) else "none"
                place = value.end()
            if not text.startswith(literal, place):
                return "beginning" if literal.startswith(text[place:]) else "none"
            place += len(literal)
        return "whole" if place == len(text) else "none"

    def up_to(self, count: int) -> Pattern:
        """The pattern of what stands in front of the value after ``count`` values."""
        return replace(self, literals=self.literals[: count + 1])

    def then(self, literal: str) -> Pattern:
        """The pattern with one value more, and this literal after it."""
        return replace(self, literals=(*self.literals, literal))

    def is_read_by(self, other: Pattern, *, wholly: bool) -> bool | None:
        """Whether texts of this pattern are texts of the other one, or begin one unless ``wholly``.

        ``None`` if some are and some are not: then it depends on the values.
        """
        ours, theirs = self.literals[0], other.literals[0]
        if not (ours.startswith(theirs) or theirs.startswith(ours)):
            return False
        return self._follow(other, wholly=wholly)

    def _follow(self, other: Pattern, *, wholly: bool) -> bool | None:
        answers: set[bool] = set()
        seen: set[tuple[_Place, _Place]] = set()
        waiting: list[tuple[_Place, _Place]] = [(_START, _START)]
        characters = _characters(self, other)
        while waiting and len(answers) < 2:
            ours, theirs = waiting.pop()
            if (ours, theirs) in seen:
                continue
            seen.add((ours, theirs))
            if self._is_end(ours):
                answers.add(not wholly or other._is_end(theirs))
            for character, our_next in self._steps(ours, characters):
                their_next = other._after(theirs, character)
                if their_next is None:
                    # Every beginning goes on to some text of this pattern, and the other one reads none of these.
                    answers.add(False)
                else:
                    waiting.append((our_next, their_next))
        return None if len(answers) == 2 else answers.pop()

    def _is_end(self, place: _Place) -> bool:
        last = len(self.literals) - 1
        if place.in_value:
            return place.number == last and not self.literals[last]
        return (place.number, place.offset) == (last, len(self.literals[last]))

    def _after(self, place: _Place, character: str) -> _Place | None:
        """Where a character leads to, or ``None`` if it cannot stand there."""
        number, offset, in_value = place.number, place.offset, place.in_value
        if not in_value and offset < len(self.literals[number]):
            return _Place(number, offset + 1) if character == self.literals[number][offset] else None
        if not in_value:
            number += 1
            if number == len(self.literals):
                return None
        following = self.literals[number][:1]
        if character >= ESCAPE and character != following:
            return _Place(number, in_value=True)
        return _Place(number, 1) if in_value and character == following else None

    def _steps(self, place: _Place, characters: str) -> Iterator[tuple[str, _Place]]:
        literal = self.literals[place.number]
        if not place.in_value and place.offset < len(literal):
            characters = literal[place.offset]
        for character in characters:
            after = self._after(place, character)
            if after is not None:
                yield character, after


class _Place(NamedTuple):
    """After ``offset`` characters of a literal, or inside the value in front of it."""

    number: int
    offset: int = 0
    in_value: bool = False


_START = _Place(0)


def _characters(*patterns: Pattern) -> str:
    """The characters that the patterns tell apart, and one that stands for all the others of a value."""
    named = {character for pattern in patterns for literal in pattern.literals for character in literal}
    other = next(character for code in range(ord(ESCAPE), 0x10FFFF) if (character := chr(code)) not in named)
    return "".join(sorted({*named, other}))


@lru_cache(maxsize=64)
def _value(following: str) -> re.Pattern[str]:
    """What finds the characters of a value in front of a literal that begins with ``following``."""
    excluded = f"\\x00-{re.escape(chr(ord(ESCAPE) - 1))}{re.escape(following)}"
    return re.compile(f"[^{excluded}]+")
