"""Turn one kind of items into a model: its name, attributes and keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from dynamo_single.contrib.inspection import attributes, names, words
from dynamo_single.contrib.inspection.grouping import Kind, Layout
from dynamo_single.contrib.inspection.indexes import Index
from dynamo_single.contrib.inspection.keys import OWN_NAMES, Template, Variable
from dynamo_single.contrib.inspection.proposal import ProposedAttribute, ProposedKey, ProposedModel
from dynamo_single.contrib.inspection.templates import IndexTemplates, Templates
from dynamo_single.orm.schema.keys.secret_values import words_of

#: The most attributes of one model; the app keeps values that no attribute declares.
MAX_ATTRIBUTES: Final = 100
#: Words for parts of an object: the items of an order are not orders.
_PARTS: Final = frozenset({"detail", "entry", "history", "item", "log", "record", "setting"})
_OF_TYPES: Final = {"S": "UnicodeAttribute", "N": "DecimalAttribute", "B": "BinaryAttribute"}

_ByIndex = list[tuple[Index, IndexTemplates]]


def model_of(kind: Kind, found: Templates, indexes: Sequence[Index], taken: Collection[str]) -> ProposedModel:
    """Return the model of one kind; ``taken`` are the names of other models."""
    layout = found.reader.layout
    pairs = ((index, found.index(keys)) for index, keys in zip(indexes, layout.indexes, strict=True))
    by_index: _ByIndex = [(index, each) for index, each in pairs if each is not None]
    model = ProposedModel(
        name=_name(kind, found, by_index, taken),
        count=len(kind.items),
        attributes=[],
        primary=found.primary,
        item_type=kind.type if layout.type_attribute is not None else None,
    )
    templates = (*found.primary, *(template for _, each in by_index for template in each.templates))
    used = dict.fromkeys(part for template in templates for part in template if isinstance(part, Variable))
    _add_attributes(model, kind, layout, used)
    for index, each in by_index:
        partly = [f"{each.held} of {len(kind.items)} items are in it"] if each.held < len(kind.items) else []
        model.keys.append(ProposedKey(index.name, index.name, [*each.templates], [*index.notes, *partly]))
    return model


def _add_attributes(model: ProposedModel, kind: Kind, layout: Layout, used: Iterable[Variable]) -> None:
    counts = Counter(name for item in kind.items for name in item)
    in_key = dict.fromkeys(each.name for each in used if not each.in_key_only)
    hidden = {*layout.key_names, layout.type_attribute}
    others = sorted(name for name in counts if name not in in_key and name not in hidden)
    if (rest := len(in_key) + len(others) - MAX_ATTRIBUTES) > 0:
        model.notes.append(f"{rest} rarer attributes are not declared: the app keeps their values unchanged.")
        ranked = sorted(others, key=lambda name: -counts[name])[: max(0, MAX_ATTRIBUTES - len(in_key))]
        others = [name for name in others if name in set(ranked)]
    for variable in used:
        if variable.in_key_only:
            name = model.names[f"!{variable.name}"] = names.python_name(variable.name, model.names.values())
            options = {"in_key_only": "True"}
            model.attributes.append(ProposedAttribute(name, "UnicodeAttribute", name, options, ["only the key has it"]))
    types = {key.name: key.type for keys in (layout.keys, *layout.indexes) for key in keys}
    for stored in (*in_key, *others):
        name = model.names[stored] = names.python_name(stored, model.names.values())
        if counts[stored]:
            found = _attribute(name, stored, kind, layout, in_key=stored in in_key)
        else:
            found = ProposedAttribute(name, _OF_TYPES[types[stored]], stored, {})
        model.attributes.append(found)


def _attribute(name: str, stored: str, kind: Kind, layout: Layout, *, in_key: bool) -> ProposedAttribute:
    values = [item[stored] for item in kind.items if stored in item]
    if stored in OWN_NAMES:
        return ProposedAttribute(
            name, "", stored, {}, ["the app uses this name itself, and keeps the values unchanged"]
        )
    if stored == layout.ttl and all("N" in value for value in values):
        return ProposedAttribute(name, "TTLAttribute", stored, {"null": "True"})
    found = attributes.find(stored, values, missing=len(kind.items) - len(values), in_key=in_key)
    return ProposedAttribute(name, found.kind, stored, dict(found.options), [*found.notes])


def _name(kind: Kind, found: Templates, by_index: _ByIndex, taken: Collection[str]) -> str:
    """Name a model by its type, or by the last constant of its keys that is not structural, or by the table."""
    if kind.type is not None:
        return names.model_name(kind.type, taken)
    labels = [*_labels(reversed(found.primary))]
    of_indexes = _labels(template for _, each in by_index for template in each.templates)
    named = next((label for label in (*labels, *of_indexes) if not words.is_structural(label)), None)
    first = named or (*labels, found.reader.layout.table_name)[0]
    if labels and labels[0] != first and (_PARTS & names.words(labels[:1]) or names.model_name(first) in taken):
        first = f"{first}_{labels[0]}"
    return names.model_name(first, taken)


def _labels(found: Iterable[Template]) -> Iterator[str]:
    """Yield the words of the literals, the last ones first, since the last one names the item."""
    for template in found:
        for part in reversed(template):
            if isinstance(part, str):
                spaced = "".join(each if each.isalnum() or each in "_-" else " " for each in part)
                stripped = (word.strip("_-") for word in reversed(spaced.split()))
                yield from (word for word in stripped if len(word) > 1 and words_of(word))
