"""What not every item of a model has, by the form that a table says of them: keys, attributes and claims.

Pure. This module must not know how the table is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from dynamo_single.exceptions import FormNotApplied
from dynamo_single.orm.plan.unique_lookups import Lookup
from dynamo_single.orm.rollout import old_names
from dynamo_single.orm.rollout.states import StoredForm, TableState
from dynamo_single.orm.schema import bindings, registry
from dynamo_single.orm.schema.attributes import Attribute, CounterAttribute
from dynamo_single.orm.schema.fingerprints import attribute_fingerprint, key_fingerprints
from dynamo_single.orm.schema.keys.shards import Schedule
from dynamo_single.orm.schema.layout import ModelLayout
from dynamo_single.orm.schema.upgrades import operation_text

# Whether a table's items have the form that a model reads and writes, or else the error that says what differs.


def form_in(state: TableState, layout: ModelLayout) -> StoredForm | None:
    """The form of a model's items, if the table says one; raises if it says one of another type of items."""
    found = state.forms.get(layout.item_type)
    if found is not None:
        return found
    for item_type, form in state.forms.items():
        if form.label == layout.label.lower():
            what = f"its items have the itemType {item_type!r}, and not {layout.item_type!r}"
            raise not_applied(layout, what + _moving(form))
    return None


def _moving(form: StoredForm) -> str:
    """What the error adds about items that are to be moved, once a migration has begun that."""
    if all(each.kind != "MoveKeys" for each in form.opened):
        return ""
    return (
        "; they move one by one when migrate --finish is run, and an object is found in one place only: this code has "
        "to wait until it is finished, and the old code has to be stopped before it begins"
    )


def check(layout: ModelLayout, form: StoredForm) -> None:
    """Raise if the items are stored otherwise than the model reads and writes them."""
    check_version(layout, form)
    model = registry.model_of(layout)
    primary = key_fingerprints(layout)["primary"]
    if primary != form.primary:
        what = f"its items have the key {form.primary!r}, and not {primary!r}"
        raise not_applied(layout, what + _moving(form))
    for name, attribute in registry.attributes_of(model).items():
        stored = layout.attributes[name].stored
        if why := old_names.refusal(attribute, stored, form):
            raise not_applied(layout, why)
        found, written = form.attributes.get(stored), attribute_fingerprint(attribute, layout)
        if found == written or _is_counted_anew(attribute, form):
            continue
        if found is None:
            raise not_applied(layout, f"it stores {name} as {stored!r}, which its items do not have")
        raise not_applied(layout, f"it stores {name} as {written!r}, and its items have {found!r}")


def _is_counted_anew(attribute: Attribute, form: StoredForm) -> bool:
    """Whether it is a counter that a migration is to count: until then nothing is asked by it, whatever it counts."""
    is_there = attribute.attr_name in form.attributes
    return is_there and attribute.attr_name in form.unfilled and isinstance(attribute, CounterAttribute)


def check_version(layout: ModelLayout, form: StoredForm) -> None:
    """Raise if items may be of an earlier schema version, which an earlier release upgraded when it read them."""
    if form.raised_to <= form.schema_version:
        return
    name = layout.label.rpartition(".")[2]
    raise FormNotApplied(
        f"The items of {layout.label} may be of schema versions {form.schema_version} to {form.raised_to}, and are no "
        "longer upgraded when they are read. Nothing was read or written. Upgrade them in a migration with "
        f"{operation_text(name, form.raised_to)}; run migrate and migrate --finish."
    )


def not_applied(layout: ModelLayout, what: str) -> FormNotApplied:
    return FormNotApplied(
        f"{layout.label} is not as the table's items are: {what}. Nothing was read or written. Carry out the "
        "migrations that this code has (manage.py migrate), or write the missing one (manage.py makemigrations)."
    )


# shards
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
    """What items of a form may lack; nothing is known of items without one."""
    if form is None:
        return NOTHING
    attributes = frozenset(name for name, info in layout.attributes.items() if info.stored in form.unfilled)
    written = key_fingerprints(layout)
    keys = frozenset(key.name for key in layout.index_keys if form.keys.get(written[key.name]) != "filled")
    rollout = bindings.rollout_of(registry.model_of(layout))
    otherwise = (rollout is not None and rollout.keys is not None) or old_names.is_open(layout, form)
    return Missing(keys, attributes, otherwise)


def rules_without_claims(form: StoredForm | None, lookups: Sequence[Lookup]) -> frozenset[str]:
    """The fingerprints of the rules that not every item has its claim by."""
    rules = {} if form is None else form.rules
    fingerprints = () if form is None else (each.fingerprint for each in lookups)
    return frozenset(each for each in fingerprints if rules.get(each) != "filled")
