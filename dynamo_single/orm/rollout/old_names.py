"""The physical names that a model's items have now: its own, or while one is being renamed, what the table says.

Until old code has stopped, code of now reads the old name and writes both; then it reads the new one. Pure:
``bindings`` has what is open.
"""

from __future__ import annotations

from collections.abc import Iterator

from dynamo_single.orm.rollout.states import StoredForm
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import Attribute
from dynamo_single.orm.schema.bindings import ModelBinding
from dynamo_single.orm.schema.layout import ModelLayout, Twin
from dynamo_single.orm.schema.types import DynamoModel


def twins_of(binding: ModelBinding, form: StoredForm) -> tuple[Twin, ...]:
    """What of a model is being renamed by the table's form, and what was when the binding was made."""
    return tuple(_twins(binding, form)) if form.renames or binding.layout.twins else ()


def is_open(layout: ModelLayout, form: StoredForm) -> bool:
    """Whether an attribute of the model is being renamed, so that the table is to be asked again."""
    return any(twin.used in form.renames or twin.other in form.renames for twin in layout.twins)


def refusal(attribute: Attribute, stored: str, form: StoredForm) -> str:
    """Why an attribute can be neither read nor written while it is being renamed, in words; empty if it can."""
    if stored in form.renames and form.renames[stored].phase == "open":
        return (
            f"its items have {form.renames[stored].old!r} still, and not {stored!r}; code cannot have both, since "
            "unique values or other items follow from it. Stop the old code, and run "
            "manage.py migrate --finish"
        )
    new = next((new for new, each in form.renames.items() if each.old == stored and each.phase != "open"), None)
    return "" if new is None else f"{attribute.name} is stored as {new!r} by now, and no longer as {stored!r}"


def _twins(binding: ModelBinding, form: StoredForm) -> Iterator[Twin]:
    for attribute in registry.attributes_of(binding.model).values():
        own = attribute.attr_name
        rename = form.renames.get(own)
        if rename is not None and is_served(binding.model, attribute):
            is_before = rename.phase == "open"
            used, other = (rename.old, own) if is_before else (own, rename.old)
            yield Twin(used, other, is_before, is_kept=rename.phase != "going")
        elif rename is None and own in form.attributes:
            # Objects that were read before it ended may be written still.
            known = (twin for twin in binding.layout.twins if own in (twin.used, twin.other))
            yield from (Twin(own, twin.other if twin.used == own else twin.used, is_kept=False) for twin in known)


def is_served(model: type[DynamoModel], attribute: Attribute) -> bool:
    """Whether code can have both names of an attribute: what other items or claims follow from has one only."""
    field, meta, layout = attribute.field, model._meta, registry.declared_layout(model)
    if layout.sharding is not None and attribute.name in (layout.sharding.attribute, layout.sharding.at):
        return False
    constrained = {name for fields in meta.unique_together for name in fields}
    for constraint in meta.constraints:
        constrained.update(getattr(constraint, "fields", ()))
        if getattr(constraint, "condition", None) is not None:
            return False
    return not (
        attribute.unique
        or field.is_relation
        or attribute.computed
        or not {field.name, field.attname}.isdisjoint((*constrained, *model._identity, *model.derived_from))
        or any(copy.source is attribute for copy in registry.copied_from(model))
    )
