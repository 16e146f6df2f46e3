"""Find the model of an item without a type, and the stored names of an alias's models.

The templates of the primary keys determine the model. The module does not send requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from dynamo_single.conf import table_settings
from dynamo_single.conf.shapes import OWN, Shape
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.schema import bindings, registry
from dynamo_single.orm.schema.attributes import Attribute
from dynamo_single.orm.schema.keys.shards import split_partition
from dynamo_single.orm.schema.keys.stored_keys import is_whole
from dynamo_single.orm.schema.keys.template import SEPARATOR, Template
from dynamo_single.orm.schema.layout import ModelLayout
from dynamo_single.table.names import ITEM_TYPE, PARTITION_KEY, SORT_KEY
from dynamo_single.table.request import Item, StoredValue
from dynamo_single.table.shaped.declared import ModelNames
from dynamo_single.table.shaped.sortable import is_number_text, key_value, number_of_text

#: The number of keys in the cache of types, for each table.
_REMEMBERED = 4096
#: The name of a group of a pattern cannot have the name of every attribute.
_GROUP = "value_{}"


class KeyPattern:
    """The keys that the primary templates of a model can make."""

    def __init__(self, layout: ModelLayout, *, raw: bool) -> None:
        self.item_type = layout.item_type
        self._is_sharded = layout.primary.sharding is not None
        self._templates = layout.primary.partition, layout.primary.sort
        self._patterns = tuple(map(_pattern, self._templates)) if raw else None

    def values(self, partition: str, sort: str) -> dict[str, str] | None:
        """Return the written values of a key's attributes; ``None`` if the key is not one of the model."""
        if self._is_sharded:
            partition = split_partition(partition)[0]
        if self._patterns is None:
            templates = zip(self._templates, (partition, sort), strict=True)
            return {} if all(template.matches(text) for template, text in templates) else None
        found: dict[str, str] = {}
        for template, pattern, text in zip(self._templates, self._patterns, (partition, sort), strict=True):
            if (match := pattern.fullmatch(text)) is None:
                return None
            found |= {part.name: match[_GROUP.format(place)] for place, part in enumerate(template.parts)}
        return found


def _pattern(template: Template) -> re.Pattern[str]:
    """Return the expression that matches the keys of a template with raw values."""
    text = ""
    for place, part in enumerate(template.parts):
        value = f"[^{re.escape(part.terminator or SEPARATOR)}]" if not is_whole(template) else "."
        text += f"{re.escape(part.literal)}(?P<{_GROUP.format(place)}>{value}+)"
    return re.compile(text + re.escape(template.tail), re.DOTALL)


def patterns_of(alias: str) -> Sequence[KeyPattern]:
    """Return the patterns of the primary keys of an alias's models; a check reports models with invalid keys."""
    raw = table_settings(alias).shape.raw_keys
    found = []
    for model in registry.all_models():
        if model._options.alias == alias:
            try:
                found.append(KeyPattern(registry.declared_layout(model), raw=raw))
            except ConfigurationError:
                continue
    return found


@bindings.shared
def model_names(alias: str) -> ModelNames:
    """Return the declarations of an alias's models that its table needs."""
    models = [model for model in registry.all_models() if model._options.alias == alias]
    declared = frozenset(each.attr_name for model in models for each in registry.attributes_of(model).values())
    shape = _shape(alias)
    key_only = {
        each.attr_name: each for model in models for each in registry.attributes_of(model).values() if each.in_key_only
    }
    type_of = _recognizer(alias) if shape.type_attribute is None else _no_type
    return ModelNames(declared, frozenset(key_only), type_of, _reader(alias) if key_only else _no_values)


def _shape(alias: str) -> Shape:
    try:
        return table_settings(alias).shape
    except ConfigurationError:
        return OWN  # other uses of the table raise the error


def _no_values(item: Item) -> dict[str, StoredValue]:
    return {}


def _reader(alias: str) -> Callable[[Item], dict[str, StoredValue]]:
    """Return the function that reads the attributes of an item that only its key contains."""
    patterns: dict[str, tuple[KeyPattern, dict[str, Attribute]]] = {}

    def values_of(item: Item) -> dict[str, StoredValue]:
        if not patterns:
            for each in patterns_of(alias):
                model = registry.model_of_type(alias, each.item_type)
                own = {} if model is None else registry.attributes_of(model)
                patterns[each.item_type] = each, {name: one for name, one in own.items() if one.in_key_only}
        pattern, wanted = patterns.get(item.get(ITEM_TYPE, {}).get("S", ""), (None, {}))
        if pattern is None or not wanted:
            return {}
        found = pattern.values(item[PARTITION_KEY]["S"], item[SORT_KEY]["S"])
        if found is None:
            return {}
        return {each.attr_name: _value(each.attr_type, found[name]) for name, each in wanted.items()}

    return values_of


def _value(kind: str, text: str) -> StoredValue:
    # The whole key of a number or binary value is a string that sorts like it.
    if kind == "N":
        return {"N": number_of_text(text) if is_number_text(text) else text}
    return key_value({"S": text}, "B") if kind == "B" else {"S": text}


def _no_type(partition: str, sort: str) -> None:
    return None


def _recognizer(alias: str) -> Callable[[str, str], str | None]:
    patterns: list[KeyPattern] = []

    @lru_cache(maxsize=_REMEMBERED)
    def type_of(partition: str, sort: str) -> str | None:
        if not patterns:
            patterns.extend(patterns_of(alias))
        found = [each.item_type for each in patterns if each.values(partition, sort) is not None]
        return found[0] if len(found) == 1 else None

    return type_of
