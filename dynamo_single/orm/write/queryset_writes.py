"""Writing through a queryset: what is to be written is checked before anything is read or sent.

Each object is written by itself, under the queryset's own conditions: one that does not meet them any more is left
alone and not counted. This module must not know how a single object is written, or how many at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db.models.signals import post_delete, pre_delete

from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.conditions.algebra import conjuncts, join, lower, simplify
from dynamo_single.orm.conditions.terms import DELETED_AT, IDENTITY, Compare, Condition, Stored
from dynamo_single.orm.effects import claims
from dynamo_single.orm.effects.unique_rules import rules_of
from dynamo_single.orm.plan.plan import Query
from dynamo_single.orm.schema import registry
from dynamo_single.orm.write import cascade, updating
from dynamo_single.orm.write import job as many
from dynamo_single.signals import post_restore, post_soft_delete


def update(queryset: Any, changes: Mapping[str, Any]) -> int:
    """Set attributes of each object that matches; the number of those that were written."""
    model = queryset.model
    assigned = updating.read(model, changes)
    if not assigned:
        return 0
    written = updating.at_once(queryset, assigned)
    if written is not None:
        if written and queryset._progress is not None:
            queryset._progress(written, written)
        return written
    values = assigned.values
    objects = many.each_once(queryset)
    if any(values.get(name) not in (None, "") for name in claims.unique_attributes(model)):
        objects = _check_unique(model, values, list(objects))
    query = queryset._query_value(ordered=False)

    def write(obj: Any) -> Mapping[str, int]:
        for name, value in values.items():
            setattr(obj, name, value)
        written = obj._write_if(_own_condition(query, obj), update_fields=list(values), changes=assigned.changes)
        return {model._meta.label: int(written)}

    return sum(_job(queryset, "update").write_each(objects, write).values())


def delete(queryset: Any) -> tuple[int, dict[str, int]]:
    """Delete each object as its own ``delete()`` does; the counts are by model."""
    if queryset._visibility == "deleted":
        raise NotSupported(
            f"delete() moves {queryset.model._meta.label} to the trash, and these objects are in it: hard_delete() "
            "deletes them for good, restore() takes them out of it."
        )
    return _delete_each(queryset, "delete", for_good=False)


def hard_delete(queryset: Any) -> tuple[int, dict[str, int]]:
    """Delete each object for good; the counts are by model."""
    return _delete_each(queryset, "hard_delete", for_good=True)


def _delete_each(queryset: Any, verb: str, *, for_good: bool) -> tuple[int, dict[str, int]]:
    query = queryset._query_value(ordered=False)

    def write(obj: Any) -> Mapping[str, int]:
        counts: Mapping[str, int] = obj._delete_if(_own_condition(query, obj), for_good=for_good)[1]
        return counts

    job = _job(queryset, verb, pre_delete, post_delete, post_soft_delete)
    counts = job.write_each(many.each_once(queryset), write)
    return sum(counts.values()), counts


def restore(queryset: Any) -> tuple[int, dict[str, int]]:
    """Take each object out of the trash as its own ``restore()`` does; the counts are by model."""
    model = queryset.model
    if not registry.layout_of(model).soft_delete:
        raise NotSupported(f"{model._meta.label} has no soft delete, so there is no trash to restore() from.")

    query = queryset._query_value(ordered=False)

    def write(obj: Any) -> Mapping[str, int]:
        try:
            counts: Mapping[str, int] = obj._restore_if(_own_condition(query, obj))[1]
        except model.DoesNotExist:
            return {}  # deleted for good since it was read
        return counts

    job = _job(queryset, "restore", post_restore)
    counts = job.write_each(many.each_once(queryset), write)
    return sum(counts.values()), counts


def _job(queryset: Any, verb: str, *signals: Any) -> many.Job:
    """The work on many objects: in the caller's own thread where somebody listens to signals, as a handler expects."""
    models = [queryset.model]
    for model in models:
        models += [each.model for each in cascade.followers(model, for_good=True) if each.model not in models]
    heard = any(signal.has_listeners(model) for signal in signals for model in models)
    return many.Job(verb, queryset.model, progress=queryset._progress, threads=not heard)


def _check_unique(model: Any, values: Mapping[str, Any], objects: Sequence[Any]) -> Iterator[Any]:
    for rule in rules_of(model):
        given = tuple(values.get(name) for name in rule.fields)
        if len(objects) > 1 and not rule.name and not any(value in (None, "") for value in given):
            raise NotSupported(
                f"{model._meta.label}.{', '.join(rule.fields)} is unique, and {len(objects)} objects match: they "
                f"cannot all have {rule.worded(given)}. Nothing was written."
            )
    return iter(objects)


def _own_condition(query: Query, obj: Any) -> Condition:
    """What the stored item has to meet for the query to give this object still.

    Its identity never changes. A canonical form cannot be compared by DynamoDB, so there the value must be as it was.
    """
    layout = query.layout
    terms: list[Condition] = []
    for term in conjuncts(simplify(query.where)):
        whole = term if isinstance(term, Compare) and not term.path else None
        if whole is not None and (whole.attribute == IDENTITY or whole.attribute in layout.identity):
            continue
        if whole is not None and whole.operator == "canonical":
            stored = layout.attributes[whole.attribute].stored
            terms.append(Stored(stored, "=", (obj._stored[stored],)))
        else:
            terms.append(term)
    if layout.soft_delete and query.visibility != "all":
        terms.append(Compare(DELETED_AT, "isnull", query.visibility == "live"))
    return simplify(lower(join(terms), layout))
