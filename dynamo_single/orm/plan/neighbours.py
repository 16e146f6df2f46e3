"""Find other items in the range of a key: other models' items, unique claims, and the model's other keys.

It decides this once for each key and shape of a range, for all values; it checks values only if the result depends on
them. This module does not depend on conditions, or on the chosen key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import product
from typing import Literal, NamedTuple

from msgspec import Struct

from dynamo_single.orm.plan.plan import KeyCondition
from dynamo_single.orm.schema.keys.shards import MARK
from dynamo_single.orm.schema.keys.template import SEPARATOR, Pattern
from dynamo_single.orm.schema.layout import AccessKey, ModelLayout
from dynamo_single.table import names
from dynamo_single.table.masking import ESCAPE

_CLAIMS = f"{names.UNIQUE_PREFIX}{SEPARATOR}"


class Shape(NamedTuple):
    """The known part of the sort key in a range, independent of the values.

    ``prefix`` contains all keys with the first ``given`` values, ``start`` those whose next value starts with a string,
    ``above`` those from some next value up to the end of the prefix.
    """

    kind: Literal["partition", "key", "prefix", "start", "above"]
    given: int = 0


PARTITION = Shape("partition")
KEY = Shape("key")


class KeyRange(NamedTuple):
    """The keys that one request reads; all of them start with ``prefix``."""

    condition: KeyCondition
    prefix: str = ""
    shape: Shape = PARTITION


class Sharing(Struct, frozen=True):
    """Whether other keys can be in ranges of one shape: in every range, or if the values match some templates."""

    is_always: bool = False
    dependent_keys: tuple[AccessKey, ...] = ()
    #: Whether the partition can be one of unique claims.
    claims: bool = False

    def applies(self, ranges: Iterable[KeyRange]) -> bool:
        """Return whether one of the ranges can contain another item; check the values if the result depends on them."""
        if self.is_always or not (self.dependent_keys or self.claims):
            return self.is_always
        return any(self._applies(reading) for reading in ranges)

    def _applies(self, reading: KeyRange) -> bool:
        if self.claims and reading.condition.partition.startswith(_CLAIMS):
            return True
        return any(_lies_in(other, reading) for other in self.dependent_keys)


class Neighbours(Struct, frozen=True):
    """The other items that a key's ranges can contain, by shape: those of other models, and of the model's other keys.

    ``opposite`` are the model's deleted items among the live ones, or the live ones among the deleted.
    """

    foreign: Mapping[Shape, Sharing]
    own: Mapping[Shape, Sharing]
    opposite: Mapping[Shape, Sharing]


def neighbours(layout: ModelLayout, key: AccessKey) -> Neighbours:
    """Return the decision for one of the model's keys; decide again after the declaration of new models."""
    return find_neighbours(layout.origin, tuple(layout.neighbours()))[id(key)]


@lru_cache(maxsize=1024)
def find_neighbours(layout: ModelLayout, known: tuple[ModelLayout, ...]) -> Mapping[int, Neighbours]:
    """Decide of each of a model's keys, by its ``id``, among the models of its table."""
    foreign = [key for other in known if other is not layout for key in (other.primary, *other.index_keys)]
    own = (layout.primary, *layout.index_keys)
    return {id(key): _of_key(key, layout, foreign, [other for other in own if other is not key]) for key in own}


def _of_key(key: AccessKey, layout: ModelLayout, foreign: list[AccessKey], own: list[AccessKey]) -> Neighbours:
    opposite = [other for other in own if (other is layout.trash) != (key is layout.trash)]
    return Neighbours(
        _sharings(key, foreign, _holds_claims(key)),
        _sharings(key, own),
        _sharings(key, opposite),
    )


def _holds_claims(key: AccessKey) -> bool | None:
    head = key.partition.head
    if key.index is not None or not (head.startswith(_CLAIMS) or _CLAIMS.startswith(head)):
        return False
    if head.startswith(_CLAIMS):
        return True
    return None if key.partition.parts else False


def _sharings(key: AccessKey, others: Iterable[AccessKey], claims: bool | None = False) -> dict[Shape, Sharing]:
    there = [other for other in others if other.index == key.index]
    met = [(other, _shares_partitions(key, other)) for other in there]
    near = [(other, shares) for other, shares in met if shares is not False]
    return {shape: _sharing(key, shape, near, claims) for shape in _shapes(key)}


def _shapes(key: AccessKey) -> Iterator[Shape]:
    yield from (PARTITION, KEY)
    for given in range(len(key.sort.parts)):
        yield from (Shape("prefix", given), Shape("start", given), Shape("above", given))


def _shares_partitions(key: AccessKey, other: AccessKey) -> bool | None:
    """Return whether another key has the partitions of a key: always, never, or depending on the values and the
    shard."""
    if key.sharding is None and other.sharding is None:
        return key.partition.pattern.is_read_by(other.partition.pattern, wholly=True)
    pairs = product(_patterns(key), _patterns(other))
    return False if all(one.is_read_by(another, wholly=True) is False for one, another in pairs) else None


def _patterns(key: AccessKey) -> tuple[Pattern, ...]:
    """Return patterns for the partitions of a key: without a shard's number, and with one."""
    pattern = key.partition.pattern
    if key.sharding is None:
        return (pattern,)
    *before, last = pattern.literals
    return pattern, Pattern((*before, last + MARK, ""))


def _sharing(
    key: AccessKey, shape: Shape, near: Iterable[tuple[AccessKey, bool | None]], claims: bool | None
) -> Sharing:
    depends: list[AccessKey] = []
    for other, partition in near:
        sort = _shares_sort_keys(key.sort.pattern, shape, other.sort.pattern)
        if partition and sort:
            return Sharing(is_always=True)
        if sort is not False:
            depends.append(other)
    return Sharing(is_always=True) if claims else Sharing(False, tuple(depends), claims is None)


def _shares_sort_keys(pattern: Pattern, shape: Shape, other: Pattern) -> bool | None:
    """Return whether ranges of a shape can contain sort keys of another template: always, never, or by the values."""
    if shape.kind == "partition":
        return True
    if shape.kind == "key":
        return pattern.is_read_by(other, wholly=True)
    prefix = pattern.up_to(shape.given)
    if shape.kind == "start":
        return prefix.then("").is_read_by(other, wholly=False)
    inside = prefix.is_read_by(other, wholly=False)
    if shape.kind == "prefix" or inside or not prefix.literals[-1].endswith(SEPARATOR):
        return inside
    end = _end(prefix).is_read_by(other, wholly=True)
    return True if end else None if None in (inside, end) else False


def _end(prefix: Pattern) -> Pattern:
    """Return the end of a prefix that ends with the separator: ``prefix_end`` puts the next character in its place."""
    *before, last = prefix.literals
    # Right after a value that character is like one more of the value.
    return Pattern((*before, last[:-1] + ESCAPE if before == [] or last[:-1] else ""))


def _lies_in(other: AccessKey, reading: KeyRange) -> bool:
    """Return whether a range of these values can contain keys of another template on the same index."""
    if not other.has_partition(reading.condition.partition):
        return False
    kind, operands = reading.shape.kind, reading.condition.operands
    if kind == "key":
        return other.sort.matches(operands[0])
    if kind == "start":
        return other.sort.could_start_with(operands[0])
    # All keys between two bounds start with the common start of both, except the upper bound itself.
    return other.sort.could_start_with(reading.prefix) or (kind == "above" and other.sort.matches(operands[-1]))
