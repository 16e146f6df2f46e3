"""Mask secrets in keys for messages and logs, and escape strings inside keys.

The mapping registers which values are secret. The codes of the escapes are a part of the stored layout and never
change.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

#: Return a key of an alias with its secrets masked; with ``None``, of any alias.
MaskKey = Callable[[str | None, str, str], tuple[str, str]]

_MASKS: list[MaskKey] = []


def mask_by(mask: MaskKey) -> None:
    """Register a function that masks the keys in messages."""
    _MASKS.append(mask)


def shown_key(alias: str | None, partition: str, sort: str) -> tuple[str, str]:
    """Return a partition key and a sort key of a table or an index with secrets masked."""
    for mask in _MASKS:
        partition, sort = mask(alias, partition, sort)
    return partition, sort


#: The first character of an escape; the literals of a template cannot contain it.
ESCAPE: Final = "$"
#: The escape of each character that is a separator, sorts below a separator, or begins an escape.
CODES: Final[dict[int, str]] = {
    **{code: ESCAPE + chr(code + 0x30) for code in range(0x20)},
    **{ord(character): ESCAPE + code for character, code in zip(' !"#$', "_eqst", strict=True)},
    0x10FFFE: "\U0010fffe0",
    0x10FFFF: "\U0010fffe1",
}

_CHARACTERS: Final = {code: chr(character) for character, code in CODES.items()}
_WRITTEN: Final = "|".join(re.escape(code) for code in _CHARACTERS)


def escape(text: str, terminator: str = "") -> str:
    """Return a string as it is stored in a key, in front of a terminator; ``""`` means ``#``.

    Each character has its own escape, so that prefixes remain prefixes.
    """
    unsafe, codes = _escaping(terminator)
    return text.translate(codes) if unsafe.search(text) else text


def unsafe_in(terminator: str) -> re.Pattern[str]:
    """Return the expression for characters to escape in front of a terminator."""
    return _escaping(terminator)[0]


@lru_cache(maxsize=64)
def _escaping(terminator: str) -> tuple[re.Pattern[str], dict[int, str]]:
    """Return the expression for characters to escape, and the escape of each."""
    codes = _escapes(terminator)
    return re.compile(f"[{''.join(re.escape(chr(code)) for code in codes)}]"), codes


def _escapes(terminator: str) -> dict[int, str]:
    codes = dict(CODES)
    if terminator > ESCAPE:
        # Some of the codes above contain the terminator too: "$_" stands for a space.
        clashing = [code for code, escaped in codes.items() if terminator in escaped]
        codes |= {code: f"{ESCAPE}u{code:06x}" for code in (*clashing, ord(terminator))}
    return codes


def unescape(written: str) -> str:
    """Return the string of an escaped string; sequences that ``escape()`` never writes are unchanged."""
    if ESCAPE not in written and "\U0010fffe" not in written:
        return written
    return re.sub(_WRITTEN, lambda found: _CHARACTERS[found[0]], written)
