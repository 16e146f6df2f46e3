"""Keys with the secrets in them masked. This module sends no requests.

Partition keys of any item can contain a secret. They are masked, and users cannot query by them: a search for keys that
begin with a part of a session's key would find the complete key letter by letter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from dynamo_single.admin.secrets import Masks
from dynamo_single.cache import entries
from dynamo_single.conf import COMPANION_PREFIX
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.keys.secret_values import MASK
from dynamo_single.orm.schema.keys.template import Template
from dynamo_single.orm.schema.layout import AccessKey
from dynamo_single.table import names


def masked_key(key: AccessKey | None, secret: frozenset[str], partition: str, sort: str) -> tuple[str, str]:
    """Return a key with masked secrets. Only the text before the first variable of a secret part is kept."""
    if key is None or not secret.intersection(key.variables):
        return partition, sort
    shown = []
    for template, text in ((key.partition, partition), (key.sort, sort)):
        shown.append(template.head + MASK if secret.intersection(template.variables) else text)
    return shown[0], shown[1]


def masked_cache_key(partition: str) -> str:
    """Return a cache entry's partition key with its last part masked: it may contain a session key."""
    head, separator, rest = partition.partition("#")
    name, separator, _ = rest.partition("#")
    return f"{head}#{name}#{MASK}" if separator else partition


_CACHE: Final = entries.ENTRY_PARTITION.partition("{")[0]
_CLAIM: Final = f"{names.UNIQUE_PREFIX}#"


def masked_text(alias: str, partition: str, masks: Masks) -> str:
    """Return a partition key with masked secrets. A claim is looked up by the alias and masked if it has no model."""
    return masked_cache_key(partition) if partition.startswith(_CACHE) else masks.key(alias, partition)[0]


def asks_for_secret(alias: str, prefix: str, masks: Masks) -> bool:
    """Return whether a prefix of partition keys extends into a secret."""
    if prefix.startswith(COMPANION_PREFIX):
        _, alias, rest = about(prefix)
        return asks_for_secret(alias, rest, masks)
    if prefix.startswith(_CACHE):
        return MASK in masked_cache_key(prefix) and not prefix.endswith("#")
    if prefix.startswith(_CLAIM):
        return prefix.count("#") > 2 and masked_text(alias, prefix, masks) != prefix
    return masks.log_key(prefix) != prefix or any(
        prefix.startswith(template.head) and prefix != template.head and template.could_start_with(prefix)
        for template in _secret_templates(masks)
    )


def compares_secret(alias: str, index: str | None, partition: str, operands: Iterable[str], masks: Masks) -> bool:
    """Return whether a condition on the sort keys of a partition compares with a secret in them."""
    for model in registry.all_models():
        if model._options.alias != alias or not (secret := masks.attributes(model)):
            continue
        layout = registry.layout_of(model)
        for key in (layout.primary, *layout.index_keys):
            if key.index != index or secret.isdisjoint(key.sort.variables) or not key.has_partition(partition):
                continue
            if any(text.startswith(key.sort.head) and text != key.sort.head for text in operands):
                return True
    return False


def about(partition: str) -> tuple[str, str, str]:
    """Return the prefix of an item in a companion, the alias of the table that it is about, and the rest of the key."""
    alias, separator, rest = partition.removeprefix(COMPANION_PREFIX).partition("#")
    return f"{COMPANION_PREFIX}{alias}{separator}", alias, rest


def _secret_templates(masks: Masks) -> Iterator[Template]:
    for model in registry.all_models():
        if not (secret := masks.attributes(model)):
            continue
        layout = registry.layout_of(model)
        for key in (layout.primary, *layout.index_keys):
            if not secret.isdisjoint(key.partition.variables):
                yield key.partition
