"""Turn the names of tables, attributes and types into Python names and literals.

Nothing from a table is written as source without one of these functions, whatever characters it contains.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Collection, Iterable
from typing import Final

from dynamo_single import models
from dynamo_single.orm.schema.keys.secret_values import words_of

#: The longest Python name; a longer stored name is cut off and kept in ``attr_name``.
LONGEST: Final = 60
#: Names that attributes cannot have: every model has them, or, as ``models``, the class body uses them.
RESERVED: Final = frozenset({*dir(models.Model), "models", "Keys"})

_IRREGULAR: Final = {
    "children": "child",
    "indices": "index",
    "men": "man",
    "people": "person",
    "statuses": "status",
    "women": "woman",
}
_UNCHANGED: Final = ("analysis", "bus", "data", "lens", "media", "metadata", "news", "series", "species")


def literal(text: str) -> str:
    """Return a string as a Python literal on one line, with every unprintable character escaped."""
    written = repr(text)
    if '"' in text or "'" in text or "\\" in written:
        return written
    return f'"{written[1:-1]}"'


def python_name(text: str, taken: Collection[str] = (), *, empty: str = "field") -> str:
    """Return a valid name for a Django field that is neither reserved nor taken, as ``inspectdb`` would choose it.

    ``createdAt`` becomes ``created_at``, ``class`` becomes ``class_field``, ``2fa`` becomes ``number_2fa``.
    """
    # Python compares identifiers in this form.
    text = unicodedata.normalize("NFKC", text)
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", text).lower()
    text = "".join(each if f"a{each}".isidentifier() else "_" for each in text)
    # Lower case and NFKC do not commute for a few letters.
    found = re.sub(r"_+", "_", unicodedata.normalize("NFKC", text)).strip("_")[:LONGEST].strip("_") or empty
    if not found[0].isidentifier():
        found = f"number_{found}"
    if keyword.iskeyword(found) or keyword.issoftkeyword(found) or found in RESERVED:
        found = f"{found}_field"
    if not found.isidentifier():
        found = empty
    return unused(found, {*taken, *RESERVED})


def model_name(text: str, taken: Collection[str] = ()) -> str:
    """Return a class name in the singular: ``order-lines`` becomes ``OrderLine``."""
    parts = [re.sub(r"[^A-Za-z0-9]", "", part) for part in words_of(text)]
    parts = [part for part in parts if part]
    if parts:
        parts[-1] = singular(parts[-1])
    found = "".join(part[:1].upper() + part[1:] for part in parts)[:LONGEST] or "Item"
    if not found[0].isalpha():
        found = f"Item{found}"
    if keyword.iskeyword(found):
        found = f"{found}Item"
    return unused(found, taken, separator="")


def singular(word: str) -> str:
    """Return the singular of an English word in lower case, by a small rule; an unknown plural is unchanged."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) < 4 or not word.endswith("s") or word.endswith((*_UNCHANGED, "ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return f"{word[:-3]}y" if len(word) > 4 else word[:-1]
    if re.search(r"(s|x|z|ch|sh)es\Z", word) and not word.endswith(("ases", "oses", "uses", "aches")):
        return word[:-2]
    return word[:-1]


def words(texts: Iterable[str]) -> frozenset[str]:
    """Return the words of names in the singular: ``customerIds`` has ``customer`` and ``id``."""
    return frozenset(singular(word) for text in texts for word in words_of(text))


def index_name(text: str, taken: Collection[str]) -> str:
    """Return the name by which models use an index: three or more letters, digits or ``_``, beginning with a letter."""
    found = re.sub(r"\W+", "_", python_name(text, empty="index"), flags=re.ASCII).strip("_")
    if len(found) < 3 or not found[0].isalpha():
        found = f"index_{found}".rstrip("_")
    return unused(found, taken)


def unused(name: str, taken: Collection[str], *, separator: str = "_") -> str:
    """Return the name, or the name with the first number from 2 that makes it different from those taken."""
    found, number = name, 2
    while found in taken:
        found, number = f"{name}{separator}{number}", number + 1
    return found
