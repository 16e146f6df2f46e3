"""Find attributes that contain the primary keys of another model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from dynamo_single.contrib.inspection import names
from dynamo_single.contrib.inspection.grouping import Kind
from dynamo_single.contrib.inspection.keys import Variable
from dynamo_single.contrib.inspection.proposal import ProposedAttribute, ProposedModel
from dynamo_single.contrib.inspection.templates import Templates

#: Words in the names of identifiers.
_IDENTIFYING: Final = frozenset({"code", "id", "key", "uuid"})
#: The fewest different values after which a note mentions a reference that the name does not.
_FEWEST: Final = 3

Described = tuple[ProposedModel, Kind, Templates]


class _Target(Struct, frozen=True):
    """A model whose primary key has one value, with the values of the sample."""

    model: str
    values: frozenset[str]


def add(described: Sequence[Described]) -> None:
    """Declare the references between the models of a sample.

    An attribute whose name contains the model, such as ``customer_id``, is declared as a reference if each value is a
    primary key of that model. Without the name, it has a note.
    """
    targets = [*filter(None, (_target(*each) for each in described))]
    for model, kind, found in described:
        for attribute in model.attributes:
            values = [item[attribute.stored] for item in kind.items if attribute.stored in item]
            texts = {value.get("S", "") for value in values}
            is_identity = found.variables == {Variable(attribute.stored): None}
            if texts and "" not in texts and not is_identity:
                _refer(model, attribute, [each for each in targets if texts <= each.values], len(texts))


def _target(model: ProposedModel, kind: Kind, found: Templates) -> _Target | None:
    identity = [*found.variables]
    if len(identity) != 1 or identity[0].in_key_only:
        return None
    declared = next((each for each in model.attributes if each.stored == identity[0].name), None)
    if declared is None or declared.kind not in ("UnicodeAttribute", "UUIDAttribute"):
        return None
    return _Target(model.name, frozenset(item[identity[0].name].get("S", "") for item in kind.items))


def _refer(model: ProposedModel, attribute: ProposedAttribute, targets: Sequence[_Target], count: int) -> None:
    own = names.words([attribute.stored])
    for target in targets:
        if target.model == model.name or attribute.refers_to:
            continue
        if (
            own & _IDENTIFYING
            and own - _IDENTIFYING == names.words([target.model])
            and _declare(model, attribute, target)
        ):
            return
        if count >= _FEWEST:
            attribute.notes.append(
                f'its values are keys of {target.model}: models.ReferenceAttribute("{target.model}")?'
            )


def _declare(model: ProposedModel, attribute: ProposedAttribute, target: _Target) -> bool:
    """Declare a reference, unless its names are taken or the model already refers to the same model."""
    others = [each for each in model.attributes if each is not attribute]
    taken = {name for each in others for name in (each.name, f"{each.name}_id" if each.refers_to else each.name)}
    field = attribute.name.removesuffix("_id")
    if {field, f"{field}_id"} & {*taken, *names.RESERVED} or any(each.refers_to == target.model for each in others):
        return False
    attribute.kind, attribute.refers_to, attribute.name = "ReferenceAttribute", target.model, field
    null = {"null": "True"} if "null" in attribute.options else {}
    attribute.options = {"on_delete": "models.DO_NOTHING", "related_name": '"+"', **null}
    model.names[attribute.stored] = f"{field}_id"
    return True
