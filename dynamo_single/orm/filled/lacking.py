"""What not every item of a model has, by the form that a table says of them: keys, attributes and claims.

Pure. This module must not know how the table is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from dynamo_single.orm.filled import fitting, keys_in_use, names_in_use
from dynamo_single.orm.filled.states import StoredForm
from dynamo_single.orm.plan.lookups import Lookup
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.encoding.shards import Schedule
from dynamo_single.orm.schema.fingerprints import key_fingerprints
from dynamo_single.orm.schema.layout import ModelLayout


class Missing(Struct, frozen=True):
    """What not every item of a model has: names of keys, and of attributes; and the shards of a sharded model.

    ``otherwise`` says that items are written with other keys or names than the model's, until a migration is finished.
    """

    keys: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
    otherwise: bool = False
    schedule: Schedule | None = None


NOTHING: Final = Missing()


def missing_in(layout: ModelLayout, form: StoredForm | None) -> Missing:
    """What items of a form may lack; without one, of items of any."""
    changed = fitting.upgraded_names(layout, form)
    unfilled = changed.union(() if form is None else form.unfilled)
    if form is None and not unfilled:
        return NOTHING
    attributes = frozenset(name for name, info in layout.attributes.items() if info.stored in unfilled)
    upgraded = {name for name in attributes if layout.attributes[name].stored in changed}
    keys = {key.name for key in layout.index_keys if not upgraded.isdisjoint(key.named)}
    otherwise = False
    if form is not None:
        written = key_fingerprints(registry.model_of(layout))
        keys |= {key.name for key in layout.index_keys if form.keys.get(written[key.name]) != "filled"}
        otherwise = keys_in_use.index_keys(registry.model_of(layout)) != layout.index_keys
        otherwise = otherwise or names_in_use.is_open(layout, form)
    return Missing(frozenset(keys), attributes, otherwise)


def unclaimed(form: StoredForm | None, lookups: Sequence[Lookup]) -> frozenset[str]:
    """The fingerprints of the rules that not every item has its claim by."""
    rules = {} if form is None else form.rules
    fingerprints = () if form is None else (each.fingerprint for each in lookups)
    return frozenset(each for each in fingerprints if rules.get(each) != "filled")
