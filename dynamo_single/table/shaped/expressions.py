"""Rewrite expressions by the names of a table, without the attributes that the table does not have.

Requests that differ only in their values share one rewritten expression. The module does not send requests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from typing import Any, Final

from msgspec import Struct

from dynamo_single.conf.shapes import NO_SORT_KEY, KeyType, Shape
from dynamo_single.exceptions import NotSupported
from dynamo_single.table import names as own

#: The expressions that compare, and all.
_CONDITIONS: Final = ("KeyConditionExpression", "ConditionExpression", "FilterExpression")
PROJECTION: Final = "ProjectionExpression"
EXPRESSIONS: Final = (*_CONDITIONS, "UpdateExpression", PROJECTION)
NAMES: Final = "ExpressionAttributeNames"

_MARK: Final = re.compile(r"#\w+")
_VALUE: Final = re.compile(r":\w+")
#: A comparison of an attribute, with the placeholders of its values.
_COMPARED: Final = re.compile(
    r"(?<![.\w])(#\w+) (?:(?:=|<>|<=|<|>=|>) (:\w+)|BETWEEN (:\w+) AND (:\w+)|IN \((:\w+(?:, ?:\w+)*)\))"
    r"|begins_with ?\((#\w+), ?(:\w+)\)"
)
_SORT_TERM: Final = (
    r" AND (?:{mark} (?:(=|<=|<|>=|>) (:\w+)|(BETWEEN) (:\w+) AND (:\w+))|(begins_with) ?\({mark}, ?(:\w+)\))"
)
_CLAUSE: Final = re.compile(r"\b(SET|REMOVE|ADD|DELETE) ")
_FUNCTION: Final = re.compile(r"attribute_(?:not_)?exists ?\($")


class Rewritten(Struct, frozen=True):
    """The expressions as the table takes them, and the values that need a change.

    - ``params``: the parameters that replace those of the request.
    - ``is_fitted``: whether values or parameters change or are left out; ``dropped`` are these parameters.
    - ``values``: the placeholders that the expressions still use.
    - ``typed``: the type of the key that a value is compared with or set to.
    - ``prefixes``: values that are compared with a joined key.
    - ``sorts``: an operator and values that the constant of a missing sort key has to meet.
    - ``types``: values that the type of an item is compared with; the response is filtered by them.
    """

    params: dict[str, Any]
    is_fitted: bool
    dropped: tuple[str, ...]
    values: frozenset[str]
    typed: tuple[tuple[str, KeyType], ...] = ()
    prefixes: tuple[str, ...] = ()
    sorts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    types: tuple[str, ...] = ()


class ExpressionWriter:
    """Rewrites the expressions of requests to one table; ``declared`` are names of attributes that are keys, too."""

    def __init__(self, shape: Shape, declared: frozenset[str], key_only: frozenset[str] = frozenset()) -> None:
        self.shape = shape
        self.key_only = key_only
        self.declared = declared
        self._kinds = {own_name: key.type for own_name, key in shape.pairs if key.type != "S"}
        lacking = {own.key_names(each.name)[1]: each.partition.name for each in shape.indexes if each.sort is None}
        if shape.sort is None:
            lacking[own.SORT_KEY] = shape.partition.name
        #: The sort keys that the table does not have, with the partition key that stands for them in conditions.
        self.lacking = lacking
        self._untyped = shape.type_attribute is None
        affected = {own.PARTITION_KEY, own.SORT_KEY, *shape.renames}
        words = "|".join(map(re.escape, sorted(affected, key=len, reverse=True)))
        self._bare = re.compile(rf"(?<![.#:\w])({words})(?!\w)")
        self._affected = {*shape.renames, *lacking, *self._kinds, *((own.ITEM_TYPE,) if self._untyped else ())}
        self._affected |= key_only
        if shape.sort is None:
            self._affected.add(own.PARTITION_KEY)
        #: Names of keys that are attributes of models as well.
        self._shared = {own_name for own_name, key in shape.pairs if key.name in declared}

    def rewrite(self, given: tuple[Any, ...]) -> Rewritten | None:
        """Return the expressions as the table takes them; ``None`` if they stay as they are.

        ``given`` contains the values of ``EXPRESSIONS`` in a request, ``None`` for each that it does not have, and
        then its placeholders of names, and these names.
        """
        placeholders = given[len(EXPRESSIONS) :]
        half = len(placeholders) // 2
        texts = {name: str(text) for name, text in zip(EXPRESSIONS, given[: len(EXPRESSIONS)], strict=True) if text}
        names = dict(zip(placeholders[:half], placeholders[half:], strict=True))
        self._name_bare(texts, names)
        touched = [mark for mark, name in names.items() if name in self._affected]
        if not touched:
            return None
        for mark in touched:
            _part_inner(texts, names, mark)
        return _Rewriting(self, texts, names).result()

    def _name_bare(self, texts: dict[str, str], names: dict[str, str]) -> None:
        """Give placeholders to names of keys that a project's own request contains as they are."""
        for expression, text in texts.items():
            if found := {match[1] for match in self._bare.finditer(text)}:
                free = (mark for place in count() if (mark := f"#own_{place}") not in names)
                held = {name: mark for mark, name in names.items()}
                marks = {name: held.get(name) or next(free) for name in sorted(found)}
                names |= {mark: name for name, mark in marks.items()}
                texts[expression] = self._bare.sub(lambda match, marks=marks: marks[match[1]], text)  # type: ignore[misc]


def _part_inner(texts: dict[str, str], names: dict[str, str], mark: str) -> None:
    """Give a placeholder of its own to a key inside a document that has the name of an attribute."""
    inner = re.compile(rf"(?<=\.){mark}\b")
    if any(inner.search(text) for text in texts.values()):
        other = f"{mark}_in"
        # A lone surrogate keeps the name from being taken for an attribute's; ``_Rewriting`` takes it off.
        names[other] = f"{_INSIDE}{names[mark]}"
        for expression, text in texts.items():
            texts[expression] = inner.sub(other, text)


_INSIDE: Final = "\udfff"


class _Rewriting:
    """One rewriting, by the steps that ``result()`` lists."""

    def __init__(self, writer: ExpressionWriter, texts: dict[str, str], names: dict[str, str]) -> None:
        self.writer = writer
        self.shape = writer.shape
        self.texts = texts
        self.given_values = frozenset(_VALUE.findall(" ".join(texts.values())))
        self.own = names
        self.names = {mark: self._stored(name) for mark, name in names.items()}
        self.sorts: list[tuple[str, tuple[str, ...]]] = []
        self.types: list[str] = []
        self.prefixes: list[str] = []

    def _stored(self, name: str) -> str:
        if name.startswith(_INSIDE):
            return name[len(_INSIDE) :]
        return self.writer.lacking.get(name) or self.shape.name_of(name)

    def _marks(self, *names: str) -> list[str]:
        return [mark for mark, name in self.own.items() if name in names]

    def result(self) -> Rewritten:
        """Return the expressions as the table takes them."""
        typed = tuple(dict.fromkeys(self._typed()))
        if self.writer.lacking:
            self._drop_sort_keys()
        if self.shape.sort is None:
            self._compare_joined()
        if self.shape.type_attribute is None:
            self._drop_types()
        if "UpdateExpression" in self.texts:
            self._write_update()
        if "ProjectionExpression" in self.texts:
            self._write_projection()
        used = " ".join(self.texts.values())
        marks, values = set(_MARK.findall(used)), frozenset(_VALUE.findall(used))
        names = {mark: name for mark, name in self.names.items() if mark in marks}
        changed = {**self.texts, NAMES: names}
        dropped = tuple(name for name, value in changed.items() if not value)
        return Rewritten(
            {name: value for name, value in changed.items() if value},
            bool(dropped or typed or self.prefixes or self.sorts) or values != self.given_values,
            dropped,
            values,
            tuple(each for each in typed if each[0] in values),
            tuple(self.prefixes),
            tuple(self.sorts),
            tuple(self.types),
        )

    def _typed(self) -> Iterator[tuple[str, KeyType]]:
        kinds = {mark: self.writer._kinds[name] for mark, name in self.own.items() if name in self.writer._kinds}
        if not kinds:
            return
        for expression, text in self.texts.items():
            if expression == "ProjectionExpression":
                continue
            for found in _COMPARED.finditer(text):
                if kind := kinds.get(found[1] or found[6]):
                    values = (*found.groups()[1:4], found[7], *(found[5] or "").replace(" ", "").split(","))
                    yield from ((each, kind) for each in values if each)

    def _drop_sort_keys(self) -> None:
        """Leave out comparisons with the constant of a sort key that the table does not have."""
        for mark in self._marks(*self.writer.lacking):
            term = re.compile(_SORT_TERM.format(mark=mark))
            if found := term.search(text := self.texts.get("KeyConditionExpression", "")):
                operator = found[1] or found[3] or found[6]
                values = tuple(each for each in (found[2], found[4], found[5], found[7]) if each)
                self.sorts.append((operator, values))
                self.texts["KeyConditionExpression"] = text[: found.start()] + text[found.end() :]
            if self.own[mark] != own.SORT_KEY:
                for name in ("ConditionExpression", "FilterExpression"):
                    if name in self.texts:
                        self.texts[name] = re.sub(rf"{mark} = :\w+", f"attribute_exists({mark})", self.texts[name])

    def _compare_joined(self) -> None:
        """Note the values that are compared with ``pk``; raise ``NotSupported`` for other comparisons of the key."""
        for mark in self._marks(own.PARTITION_KEY, own.SORT_KEY):
            for name in ("ConditionExpression", "FilterExpression"):
                text = self.texts.get(name, "")
                for found in re.finditer(rf"(?<![.\w]){mark}\b", text):
                    if _FUNCTION.search(text, 0, found.start()):
                        continue
                    ends = re.compile(r" BETWEEN (:\w+) AND (:\w+)").match(text, found.end())
                    if ends is None or self.own[mark] == own.SORT_KEY:
                        raise _compared_key(text)
                    self.prefixes += ends.groups()

    def _drop_types(self) -> None:
        """Leave out the type, which items do not have: a condition means that the item exists."""
        for mark in self._marks(own.ITEM_TYPE):
            text = self.texts.get("ConditionExpression", "")
            if text:
                partition = self._mark_of(self.shape.partition.name, f"{mark}_key")
                text = re.sub(rf"{mark} (?:= :\w+|IN \([^)]*\))", f"attribute_exists({partition})", text)
                if re.search(rf"{mark} [<>]", text):
                    raise _several_types(text)
                self.texts["ConditionExpression"] = re.sub(rf"{mark}\b", partition, text)
            if filtered := self.texts.get("FilterExpression", ""):
                self.texts["FilterExpression"] = self._without_types(mark, filtered)

    def _without_types(self, mark: str, text: str) -> str:
        text = self._without_contradiction(mark, text)
        one = rf"{mark} = :\w+"
        term = re.compile(rf"\(?(?:{one}(?: OR {one})*|{mark} IN \([^)]*\))\)?")
        alone = re.compile(rf"{one}(?: OR {one})+")
        if alone.fullmatch(text):
            self.types += _VALUE.findall(text)
            return ""
        kept = []
        for each in terms_of(text):
            if not re.search(rf"{mark}\b", each):
                kept.append(each)
            elif term.fullmatch(each):
                if self.types:
                    raise _several_types(text)
                self.types += _VALUE.findall(each)
            else:
                raise _several_types(text)
        return " AND ".join(kept)

    def _without_contradiction(self, mark: str, text: str) -> str:
        """Keep the condition that no item meets, which the app writes with the type, as one of another attribute."""
        never = "attribute_exists({0}) AND attribute_not_exists({0})"
        if never.format(mark) in text:
            text = text.replace(never.format(mark), never.format(other := f"{mark}_never"))
            self.names[other] = own.ITEM_TYPE
        return text

    def _mark_of(self, name: str, otherwise: str) -> str:
        found = next((mark for mark, stored in self.names.items() if stored == name), otherwise)
        self.names[found] = name
        return found

    def _write_update(self) -> None:
        """Name each attribute once; an attribute that is also a key keeps its own change."""
        clauses = [(keyword, parts) for keyword, parts in _clauses(self.texts["UpdateExpression"])]
        shared = self.writer._shared
        targets = {_target(part) for _, parts in clauses for part in parts} - {""}
        own_changes = {self.names[mark] for mark in targets if self.own[mark] not in shared}
        primary = {key.name for key in self.shape.keys}
        removed = {_target(part) for keyword, parts in clauses if keyword == "REMOVE" for part in parts}
        written: list[tuple[str, list[str]]] = []
        seen: set[str] = set()
        for keyword, parts in clauses:
            kept = []
            for part in parts:
                mark = _target(part)
                name, stored = self.own.get(mark, ""), self.names.get(mark, "")
                if name in (own.PARTITION_KEY, own.SORT_KEY) and self.shape.sort is None:
                    raise _compared_key(self.texts["UpdateExpression"])
                is_type = name == own.ITEM_TYPE and self.shape.type_attribute is None
                if name in self.writer.lacking or name in self.writer.key_only or is_type:
                    continue
                if stored in primary and name not in (stored, own.PARTITION_KEY, own.SORT_KEY):
                    continue  # an update cannot change the key of its item, and an index follows it
                if name in shared and stored in own_changes:
                    continue
                if name in shared and mark in removed:
                    raise NotSupported(
                        f"The update would remove {stored!r}, which is a key of an index and an attribute of a model: "
                        "its value would be lost. Nothing was written. Use an index with keys of its own."
                    )
                if name in self.shape.renames and stored in seen:
                    continue
                seen.add(stored)
                kept.append(part)
            written.append((keyword, kept))
        self.texts["UpdateExpression"] = " ".join(
            f"{keyword} {', '.join(parts)}" for keyword, parts in written if parts
        )

    def _write_projection(self) -> None:
        """Read each attribute once, and the key instead of a type that items do not have."""
        places: dict[str, str] = {}
        for place in map(str.strip, self.texts["ProjectionExpression"].split(",")):
            if self.own.get(place) == own.ITEM_TYPE and self.shape.type_attribute is None:
                for number, key in enumerate(self.shape.keys):
                    places.setdefault(key.name, self._mark_of(key.name, f"{place}_{number}"))
                continue
            places.setdefault(self.names.get(place, place), place)
        self.texts["ProjectionExpression"] = ", ".join(places.values())


def _compared_key(text: str) -> NotSupported:
    return NotSupported(
        f"{text!r} names pk or sk, which items of a table without a sort key do not have: compare the attribute that "
        "is the key."
    )


def _several_types(text: str) -> NotSupported:
    return NotSupported(
        f"The filter {text!r} compares the type of items together with attributes, and items of this table have no "
        "type attribute. Query the models one by one, or set TYPE_ATTRIBUTE."
    )


def meets_constant(operator: str, values: tuple[str, ...]) -> bool:
    """Return whether the constant of a missing sort key meets a key condition."""
    constant = NO_SORT_KEY
    if operator == "BETWEEN":
        return values[0] <= constant <= values[1]
    if operator == "begins_with":
        return constant.startswith(values[0])
    compared = {
        "=": constant == values[0],
        "<": constant < values[0],
        "<=": constant <= values[0],
        ">": constant > values[0],
        ">=": constant >= values[0],
    }
    return compared[operator]


def terms_of(text: str) -> list[str]:
    """Return the parts of a condition that all have to hold, also those in parentheses."""
    inner = text[1:-1] if _is_enclosed(text) else text
    found, start, is_between = [], 0, False
    for match in _top_level(inner):
        if match[0] == " OR ":
            return [text]
        if match[0] == " BETWEEN ":
            is_between = True
        elif is_between:
            is_between = False
        else:
            found.append(inner[start : match.start()])
            start = match.end()
    found.append(inner[start:])
    return [term for each in found for term in (terms_of(each) if _is_enclosed(each) else [each])]


def _top_level(text: str) -> Iterator[re.Match[str]]:
    """Yield the words between terms that are in no parentheses."""
    depth = 0
    for match in re.finditer(r"[()]| BETWEEN | AND | OR ", text):
        if match[0] in "()":
            depth += 1 if match[0] == "(" else -1
        elif not depth:
            yield match


def _is_enclosed(text: str) -> bool:
    """Return whether the first parenthesis ends with the text."""
    if not text.startswith("("):
        return False
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if not depth:
            return place == len(text) - 1
    return False


def _clauses(text: str) -> Iterator[tuple[str, list[str]]]:
    pieces = _CLAUSE.split(text)[1:]
    for keyword, parts in zip(pieces[::2], pieces[1::2], strict=True):
        yield keyword, list(_parts(parts.strip()))


def _parts(text: str) -> Iterator[str]:
    depth = start = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            yield text[start:place].strip()
            start = place + 1
    yield text[start:].strip()


def _target(part: str) -> str:
    """Return the placeholder of the attribute that a part of an update changes; empty for a place inside of one."""
    found = re.match(r"#\w+(?![\w.\[])", part)
    return "" if found is None else found[0]
