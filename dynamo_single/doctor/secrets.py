"""Mask secrets in what a table holds: in attributes and in keys, also in the items of the cache.

Which attributes are secrets is decided by ``orm/schema/secrecy``. This module sends nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dynamo_single.cache import entries
from dynamo_single.orm.schema import registry, secrecy
from dynamo_single.orm.schema.attributes.base import AlsoSecret
from dynamo_single.orm.schema.keys.secret_values import MASK, Path, hide
from dynamo_single.orm.schema.keys.template import Template
from dynamo_single.orm.schema.layout import AccessKey
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names
from dynamo_single.table.request import StoredValue

#: The types of the cache's items, whose values may be anything.
CACHE_TYPES: Final = frozenset({entries.ENTRY_TYPE, entries.PART_TYPE, entries.GENERATIONS_TYPE})
_CACHED: Final = frozenset({entries.VALUE, entries.NUMBER, entries.SIGNATURE})


class Masks:
    """What is masked of the items of one table; ``also`` is what a site adds to the secrets."""

    def __init__(self, also: AlsoSecret | None = None) -> None:
        self._also = also
        self._found: dict[type[DynamoModel], frozenset[str]] = {}

    def attributes(self, model: type[DynamoModel] | None) -> frozenset[str]:
        """Return the Python names of a model's secrets, with the copies that are made of them."""
        if model is None:
            return frozenset()
        if model not in self._found:
            self._found[model] = secrecy.secrets_of(model, self._also)
        return self._found[model]

    def hides(self, model: type[DynamoModel] | None, item_type: str, stored: str) -> bool:
        """Return whether an attribute of an item, by its name in the item, is masked."""
        if item_type in CACHE_TYPES:
            return stored in _CACHED
        return secrecy.is_secret(model, stored, self._also)

    def masked(self, model: type[DynamoModel] | None, item_type: str, item: Mapping[str, Any]) -> dict[str, Any]:
        """Return an item in DynamoDB's JSON without its secrets, at any depth; its keys are unchanged."""
        return {
            name: {"S": MASK} if self.hides(model, item_type, name) else self._inside(model, (name,), value)
            for name, value in item.items()
        }

    def inside(self, model: type[Any], name: str, value: object) -> object:
        """Return a Python value of an attribute without the secrets in it, at any depth."""
        return secrecy.hide(model, name, value, self._also)

    def sort_key(self, alias: str, partition: str, sort: str) -> str:
        """Return a sort key of a partition without the secrets in it."""
        return secrecy.masked_key(alias, partition, sort, self._also)[1]

    def log_key(self, partition: str) -> str:
        """Return a partition key without the ``pk`` of an object whose log it leads to, if that contains a secret."""
        return secrecy.masked_log(partition, self._also)

    def _inside(self, model: type[DynamoModel] | None, path: Path, value: StoredValue) -> dict[str, object]:
        ((kind, held),) = value.items()
        if kind == "S":
            return {"S": hide(held)}
        if kind == "SS":
            return {"SS": [hide(each) for each in held]}
        if kind == "M":
            return {"M": {name: self._member(model, (*path, name), each) for name, each in held.items()}}
        if kind == "L":
            return {"L": [self._inside(model, (*path, number), each) for number, each in enumerate(held)]}
        return dict(value)

    def _member(self, model: type[DynamoModel] | None, path: Path, value: StoredValue) -> dict[str, object]:
        return {"S": MASK} if secrecy.hides(model, path, self._also) else self._inside(model, path, value)


def masked_key(key: AccessKey | None, secret: frozenset[str], partition: str, sort: str) -> tuple[str, str]:
    """A key as it is shown: a text that a secret is part of keeps only what stands in front of its first variable."""
    if key is None or not secret.intersection(key.variables):
        return partition, sort
    shown = []
    for template, text in ((key.partition, partition), (key.sort, sort)):
        shown.append(template.head + MASK if secret.intersection(template.variables) else text)
    return shown[0], shown[1]


def masked_cache_key(partition: str) -> str:
    """A cache entry's partition key: keys of a cache may have session keys in them."""
    head, separator, rest = partition.partition("#")
    name, separator, _ = rest.partition("#")
    return f"{head}#{name}#{MASK}" if separator else partition


def masked_claim(partition: str) -> str:
    """A claim's partition key without the values, which come after the type and the first attribute."""
    return "#".join([*partition.split("#")[:3], MASK])


# Partition keys that have a secret in them, of whatever items: they are masked, and nobody may ask for them.
#
# Who could search for what begins with a part of a session's key would find the whole of it, letter by letter.

_CACHE: Final = entries.ENTRY_PARTITION.partition("{")[0]
_CLAIM: Final = f"{names.UNIQUE_PREFIX}#"


def masked_text(alias: str, partition: str, masks: Masks) -> str:
    """A partition key as it is shown: a claim is looked up in the table of the alias; one of no model is masked."""
    if partition.startswith(_CACHE):
        return masked_cache_key(partition)
    if partition.startswith(_CLAIM):
        return masked_claim(partition) if is_secret_claim(alias, partition, masks) else partition
    for template in _secret_templates(masks):
        if template.matches(partition):
            return template.head + MASK
    return masks.log_key(partition)


def asks_for_secret(alias: str, prefix: str, masks: Masks) -> bool:
    """Whether a text that partition keys are to begin with reaches into a secret."""
    if prefix.startswith(_CACHE):
        return MASK in masked_cache_key(prefix) and not prefix.endswith("#")
    if prefix.startswith(_CLAIM):
        return prefix.count("#") > 2 and is_secret_claim(alias, prefix, masks)
    return masks.log_key(prefix) != prefix or any(
        prefix.startswith(template.head) and prefix != template.head and template.could_start_with(prefix)
        for template in _secret_templates(masks)
    )


def is_secret_claim(alias: str, partition: str, masks: Masks) -> bool:
    """Whether a claim is one on a secret, or of no model: the names of the attributes come after the type."""
    _, item_type, *parts = [*partition.split("#"), ""]
    model = registry.model_of_type(alias, item_type)
    return model is None or any(masks.hides(model, item_type, part) for part in parts)


def _secret_templates(masks: Masks) -> Iterator[Template]:
    for model in registry.all_models():
        if not (secret := masks.attributes(model)):
            continue
        layout = registry.layout_of(model)
        for key in (layout.primary, *layout.index_keys):
            if not secret.isdisjoint(key.partition.variables):
                yield key.partition
