"""What has to be counted because a model changed: counters that it has from now on, and what its references count.

A reference that is ``checked`` is counted by the object that it leads to, under a name of its own. Nobody else knows
how many there were before, so that a migration counts them once old code, which does not, has stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dynamo_single.exceptions import ConfigurationError
from dynamo_single.item_migrations.online import Task
from dynamo_single.item_migrations.online.changes.counts import counted_items
from dynamo_single.item_migrations.snapshots import Snapshot
from dynamo_single.orm.effects.recounting import Counting
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.orm.schema.referrers import Referrers, name_of_count, references


def counts(before: Snapshot, after: Snapshot) -> bool:
    """Whether something is to be counted that nobody has counted before."""
    return bool(_new_counters(before, after) or _names(after).keys() - _names(before).keys())


def tasks(before: Snapshot, after: Snapshot) -> tuple[Task, ...]:
    """The passes that count, one for each number.

    They are made once the items that are counted are as ``after`` says, and the table says so.
    """
    found: list[tuple[str, Callable[[], Counting | None]]] = [
        (after.item_type, partial(_counter, after, stored)) for stored in _new_counters(before, after)
    ]
    for name in sorted(_names(after).keys() - _names(before).keys()):
        counting = _reference(after, _names(after)[name], name)
        found.append((counting.model._options.item_type, partial(_same, counting)))
    return tuple(counted_items(*each) for each in found)


def _same(counting: Counting) -> Counting:
    return counting


def _new_counters(before: Snapshot, after: Snapshot) -> list[str]:
    """The physical names of counters that were not, or counted something else."""
    known = {before.attribute_fingerprint(name) for name, each in before.attributes.items() if each.counted}
    counted = {name: each.stored for name, each in after.attributes.items() if each.counted}
    return [stored for name, stored in counted.items() if after.attribute_fingerprint(name) not in known]


def _names(snapshot: Snapshot) -> dict[str, str]:
    """The physical names of the counts that other objects have of a model's references, each with the reference's."""
    found = (each.stored for each in snapshot.attributes.values() if each.checked)
    return {name_of_count(snapshot.item_type, stored): stored for stored in found}


def _counter(after: Snapshot, stored: str) -> Counting | None:
    """A counter as the model has it now; ``None`` if it has none of this name any more."""
    model = _model(after)
    counter = next((each for each in registry.counters_of(model) if each.attr_name == stored), None)
    return None if counter is None else Counting(model, stored, getattr(model, counter.children), counter.condition)


def _reference(after: Snapshot, stored: str, name: str) -> Counting:
    """A checked reference as the model has it now."""
    field = _field(_model(after), stored)
    if field is None:
        raise ConfigurationError(
            f"No reference with an on_delete is stored as {stored!r} in {after.item_type} any more, so that nobody can "
            "say what it counts. Deploy the code that has it, and finish with that."
        )
    target = field.related_model._meta.concrete_model
    return Counting(target, name, Referrers(target, field))


def _field(model: type[DynamoModel], stored: str) -> Any:
    return next((each for each in references(model) if each.attribute.attr_name == stored), None)


def _model(after: Snapshot) -> type[DynamoModel]:
    model = registry.model_of_type(after.alias, after.item_type)
    if model is None:
        raise ConfigurationError(
            f"No model has items of type {after.item_type}, so that nobody can say what is counted. Deploy the code "
            "that has, and finish with that."
        )
    return model
