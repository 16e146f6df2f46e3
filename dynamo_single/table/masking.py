"""Show keys in messages and logs without the secrets in them, which the mapping knows and the table does not."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from dynamo_single.table.names import PARTITION_KEY, SORT_KEY

#: Return a key as others may read it, of an alias, or of any for ``None``.
MaskKey = Callable[[str | None, str, str], tuple[str, str]]

_MASKS: list[MaskKey] = []


def mask_by(mask: MaskKey) -> None:
    """Let keys in messages pass a function."""
    _MASKS.append(mask)


def shown_key(alias: str | None, partition: str, sort: str) -> tuple[str, str]:
    """Return a partition key and a sort key, of a table or an index, as they are shown."""
    for mask in _MASKS:
        partition, sort = mask(alias, partition, sort)
    return partition, sort


def key_text(alias: str | None, key: tuple[str, str]) -> str:
    """Return the key of an item for a message: ``pk='SAFE#s1', sk='#METADATA'``."""
    partition, sort = shown_key(alias, *key)
    return f"{PARTITION_KEY}={partition!r}, {SORT_KEY}={sort!r}"


# How a text is written inside a key, so that it cannot hold a separator, and read back out of it.
#
# The codes are a part of the stored layout and never change. This module knows strings only.

#: What stands for a character that may not stand in a key as it is; no literal of a template may contain it.
ESCAPE: Final = "$"
#: What is written for each character that would be a separator, sort below one, or be taken for an escape.
CODES: Final[dict[int, str]] = {
    **{code: ESCAPE + chr(code + 0x30) for code in range(0x20)},
    **{ord(character): ESCAPE + code for character, code in zip(' !"#$', "_eqst", strict=True)},
    0x10FFFE: "\U0010fffe0",
    0x10FFFF: "\U0010fffe1",
}

_UNSAFE: Final = re.compile(f"[{''.join(re.escape(chr(code)) for code in CODES)}]")
_CHARACTERS: Final = {code: chr(character) for character, code in CODES.items()}
_WRITTEN: Final = re.compile("|".join(re.escape(code) for code in _CHARACTERS))


def escape(text: str) -> str:
    """Return a text as a key holds it; each character is escaped by itself, so that prefixes stay prefixes."""
    return text.translate(CODES) if _UNSAFE.search(text) else text


def unescape(written: str) -> str:
    """Return the text that ``escape()`` writes so; what it never writes stays as it is."""
    if ESCAPE not in written and "\U0010fffe" not in written:
        return written
    return _WRITTEN.sub(lambda found: _CHARACTERS[found[0]], written)
