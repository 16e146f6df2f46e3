"""Keys as people are shown them: without the secrets that they are built from. This module sends nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dynamo_single.admin.secrets import Masks
from dynamo_single.cache import entries
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.keys.secret_values import MASK
from dynamo_single.orm.schema.keys.template import Template
from dynamo_single.orm.schema.layout import AccessKey
from dynamo_single.table import names


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
