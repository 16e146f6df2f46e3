"""The physical names that a model's attributes have now: its own, or while one is being renamed, what the table says.

Until old code has stopped, code of now reads the old name and writes both; then it reads the new one. An attribute is
changed in its place, with the layouts that name it, so that everything that is worked out of them follows. This module
sends nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import force_setattr

from dynamo_single.orm.rollout.caches import changing
from dynamo_single.orm.rollout.states import StoredForm
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import Attribute
from dynamo_single.orm.schema.layout import ModelLayout, Twin
from dynamo_single.orm.schema.types import DynamoModel

#: By model, the declared physical names of its attributes that are being renamed, or were while this process ran.
_declared: dict[Any, dict[str, str]] = {}
_listeners: list[Callable[[Any], None]] = []


def listen(listener: Callable[[Any], None]) -> None:
    """Let a function be called with a model whose names in use are others than before."""
    _listeners.append(listener)


def follow(layout: ModelLayout, form: StoredForm | None) -> None:
    """Let a model's attributes have the names that its items have by the table's form."""
    model = registry.model_of(layout)._meta.concrete_model
    if form is None or (not form.renames and model not in _declared):
        if form is None:
            _reset(model)
        return
    twins = tuple(_twins(model, form))
    if twins != layout.twins:
        _put(model, twins)


def is_open(layout: ModelLayout, form: StoredForm) -> bool:
    """Whether an attribute of the model is being renamed, so that the table is to be asked again."""
    return any(twin.used in form.renames or twin.other in form.renames for twin in layout.twins)


def refusal(attribute: Attribute, stored: str, form: StoredForm) -> str:
    """Why an attribute can be neither read nor written while it is being renamed, in words; empty if it can."""
    if stored in form.renames and form.renames[stored].phase == "open":
        return (
            f"its items have {form.renames[stored].old!r} still, and not {stored!r}; code cannot have both, since "
            "unique values or other items follow from it, or the model has upgrades. Stop the old code, and run "
            "manage.py migrate --finish"
        )
    new = next((new for new, each in form.renames.items() if each.old == stored and each.phase != "open"), None)
    return "" if new is None else f"{attribute.name} is stored as {new!r} by now, and no longer as {stored!r}"


def forget() -> None:
    """Let all attributes have the names of their declarations, until the table is asked again."""
    for model in [*_declared]:
        _reset(model)


def _twins(model: Any, form: StoredForm) -> Iterator[Twin]:
    declared = _declared.get(model, {})
    for name, attribute in registry.attributes_of(model).items():
        own = declared.get(name, attribute.attr_name)
        rename = form.renames.get(own)
        if rename is not None and is_served(model, attribute):
            is_before = rename.phase == "open"
            used, other = (rename.old, own) if is_before else (own, rename.old)
            yield Twin(used, other, is_before, is_kept=rename.phase != "going")
        elif rename is None and own in form.attributes:
            # Objects that were read before it ended may be written still.
            yield from (Twin(own, _other(twin, own), is_kept=False) for twin in _known(model, own))


def _known(model: type[DynamoModel], own: str) -> Iterator[Twin]:
    layout = registry.layout_of(model)
    return (twin for twin in layout.twins if own in (twin.used, twin.other))


def _other(twin: Twin, own: str) -> str:
    return twin.other if twin.used == own else twin.used


def is_served(model: type[DynamoModel], attribute: Attribute) -> bool:
    """Whether code can have both names of an attribute: what other items or claims follow from has one only."""
    field, meta, layout = attribute.field, model._meta, registry.layout_of(model)
    if layout.schema is not None:
        return False  # upgrades are functions of items by their names
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


def _reset(model: object) -> None:
    if model in _declared:
        _put(model, ())
        del _declared[model]


def _put(model: Any, twins: tuple[Twin, ...]) -> None:
    with changing():
        _rename(model, twins)
        for listener in _listeners:
            listener(model)


def _rename(model: type[DynamoModel], twins: tuple[Twin, ...]) -> None:
    declared = _declared.setdefault(model, {})
    used = {name: twin.used for twin in twins for name in (twin.used, twin.other)}
    layouts = registry.layouts_of(model)
    for name, attribute in registry.attributes_of(model).items():
        own = declared.get(name, attribute.attr_name)
        if own in used:
            declared[name] = own
        wanted = used.get(own, own)
        if attribute.attr_name != wanted:
            attribute.attr_name = wanted
            for layout in layouts:
                force_setattr(layout.attributes[name], "stored", wanted)
    for layout in layouts:
        force_setattr(layout, "twins", twins)
