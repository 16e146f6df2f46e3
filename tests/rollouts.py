"""Open a change of a model's items in this process alone, without a table that records it."""

from __future__ import annotations

from dynamo_single.orm.schema import bindings
from dynamo_single.orm.schema.bindings import Rollout
from dynamo_single.orm.schema.types import DynamoModel


def begin_rollout(model: type[DynamoModel], rollout: Rollout | None) -> None:
    """Begin a generation in which a model's items differ so from its declaration, unless they do already."""
    concrete, known = model._meta.concrete_model, bindings.generation.rollouts
    if known.get(concrete) == rollout:
        return
    rest = {each: other for each, other in known.items() if each is not concrete}
    with bindings._lock:
        bindings._begin(rest if rollout is None else {**rest, concrete: rollout}, {})
