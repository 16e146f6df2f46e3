"""Decide which words in the keys of a table are constants of its design rather than stored values.

A constant becomes a literal of a key template, and a value, such as a person's name, must never become one. A word is
a constant only if there is evidence. An uncertain word becomes a variable, which matches every key as well.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from msgspec import Struct, field

from dynamo_single.contrib.inspection import names
from dynamo_single.orm.schema.keys.secret_values import MASK, hide
from dynamo_single.table.request import Item

#: A word that may be a constant: letters, with a few digits at its end.
_LABEL: Final = re.compile(r"[A-Za-z][A-Za-z]*(?:[_-][A-Za-z]+){0,4}\d{0,2}")
_LONGEST: Final = 40
#: Words for the only item of its kind in a partition, which may follow another constant.
_SOLE_WORDS: Final = (
    "a all config configuration count counter current data detail details entity entry head header history index "
    "info information item items latest list log main master meta metadata metric metrics overview profile record "
    "records root self setting settings state statistics stats status summary total totals v v0 v1 version"
)
#: Common names of entities.
_ENTITY_WORDS: Final = (
    "account action activity address admin album app appointment article asset attachment audit author "
    "bill board book booking branch brand budget building campaign card cart case category channel chat city "
    "class client comment commit community company connection contact content contract conversation country "
    "coupon course customer day delivery department device document domain edge email employee episode event exam "
    "expense feature feed file flight folder follow follower forum friend game genre group hotel image "
    "institution inventory invitation invite invoice issue job key lead lesson letter library license like line "
    "link loan location login manager map match member membership message meter milestone model module month "
    "movie news note notification offer office operator order org organisation organization owner page parcel "
    "part participant partner patient payment pension permission person phone photo place plan player playlist "
    "policy poll post price product program project property provider publisher purchase queue quiz "
    "rating reaction reading receipt region release reminder repo report repository request reservation resource "
    "response restaurant result review role room route rule sale schedule school score season section seller "
    "sensor service session shift shipment shop show site song source sport staff star statement step stock store "
    "story student subscription supplier survey tag task teacher team tenant test thread ticket time token topic "
    "track transaction transfer trip tutorial unit upload user vehicle vendor venue video visit vote voucher "
    "warehouse website week work worker workflow workspace year"
)
_STRUCTURAL: Final = frozenset(_SOLE_WORDS.split())
_COMMON: Final = _STRUCTURAL.union(_ENTITY_WORDS.split())
#: A longer text is prose, which mentions any word.
_PROSE: Final = 40
#: The similarity of two sets of attribute names from which the items count as one kind.
_SIMILAR: Final = 0.8
#: The most unknown constants in one position of a key, and the most words of any kind beside one.
_MOST: Final = 20
_MOST_SIBLINGS: Final = 200


class Word(Struct, frozen=True):
    """A word of a key: its text, and the item's other keys with ``context`` in place of the word.

    With ``leads``, other parts follow; with ``follows``, a constant is directly before it.
    """

    place: str
    context: tuple[object, ...]
    text: str
    leads: bool
    follows: bool


class _Evidence(Struct):
    keys: set[tuple[str, ...]] = field(default_factory=set)
    partitions: set[str] = field(default_factory=set)
    schema: set[str] = field(default_factory=set)


class Vocabulary:
    """The words in the names of a table, and in its short values."""

    def __init__(
        self, items: Iterable[Item], schema: Iterable[str], *, keys: frozenset[str], typed: str | None
    ) -> None:
        """Collect the words; ``schema`` contains names of the table, its attributes and its types."""
        self._related = names.words(schema)
        self._mentioned = {
            word
            for item in items
            for name, value in item.items()
            if name not in keys and name != typed and len(text := value.get("S", "")) <= _PROSE
            for word in re.findall(r"\w+", text.casefold())
        }

        self._known: dict[str, bool] = {}

    def is_known(self, text: str) -> bool:
        """Return whether a word belongs to the design: all its parts are in names of the table, or are common nouns."""
        if text not in self._known:
            found = names.words([text])
            # "a" is a constant by itself, but "aA" may be any identifier.
            self._known[text] = bool(found) and all(
                word in self._related or (is_common(word) and (len(word) > 1 or word == text.casefold()))
                for word in found
            )
        return self._known[text]

    def is_mentioned(self, text: str) -> bool:
        """Return whether a short stored value contains the word."""
        return text.casefold() in self._mentioned or any(part in self._mentioned for part in _parts(text))


def _parts(text: str) -> list[str]:
    return [part for part in re.split(r"[_-]", text.casefold()) if len(part) > 2]


def is_common(word: str) -> bool:
    """Return whether a word is in the lists of common nouns."""
    return word in _COMMON


def is_structural(text: str) -> bool:
    """Return whether a word stands for the only item of its kind, such as ``METADATA``."""
    return text.lower() in _STRUCTURAL or names.singular(text.lower()) in _STRUCTURAL


@lru_cache(maxsize=4096)
def could_be_constant(text: str) -> bool:
    """Return whether a part of a key could be a constant at all: a word that does not look like a secret."""
    return len(text) <= _LONGEST and _LABEL.fullmatch(text) is not None and MASK not in hide(text)


class Constants:
    """The words of a table's keys that are constants."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._by_text: defaultdict[tuple[str, str], _Evidence] = defaultdict(_Evidence)
        self._siblings: defaultdict[tuple[object, ...], dict[str, set[str]]] = defaultdict(dict)
        self._known: dict[tuple[object, ...], bool] = {}

    def add(self, word: Word, key: tuple[str, ...], schema: Iterable[str]) -> None:
        """Count a word of one item, with the item's keys and its attribute names."""
        found = self._by_text[word.place, word.text]
        found.keys.add(key)
        found.partitions.add(key[0])
        self._siblings[word.context].setdefault(word.text, set()).update(schema)

    def has(self, word: Word, *, is_partition: bool) -> bool:
        """Return whether a word is a constant.

        A known word is a constant. Any other word must not occur in a short value, and different values must follow or
        precede it. A word in capitals must lead several keys, or end the sort keys of several partitions. Another word
        must have siblings: words in the same position of items with other attributes.
        """
        key = (word.place, word.context, word.text)
        if key not in self._known:
            self._known[key] = self._decide(word, is_partition=is_partition)
        return self._known[key]

    def _decide(self, word: Word, *, is_partition: bool) -> bool:
        if word.follows:
            return is_structural(word.text)
        if self._vocabulary.is_known(word.text):
            return True
        if self._vocabulary.is_mentioned(word.text) or len(self._siblings[word.context]) > _MOST_SIBLINGS:
            return False
        others = [*self._unknown_siblings(word)]
        own = self._siblings[word.context][word.text]
        similar = sum(_similar(own, other) for other in others)
        found = self._by_text[word.place, word.text]
        if not word.text.isupper():
            return word.leads and len(found.keys) >= 3 and bool(others) and not similar
        if len(others) > _MOST or similar >= (3 if word.leads else 1):
            return False
        return len(found.keys) >= 2 if word.leads else not is_partition and len(found.partitions) >= 2

    def _unknown_siblings(self, word: Word) -> Iterator[set[str]]:
        for text, schema in self._siblings[word.context].items():
            if text != word.text and not self._vocabulary.is_known(text):
                yield schema


def _similar(first: set[str], second: set[str]) -> bool:
    return len(first & second) >= _SIMILAR * len(first | second)
