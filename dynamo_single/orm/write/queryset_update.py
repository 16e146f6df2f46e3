"""Write through a queryset: validate the changes before the first request.

It writes each object separately, under the queryset's conditions; it skips objects that no longer meet them. A single
object with a complete primary key takes one request without a read, if nothing else depends on it. The functions that
send requests are coroutines. This module does not depend on the write of a single object, or on the number of parallel
writes.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from django.db.models import Model
from django.db.models.signals import post_delete, pre_delete
from msgspec import Struct, field
from msgspec.structs import replace

from dynamo_single import clock
from dynamo_single.exceptions import (
    BeginAgain,
    ConditionFailed,
    InvalidValue,
    MissingValue,
    NotSupported,
    UnknownField,
)
from dynamo_single.orm.conditions.lowering import lower
from dynamo_single.orm.conditions.matching import is_comparable, matches
from dynamo_single.orm.conditions.terms import (
    DELETED_AT,
    IDENTITY,
    Compare,
    Condition,
    Stored,
    conjuncts,
    join,
    names_in,
    simplify,
)
from dynamo_single.orm.effects import unique_claims
from dynamo_single.orm.effects.all_effects import effects_of
from dynamo_single.orm.effects.base import CallerConditions, Subject
from dynamo_single.orm.effects.write import unmet_error
from dynamo_single.orm.items import decode
from dynamo_single.orm.items import version as items_version
from dynamo_single.orm.items.async_safety import is_heard
from dynamo_single.orm.items.encode import stored_name
from dynamo_single.orm.items.encodings import Encodings
from dynamo_single.orm.items.form import form_of
from dynamo_single.orm.items.unique_rules import rules_of
from dynamo_single.orm.plan import planner
from dynamo_single.orm.plan.plan import Plan, Query
from dynamo_single.orm.requests.actions import ITEM_EXISTS, Delete, Update
from dynamo_single.orm.requests.atomic_block import Block
from dynamo_single.orm.requests.compiler import compile_action
from dynamo_single.orm.requests.expressions import split_conditions
from dynamo_single.orm.requests.updates import Change, Place, overlapping_places, required_conditions, unmet_change
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes.operations import is_expression
from dynamo_single.orm.schema.bindings import binding_of
from dynamo_single.orm.schema.keys.values import shown
from dynamo_single.orm.schema.references import cascading_children
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.write import assignments, cascade, on_delete
from dynamo_single.orm.write.assignments import Target, resolve, target_of
from dynamo_single.orm.write.batch_transactions import BulkWrite, Progress, distinct_objects
from dynamo_single.signals import post_restore, post_soft_delete
from dynamo_single.table.flow import as_stream, call_sync
from dynamo_single.table.names import ITEM_TYPE, MOVED_FROM, PARTITION_KEY, SORT_KEY
from dynamo_single.table.table import get_table


class QuerysetWrite(Struct, frozen=True):
    """A write through a queryset: its query, the way to read its objects, and the callback for each.

    Writing does not depend on other kinds of results; ``results`` reads.
    """

    model: Any
    query: Query
    read: Callable[[], AsyncGenerator[Iterable[Any], None]]
    #: The ``atomic()`` block that everything joins.
    pending: Block | None
    is_empty: bool = False
    progress: Progress | None = None
    #: The maximum number of objects in one transaction; ``None`` for each by itself.
    together: int | None = None
    #: The origin that the signals of a deletion name.
    origin: Any = None


async def update(matches: QuerysetWrite, assigned: Assignments) -> int:
    """Set attributes of each matching object; return the number of written objects."""
    written = await update_by_key(matches, assigned)
    if written is not None:
        if written and matches.progress is not None:
            await call_sync(partial(matches.progress, written, written))
        return written
    model, values = matches.model, assigned.values
    objects, condition_of = distinct_objects(matches.read(), matches.pending), _query_condition(matches.query)
    if any(values.get(name) not in (None, "") for name in unique_claims.unique_attributes(model)):
        found = [obj async for obj in objects]
        _check_unique(model, values, found)
        objects = as_stream(found)

    async def write(obj: DynamoModel, pending: Block | None) -> Mapping[str, int]:
        for name, value in values.items():
            setattr(obj, name, value)
        written = await obj._written_if(condition_of(obj), list(values), assigned.changes, pending)
        return {model._meta.label: int(written)}

    return sum((await _bulk_write(matches, "update").write_each(objects, write)).values())


async def delete(matches: QuerysetWrite, *, reads: bool = False) -> tuple[int, dict[str, int]]:
    """Delete each object as its own ``delete()`` does, and return the counts by model.

    With ``reads``, read each object before it is deleted.
    """
    if matches.query.visibility == "deleted":
        raise NotSupported(
            f"delete() moves {matches.model._meta.label} to the trash, but these objects are already there. "
            "Call hard_delete() to delete them permanently, or restore() to restore them."
        )
    return await _delete_each(matches, "delete", for_good=False, reads=reads)


async def hard_delete(matches: QuerysetWrite, *, reads: bool = False) -> tuple[int, dict[str, int]]:
    """Delete each object permanently, like ``delete()`` of a model without soft delete."""
    return await _delete_each(matches, "hard_delete", for_good=True, reads=reads)


async def _delete_each(matches: QuerysetWrite, verb: str, *, for_good: bool, reads: bool) -> tuple[int, dict[str, int]]:
    deleted = None if reads else await delete_by_key(matches, for_good=for_good)
    if deleted is not None:
        if deleted and matches.progress is not None:
            await call_sync(partial(matches.progress, deleted, deleted))
        return deleted, {matches.model._meta.label: deleted} if deleted else {}

    condition_of = _query_condition(matches.query)

    async def write(obj: DynamoModel, pending: Block | None) -> Mapping[str, int]:
        terms = CallerConditions(queried=condition_of(obj))
        delete_one = obj._hard_deleted if for_good else obj._deleted
        counts: Mapping[str, int] = (await delete_one(terms, pending, matches.origin))[1]
        return counts

    job = _bulk_write(matches, verb, pre_delete, post_delete, post_soft_delete)
    counts = await job.write_each(distinct_objects(matches.read(), matches.pending), write)
    return sum(counts.values()), counts


async def restore(matches: QuerysetWrite) -> tuple[int, dict[str, int]]:
    """Take each object out of the trash as its own ``restore()`` does; the counts are by model."""
    model = matches.model
    if not registry.layout_of(model).soft_delete:
        raise NotSupported(f"{model._meta.label} has no soft delete, so there is no trash to restore() from.")

    condition_of = _query_condition(matches.query)

    async def write(obj: Any, pending: Block | None) -> Mapping[str, int]:
        try:
            counts: Mapping[str, int] = (await obj._restored(condition_of(obj), pending))[1]
        except model.DoesNotExist:
            return {}  # permanently deleted since the read
        return counts

    job = _bulk_write(matches, "restore", post_restore)
    counts = await job.write_each(distinct_objects(matches.read(), matches.pending), write)
    return sum(counts.values()), counts


def _bulk_write(matches: QuerysetWrite, verb: str, *signals: Any) -> BulkWrite:
    """Process many objects, in the caller's own thread if signals have receivers.

    It writes objects with signal receivers separately, because the app sends a signal after the write of its object.
    Objects with references to them are too, because cascading, protecting and changed objects get transactions of their
    own.
    """
    models = cascade.cascade_models(matches.model)
    heard = any(is_heard(model, *signals) for model in models)
    alone = len(models) > 1 or any(map(on_delete.has_references, models))
    together = None if heard or (signals and alone) else matches.together
    return BulkWrite(
        verb,
        matches.model,
        matches.pending,
        progress=matches.progress,
        is_parallel=not heard,
        transaction_size=together,
    )


def _check_unique(model: type[DynamoModel], values: Mapping[str, object], objects: Sequence[DynamoModel]) -> None:
    for rule in rules_of(model):
        given = tuple(values.get(name) for name in rule.fields)
        if len(objects) > 1 and not rule.name and not any(value in (None, "") for value in given):
            raise NotSupported(
                f"{model._meta.label}.{', '.join(rule.fields)} is unique, and {len(objects)} objects match: they "
                f"cannot all have {rule.worded(given)}. Nothing was written. Give each object a separate value with "
                "save()."
            )


def _query_condition(query: Query) -> Callable[[DynamoModel], Condition]:
    """Return the condition under which a stored object still matches the query.

    Its identity never changes. If DynamoDB cannot compare a canonical form, or a condition that is too long for it, the
    values that were compared must be as they were read.
    """
    layout = query.layout
    terms: list[Condition] = []
    as_read: list[str] = []
    for term in conjuncts(simplify(query.where)):
        whole = term if isinstance(term, Compare) and not term.path else None
        if whole is not None and (whole.attribute == IDENTITY or whole.attribute in layout.identity):
            continue
        lowered = lower(term, layout)
        if is_comparable(lowered):
            terms.append(term)
        else:
            as_read += names_in(lowered)
    kept, left = split_conditions(terms, layout)
    for term in left:
        as_read += names_in(lower(term, layout))
    if layout.soft_delete and query.visibility != "all":
        kept += (Compare(DELETED_AT, "isnull", query.visibility == "live"),)
    compared = simplify(lower(join(kept), layout))

    def condition_of(obj: DynamoModel) -> Condition:
        item = obj._stored
        unchanged = (
            Stored(name, "=", (item[name],)) if name in item else Stored(name, "missing")
            for name in dict.fromkeys(as_read)
            if name not in (PARTITION_KEY, SORT_KEY)
        )
        return join((compared, *unchanged)) if as_read else compared

    return condition_of


class Assignments(Struct, frozen=True):
    """Values to set, by attribute, and changes that DynamoDB computes.

    ``encodings`` contains the documents among the values.
    """

    values: Mapping[str, Any]
    changes: tuple[Change, ...] = ()
    encodings: Encodings = field(default_factory=Encodings)

    def __bool__(self) -> bool:
        return bool(self.values or self.changes)


def read_assignments(model: type[DynamoModel], given: Mapping[str, object]) -> Assignments:
    """Check names and values, and that no two of them are about one place."""
    values: dict[str, Any] = {}
    changes: list[Change] = []
    places: list[Place] = []
    encodings = Encodings()
    for name, value in given.items():
        target = _target(model, name)
        result = resolve(target, value) if target.place.path or is_expression(value) else value
        places.append(target.place)
        if isinstance(result, Change):
            changes.append(result)
        else:
            values[target.attribute.name] = _checked_value(target.attribute.field, result, encodings)
    clash = overlapping_places(places)
    if clash is not None:
        raise InvalidValue(
            f"{model._meta.label}: update() cannot set both {clash[0]} and {clash[1]}, because they overlap."
        )
    return Assignments(values, tuple(changes), encodings)


def has_expressions(model: type[DynamoModel], given: Mapping[str, object]) -> bool:
    """Return whether expressions of Django's are among the values; raises an error for names that cannot change."""
    targets = [_target(model, name) for name in given]
    return not any(target.place.path for target in targets) and any(
        hasattr(value, "resolve_expression") for value in given.values()
    )


def _target(model: Any, name: str) -> Target:
    """The place that a name means, if it can change."""
    label = model._meta.label
    fields = {key: field for field in model._meta.concrete_fields for key in (field.name, field.attname)}
    field = model._meta.pk if name == "pk" else fields.get(name, fields.get(name.partition("__")[0]))
    if field is None:
        known = ", ".join(each.name for each in model._meta.concrete_fields if not _is_of_key(each))
        raise UnknownField(f"{label} has no attribute {name!r} to update. It has {known}.")
    form_of(model).refuse_naming((field.attname,))
    if _is_of_key(field):
        raise NotSupported(
            f"{label}.{name} is part of the primary key and cannot change here. Call move() on each object instead."
        )
    if field.attribute.computed:
        raise NotSupported(
            f"Cannot update {label}.{name}, which the app computes from {field.attribute.origin}. Update that instead."
        )
    if field.attribute.settled:
        raise NotSupported(f"{label}.{name} gets its value at creation and cannot change.")
    return target_of(model, name)


def _is_of_key(field: Any) -> bool:
    return bool(field.primary_key or field.attname in field.model._identity)


def _checked_value(field: Any, value: object, encodings: Encodings) -> Any:
    attribute = field.attribute
    if isinstance(value, Model):
        if not field.is_relation or not isinstance(value, field.remote_field.model):
            raise InvalidValue(f"Cannot set {field.model._meta.label}.{field.name} to {shown(value)}.")
        if value.pk is None:
            raise InvalidValue(
                f"Cannot set {field.model._meta.label}.{field.name} to {shown(value)}, which has no pk. Nothing was "
                "written. Save it first."
            )
        value = value.pk
    try:
        prepared = encodings.of(attribute, value, None).value if attribute.document else attribute.prepare(value)
        attribute.check_whole(prepared)
    except InvalidValue as error:
        raise type(error)(f"{field.model._meta.label}: {error}") from error
    if prepared is None and not attribute.null:
        raise MissingValue(
            f"{field.model._meta.label}: {field.name} is missing: set it to {attribute.expects}, or declare it with "
            "null=True."
        )
    return prepared


async def update_by_key(matches: QuerysetWrite, assigned: Assignments) -> int | None:
    """Update a single object with one request; return ``None`` if the caller must read objects first."""
    model, lease = matches.model, binding_of(matches.model).lease
    # The write includes automatic datetimes, and their dependent values change too.
    changed = {*assigned.values, *form_of(model).automatic}
    if not assignments.is_computed_by_dynamodb(model, assigned.changes, changed, alone=True):
        return None
    found = _key_plan(matches)
    if found is None:
        return None
    plan, condition = found
    action = _update_action(
        model, plan, assigned, join((_item_exists(plan), condition, required_conditions(assigned.changes)))
    )
    try:
        await get_table(plan.layout.alias).ask_patiently(replace(compile_action(action), lease=lease))
    except BeginAgain:
        knowledge.stale()
        return None
    except ConditionFailed as error:
        _raise_unmet(model, error, condition, assigned)
        return 0
    return 1


async def delete_by_key(matches: QuerysetWrite, *, for_good: bool) -> int | None:
    """Delete a single object with one request; return ``None`` if the caller must read objects first.

    An object is read first if it moves to the trash, has dependent or referring objects, or has signal receivers, or if
    it had another identity before: objects with references to that identity are deleted with it.
    """
    model, lease = matches.model, binding_of(matches.model).lease
    layout = registry.layout_of(model)
    if (layout.soft_delete and not for_good) or effects_of(model) or on_delete.has_references(model):
        return None
    heard = any(signal.has_listeners(model) for signal in (pre_delete, post_delete))
    if heard or cascading_children(model) or (found := _key_plan(matches)) is None:
        return None
    plan, condition = found
    never_moved = Stored(MOVED_FROM, "missing")
    action = Delete(plan.keys[0], condition=join((_item_exists(plan), never_moved, condition)))
    try:
        await get_table(layout.alias).ask_patiently(replace(compile_action(action), lease=lease))
    except BeginAgain:
        knowledge.stale()
        return None
    except ConditionFailed as error:
        if not error.item:
            return int(error.retried)  # an earlier attempt has deleted it
        decode.check_type(model, error.item)
        return None if MOVED_FROM in error.item else 0
    return 1


def _key_plan(matches: QuerysetWrite) -> tuple[Plan, Condition] | None:
    """Return the plan for one complete primary key, and the condition on its item; ``None`` for any other plan."""
    layout = registry.layout_of(matches.model)
    if matches.pending is not None or matches.is_empty or layout.twins:
        return None  # read the item first if a name changes hands
    plan = planner.plan(matches.query, now=clock.instant())
    if plan.kind != "get":
        return None
    condition = simplify(lower(plan.filter, plan.layout))
    is_compared = is_comparable(condition) and not split_conditions(conjuncts(plan.filter), plan.layout)[1]
    return (plan, condition) if is_compared else None


def _item_exists(plan: Plan) -> Condition:
    return join((ITEM_EXISTS, Stored(ITEM_TYPE, "=", ({"S": plan.layout.item_type},))))


def _update_action(model: type[DynamoModel], plan: Plan, assigned: Assignments, condition: Condition) -> Update:
    blank = model.__new__(model)
    blank._stored = None
    values = {**form_of(model).automatic_values(blank), **assigned.values}
    attributes = registry.attributes_of(model)
    version = items_version.version_stored(model)
    encoded = assigned.encodings.of_values(values)
    return Update(
        plan.keys[0],
        set={
            stored_name(model, name): encoded.get(name) or attributes[name].to_attribute_value(value)
            for name, value in values.items()
            if value is not None
        },
        remove=tuple(stored_name(model, name) for name, value in values.items() if value is None),
        add={version: {"N": "1"}} if version else {},
        changes=assigned.changes,
        condition=condition,
    )


def _raise_unmet(model: type[DynamoModel], error: ConditionFailed, condition: Condition, assigned: Assignments) -> None:
    """Raise for an item of the queryset that does not meet the requirements of the changes."""
    if not error.item:
        return
    decode.check_type(model, error.item)
    missing = unmet_change(assigned.changes, error.item)
    if missing is not None and matches(condition, error.item):
        raise unmet_error(Subject(decode.instance(model, error.item)), missing, error.item) from error
