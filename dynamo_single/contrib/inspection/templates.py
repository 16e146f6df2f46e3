"""Build the key templates of one kind of items, so that they match the keys of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from dynamo_single.contrib.inspection import grouping, names
from dynamo_single.contrib.inspection.grouping import TYPE_NAMES, WEAK_TYPE_NAMES, Kind, Reader
from dynamo_single.contrib.inspection.keys import (
    OWN_NAMES,
    KeyAttribute,
    Part,
    Template,
    Variable,
    best,
    joined,
    pattern_of,
    text_of,
)
from dynamo_single.orm.schema.keys.secret_values import words_of
from dynamo_single.table.request import Item

_Parts = tuple[tuple[Part, bool], ...]
#: Words of an attribute that a key of a single item may mean although another attribute could have the same value.
_PLAIN: Final = frozenset({"id", "uuid", "key", "slug", "code", "number", "username", "email", "sku", "name"})


class IndexTemplates(Struct, frozen=True):
    """The templates of one index for one kind, and how many of its items are in the index."""

    templates: tuple[Template, ...]
    held: int


class Templates:
    """The templates of one kind for its primary key and for indexes."""

    def __init__(self, reader: Reader, kind: Kind) -> None:
        """Determine the templates of the primary key."""
        self.reader, self.kind = reader, kind
        # DynamoDB returns the attributes of an item in any order.
        self._schema = sorted({name for item in kind.items for name in item})
        #: The values that only the key contains, of each item, by the names of their variables.
        self._only: list[dict[str, str]] = [{} for _ in kind.items]
        self._known: dict[str, Template] = {}
        self.primary = [self._primary(number) for number in range(len(reader.layout.keys))]

    @property
    def variables(self) -> dict[Variable, None]:
        """The variables of the primary key, in order."""
        return {part: None for template in self.primary for part in template if isinstance(part, Variable)}

    def only(self, number: int) -> dict[str, str]:
        """Return the values that only the key of an item contains, by the names of their variables."""
        return self._only[number]

    def match(self, item: Item) -> bool:
        """Return whether the templates match the primary key of an item."""
        return all(
            key.type != "S" or pattern_of(template).fullmatch(text_of(item.get(key.name)) or "") is not None
            for key, template in zip(self.reader.layout.keys, self.primary, strict=True)
        )

    def index(self, keys: Sequence[KeyAttribute]) -> IndexTemplates | None:
        """Return the templates of an index; ``None`` if no item is in it.

        A key that cannot be rebuilt from other attributes is a variable of its own name.
        """
        held = [number for number, item in enumerate(self.kind.items) if all(key.name in item for key in keys)]
        if not held:
            return None
        found = tuple(self._known.get(key.name) or self._of_index(key, held) for key in keys)
        if len(held) < len(self.kind.items) and self._is_full(found, held):
            # The missing items would enter the index with their next save.
            primary = {key.name for key in self.reader.layout.keys}
            found = tuple(t if k.name in primary else (Variable(k.name),) for k, t in zip(keys, found, strict=True))
        return IndexTemplates(found, len(held))

    def _is_full(self, templates: Sequence[Template], held: Sequence[int]) -> bool:
        """Return whether an item that is not in the index has all values of its key."""
        wanted = {part for template in templates for part in template if isinstance(part, Variable)}
        others = set(range(len(self.kind.items))).difference(held)
        return any(all(each.in_key_only or each.name in self.kind.items[n] for each in wanted) for n in others)

    def _primary(self, number: int) -> Template:
        key, signature = self.reader.layout.keys[number], self.kind.signature[number]
        found = self._known[key.name] = self._composed(key, signature) or self._whole(key)
        return found

    def _composed(self, key: KeyAttribute, signature: Sequence[str | None]) -> Template | None:
        """Return the template of a composed key; ``None`` if it is one value, or does not match each key."""
        if not key.is_composed or not signature:
            return None
        only = [dict(each) for each in self._only]
        found = self._template(key, signature, [self.reader.read(each, key) for each in self.kind.items])
        pattern = pattern_of(found)
        is_whole = len(found) == 1 and isinstance(found[0], Variable) and found[0].in_key_only
        if not is_whole and all(pattern.fullmatch(text_of(item.get(key.name)) or "") for item in self.kind.items):
            return found
        self._only = only
        return None

    def _whole(self, key: KeyAttribute) -> Template:
        """Return the template of a key that is one value: the attribute of the key, which can be filtered.

        An attribute cannot have the app's own name of a key.
        """
        if key.name not in OWN_NAMES or key.type != "S":
            return (Variable(key.name),)
        return (self._name(key, "", [text_of(item.get(key.name)) or "" for item in self.kind.items]),)

    def _of_index(self, key: KeyAttribute, held: Sequence[int]) -> Template:
        whole: Template = (Variable(key.name),)
        items = [self.kind.items[number] for number in held]
        if not key.is_composed:
            return self._constant(key, items) or whole
        rows = [self.reader.read(item, key) for item in items]
        signatures = {tuple(part.text if is_constant else None for part, is_constant in row) for row in rows}
        if len(signatures) != 1:
            return whole
        try:
            return self._template(key, signatures.pop(), rows, held)
        except LookupError:
            return whole

    def _constant(self, key: KeyAttribute, items: Sequence[Item]) -> Template | None:
        """Return the constant type in the key of an index, such as ``company`` in ``type``."""
        texts = {text_of(item[key.name]) or "" for item in items}
        named = key.name in (*TYPE_NAMES, *WEAK_TYPE_NAMES) and len(items) == len(self.kind.items)
        if not named or key.type != "S" or len(texts) != 1 or not self.reader.is_known(text := texts.pop()):
            return None
        return (text,)

    def _template(
        self,
        key: KeyAttribute,
        signature: Sequence[str | None],
        rows: Sequence[_Parts],
        held: Sequence[int] | None = None,
    ) -> Template:
        """Return a template for the primary key of all items, or for the index key of the ``held`` items.

        A value in no attribute has a new name in a primary key; in the key of an index, it raises ``LookupError``.
        """
        items = range(len(rows)) if held is None else held
        parts: list[str | Variable] = []
        label = ""
        for place, constant in enumerate(signature):
            if constant is not None:
                parts.append(constant)
                label = constant or label
                continue
            texts = [row[place][0].text for row in rows]
            found = self._attribute([row[place][0] for row in rows], label, items, parts)
            if found is None and held is not None:
                raise LookupError(key.name)
            parts.append(found or self._name(key, label, texts))
            label = ""
        return joined(parts, key.separator or "")

    def _attribute(
        self, parts: Sequence[Part], label: str, items: Sequence[int], used: Sequence[str | Variable]
    ) -> Variable | None:
        """Return the variable with the value of the part in all items.

        An attribute that the label names comes first, then one with the name of an identifier.
        """
        for name in self._only[items[0]]:
            variable = Variable(name, in_key_only=True)
            pairs = zip(items, parts, strict=True)
            if variable not in used and all(self._only[n].get(name) == part.text for n, part in pairs):
                return variable
        shared = frozenset.intersection(*(part.attributes for part in parts))
        taken = {*used, Variable(self.reader.layout.ttl or "")}
        candidates = {name for name in shared if Variable(name) not in taken and self._has_one_type(name)}
        found = best(candidates, label, self._schema)
        if (
            found is None
            or len({part.text for part in parts}) > 1
            or names.words([found]) & (names.words([label]) | _PLAIN)
        ):
            return None if found is None else Variable(found)
        return None

    def _has_one_type(self, name: str) -> bool:
        return len({type for item in self.kind.items for type in item.get(name, ())}) == 1

    def _name(self, key: KeyAttribute, label: str, texts: Sequence[str]) -> Variable:
        """Name a value that only the key contains by the constant before it, and keep it for the indexes."""
        empty = "partition_value" if key == self.reader.layout.keys[0] else "sort_value"
        taken = {*self._schema, *(name for each in self._only for name in each)}
        words = [names.singular(word) for word in words_of(label)]
        name = names.python_name("_".join(words) or empty, taken, empty=empty)
        for number, text in enumerate(texts):
            self._only[number][name] = text
        return Variable(name, in_key_only=True)


def merge(first: Kind, second: Kind) -> Kind:
    """Return one kind with the items of both."""
    typed = first.type if first.type == second.type else None
    return Kind(typed, grouping.merged(first.signature, second.signature), [*first.items, *second.items])


class EmptyTemplates(Templates):
    """The templates for a table without items: each key is an attribute."""

    def __init__(self, reader: Reader, kind: Kind) -> None:
        self.reader, self.kind = reader, kind
        self._only, self._schema = [], []
        self.primary = [self._whole(key) for key in reader.layout.keys]

    def index(self, keys: Sequence[KeyAttribute]) -> IndexTemplates:
        """Return the templates of an index, whose keys are attributes too."""
        return IndexTemplates(tuple((Variable(key.name),) for key in keys), 0)
