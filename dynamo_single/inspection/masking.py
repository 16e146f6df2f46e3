"""Which values are nobody's business: passwords, tokens, session keys and cached values, in attributes and in keys.

This module knows names and declarations. It sends nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from dynamo_single.cache import entries, signing
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.orm.schema.layout import AccessKey
from dynamo_single.table.items import StoredValue

#: What stands in the place of a secret.
MASK: Final = "•••"

#: Whether an attribute of a model is a secret; the model is ``None`` for an item of no known type.
IsSecret = Callable[[Any, str], bool]

_SECRET = re.compile(
    r"passw|passphrase|secret|token|session_?(key|data)|api_?key|private_?key|credential|signature|recovery_?code"
    r"|(^|_)otp|totp",
    re.IGNORECASE,
)
#: The types of the cache's items, whose values may be anything.
CACHE_TYPES: Final = frozenset({entries.ENTRY_TYPE, entries.PART_TYPE, entries.GENERATIONS_TYPE})
_CACHED: Final = frozenset({entries.VALUE, entries.NUMBER, signing.SIGNATURE})


def is_secret(model: type[DynamoModel] | None, name: str) -> bool:
    """Whether an attribute looks like a secret by its name: its Python name, or its name in the item."""
    return _SECRET.search(name) is not None


class Masks:
    """What is masked of the items of one table."""

    def __init__(self, is_secret: IsSecret = is_secret) -> None:
        self._is_secret = is_secret
        self._found: dict[type[DynamoModel], frozenset[str]] = {}

    def attributes(self, model: type[DynamoModel] | None) -> frozenset[str]:
        """The Python names of a model's secrets, with the copies that are made of them."""
        if model is None:
            return frozenset()
        if model not in self._found:
            self._found[model] = frozenset(name for name in registry.attributes_of(model) if self._of(model, name))
        return self._found[model]

    def hides(self, model: type[DynamoModel] | None, item_type: str, stored: str) -> bool:
        """Whether an attribute of an item, by its name in the item, is masked."""
        if item_type in CACHE_TYPES:
            return stored in _CACHED
        found = () if model is None else registry.attributes_of(model).items()
        name = next((name for name, attribute in found if attribute.attr_name == stored), stored)
        return self._is_secret(model, stored) or (model is not None and self._of(model, name))

    def masked(self, model: type[DynamoModel] | None, item_type: str, item: Mapping[str, Any]) -> dict[str, Any]:
        """An item in DynamoDB's JSON without its secrets, at any depth; its keys are left as they are."""
        return {
            name: {"S": MASK} if self.hides(model, item_type, name) else self._inside(model, value)
            for name, value in item.items()
        }

    def hides_field(self, model: type[DynamoModel], name: str) -> bool:
        """Whether a field of a model's form is masked, by its Python name; also one that is no attribute."""
        attname = next((field.attname for field in model._meta.concrete_fields if field.name == name), name)
        return self._is_secret(model, name) or self._of(model, attname)

    def inside(self, model: type[DynamoModel], value: object) -> object:
        """A Python value without the secrets in its maps, at any depth, as ``masked()`` has it of what is stored."""
        if isinstance(value, Mapping):
            return {
                name: MASK if self._is_secret(model, str(name)) else self.inside(model, each)
                for name, each in value.items()
            }
        return [self.inside(model, each) for each in value] if isinstance(value, list) else value

    def _of(self, model: type[DynamoModel], name: str) -> bool:
        attributes = registry.attributes_of(model)
        if name not in attributes:
            return self._is_secret(model, name)
        if self._is_secret(model, name) or self._is_secret(model, attributes[name].attr_name):
            return True
        for copy in registry.copies_of(model):
            if copy.name == name:
                inside = copy.origin.split("__")[1:] if copy.origin != copy.source else []
                return self._of(model, copy.source) or any(self._is_secret(model, step) for step in inside)
        for copied in registry.copied_of(model):
            if copied.name == name:
                return self._of(copied.source.field.model._meta.concrete_model, copied.source.name)
        return False

    def _inside(self, model: type[DynamoModel] | None, value: StoredValue) -> dict[str, object]:
        if "M" in value:
            return {
                "M": {
                    name: {"S": MASK} if self._is_secret(model, name) else self._inside(model, each)
                    for name, each in value["M"].items()
                }
            }
        if "L" in value:
            return {"L": [self._inside(model, each) for each in value["L"]]}
        return dict(value)


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
