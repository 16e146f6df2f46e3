"""The form of items that a model's code stands for: what a table is told once every item has it."""

from __future__ import annotations

from collections.abc import Iterable

from dynamo_single.orm.filled.states import KeyTemplates, StoredForm
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.fingerprints import attribute_fingerprint, key_fingerprints
from dynamo_single.orm.schema.layout import ModelLayout
from dynamo_single.orm.schema.upgrades import FIRST


def form_of(layout: ModelLayout, rules: Iterable[str] = ()) -> StoredForm:
    """The form in which a model is stored, with every key filled, and the unique rules of these fingerprints.

    The rules are an effect of writes, which this floor does not know: ``orm/items/unique_rules`` has them.
    """
    model = registry.model_of(layout)
    keys = key_fingerprints(model)
    version = FIRST if layout.schema is None else layout.schema.version
    stored = {name: info.stored for name, info in layout.attributes.items()}
    return StoredForm(
        label=layout.label.lower(),
        primary=keys["primary"],
        attributes={each.attr_name: attribute_fingerprint(each) for each in registry.attributes_of(model).values()},
        keys={keys[key.name]: "filled" for key in layout.index_keys},
        templates={keys[key.name]: KeyTemplates.of(key, stored) for key in layout.index_keys},
        rules=dict.fromkeys(rules, "filled"),
        schema_version=version,
        raised_to=version,
    )
