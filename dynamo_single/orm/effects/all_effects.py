"""The effects of a model. A plain model has none, so that its writes do not enter the modules of effects."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from django.db.models import CheckConstraint

from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.effects import counters, unique_claims
from dynamo_single.orm.effects.base import Effect, Effects
from dynamo_single.orm.effects.copies import Copies
from dynamo_single.orm.effects.copy_updates import CopyUpdates
from dynamo_single.orm.effects.counters import Counters
from dynamo_single.orm.effects.derived import Derived, Shards, Version
from dynamo_single.orm.effects.trash_counts import TrashCounts, has_trash_count, is_counted
from dynamo_single.orm.effects.unique_claims import Claims
from dynamo_single.orm.items import version
from dynamo_single.orm.items.form import form_of
from dynamo_single.orm.items.unique_rules import rules_of
from dynamo_single.orm.requests.updates import Change
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.bindings import ModelBinding, fact
from dynamo_single.orm.schema.types import DynamoModel

if TYPE_CHECKING:
    from dynamo_single.orm.effects import check_constraints
else:
    check_constraints = LazyModule("dynamo_single.orm.effects.check_constraints")


@fact
def effects_of(binding: ModelBinding) -> Effects:
    """Return the effects of a model, in the order of their actions.

    They explain a refused action in reverse order.
    """
    found: list[Effect] = []
    model, layout = binding.model, binding.layout
    if layout.sharding is not None:
        found.append(Shards(model, layout.sharding))
    if version.version_attribute(model) is not None:
        found.append(Version(model))
    if rules_of(model):
        found.append(Claims(model))
    if any(isinstance(each, CheckConstraint) for each in model._meta.constraints):
        found.append(check_constraints.CheckConstraints(model, check_constraints.rules_of(binding)))
    if model.derived_from:
        found.append(Derived(model))
    if registry.copied_of(model):
        found.append(Copies(model))
    if counters.parent_counters(model):
        found.append(Counters(model))
    if is_counted(model) or has_trash_count(model):
        found.append(TrashCounts(model))
    if registry.copied_from(model):
        found.append(CopyUpdates(model, effects_of))
    return tuple(found)


@fact
def watched_attributes(binding: ModelBinding) -> frozenset[str]:
    """Return the attributes that keys, claims, copies or other items depend on: DynamoDB cannot set them alone."""
    form = form_of(binding)
    watched = form.depended_on.union(*(effect.watches for effect in effects_of(binding)))
    return frozenset(name for name, stored in form.stored.items() if stored in watched)


def changes_extracted(model: type[DynamoModel], changes: Iterable[Change], changed: Collection[str]) -> bool:
    """Return whether changes reach the path of an extracted attribute, or a document among the ``changed``."""
    form = form_of(model)
    if not form.extracted:
        return False
    documents = {form.stored[name] for name in changed}
    changes = tuple(changes)
    return any(each.place.name in documents or any(map(each.is_reached_by, changes)) for each in form.extracted)


def linked_attributes(model: type[DynamoModel]) -> list[str]:
    """Return the attributes that link objects to other items: unique, derived, copied or counted ones, and versions.

    A process that writes one item only would leave the others outdated.
    """
    counting = [each.field.name for each in counters.parent_counters(model)]
    copied = [copy.source.name for copy in registry.copied_from(model)]
    own = [*registry.copied_of(model), *registry.counters_of(model)]
    sharding = registry.layout_of(model).sharding
    divided = [] if sharding is None else [sharding.attribute]
    found = [*divided, *unique_claims.unique_attributes(model), *model.derived_from, *copied, *counting]
    return list(dict.fromkeys([*found, *(attribute.name for attribute in own), *version.next_values(model, None)]))
