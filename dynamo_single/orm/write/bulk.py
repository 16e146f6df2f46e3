"""``bulk_create()`` and ``bulk_update()``: check all objects together, then write each under its own conditions.

Existing items are overwritten only if the caller asks for it. This module does not depend on the number of parallel
writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from operator import attrgetter
from typing import Any, TypeVar

from msgspec import Struct, field

from dynamo_single.exceptions import (
    AlreadyExists,
    Conflict,
    DynamoSingleError,
    InvalidValue,
    NotSupported,
    StaleObject,
    UniqueViolation,
)
from dynamo_single.orm.conditions.terms import EVERYTHING
from dynamo_single.orm.effects import copies
from dynamo_single.orm.effects import unique_claims as uniqueness
from dynamo_single.orm.effects.all_effects import effects_of
from dynamo_single.orm.effects.base import NO_CONDITIONS, CallerConditions, Subject
from dynamo_single.orm.effects.compose import NewObject
from dynamo_single.orm.effects.write import conflicting_item, exists_error, is_gone
from dynamo_single.orm.items import decode, version
from dynamo_single.orm.items.encode import automatic_names, is_same_item, item_from
from dynamo_single.orm.items.form import form_of
from dynamo_single.orm.items.refresh import acomplete, missing_attributes
from dynamo_single.orm.requests.actions import Item, ItemKey, Put, key_of
from dynamo_single.orm.requests.atomic_block import Block
from dynamo_single.orm.requests.compiler import compile_action, item_key
from dynamo_single.orm.schema import registry, secrecy
from dynamo_single.orm.schema.attributes.base import Attribute
from dynamo_single.orm.schema.attributes.computed import ComputedAttribute
from dynamo_single.orm.schema.attributes.operations import is_expression
from dynamo_single.orm.schema.bindings import binding_of
from dynamo_single.orm.schema.keys.values import named, shown
from dynamo_single.orm.schema.references import checked_references
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.write import bulk_insert
from dynamo_single.orm.write.batch_transactions import BulkWrite, ObjectWriter, Outcome, Progress, write_batch
from dynamo_single.orm.write.bulk_insert import Inserted
from dynamo_single.orm.write.create import create, new_object
from dynamo_single.orm.write.save import SaveOptions, save, write_if
from dynamo_single.table import batches, names
from dynamo_single.table.flow import Flow, as_stream
from dynamo_single.table.request import MAX_BATCH_KEYS, MAX_BATCH_WRITES, MAX_STATEMENTS
from dynamo_single.table.table import get_table

T = TypeVar("T")

#: The maximum number of attempts to write an object while other processes delete or create it.
ATTEMPTS = 3


def _claims(new: NewObject) -> set[ItemKey]:
    """Return the keys of the claims of a new object."""
    return {*uniqueness.claims_of(type(new.obj), new.item)}


class CreatedList(list[T]):
    """The result of ``bulk_create()``: the caller's objects in their order.

    ``skipped`` contains the objects that it did not write: with ``ignore_conflicts`` because the object exists, with
    ``update_conflicts`` because a later object of the list has the same primary key.
    """

    def __init__(self, objects: Iterable[T]) -> None:
        super().__init__(objects)
        self.skipped: list[T] = []


class BulkCreate(Struct, frozen=True):
    """The validated arguments of ``bulk_create()``."""

    model: Any
    batch_size: int | None = None
    ignore: bool = False
    update: bool = False
    #: The attributes to set on an existing object; ``None`` for the whole object.
    update_names: frozenset[str] | None = None
    progress: Progress | None = None
    #: The maximum number of objects in a transaction; ``None`` writes each object separately.
    transaction_size: int | None = None
    written: set[int] = field(default_factory=set)

    async def create(self, objects: Sequence[DynamoModel], pending: Block | None) -> CreatedList[Any]:
        """Create the objects. Raise an error before the first request for an invalid object or conflicting objects."""
        result = CreatedList(objects)
        new = await self._prepared(objects, pending)
        kept = self._distinct(new)
        job = BulkWrite(
            "bulk_create", self.model, pending, len(kept), self.progress, transaction_size=self.transaction_size
        )
        if self.update and self.update_names is None and _is_independent(self.model):
            await self._put_over(kept, job)
        elif self._takes_statements(kept, pending):
            await self._insert(kept, job)
        else:
            await job.write_units(kept, ObjectWriter(self._write, attrgetter("obj.pk"), self._is_skipped))
        result.skipped = [obj for obj in objects if id(obj) not in self.written]
        return result

    async def _write(self, new: NewObject, pending: Block | None) -> Mapping[str, int]:
        return {new.obj._meta.label: await self._writer()(new, pending)}

    def _writer(self) -> Callable[[NewObject, Block | None], Flow[int]]:
        return self._upsert if self.update else self._create_if_new if self.ignore else self._create

    def _is_skipped(self, new: NewObject, error: DynamoSingleError) -> bool:
        """Return whether a rejected object already exists and should be skipped."""
        self.written.discard(id(new.obj))
        return self.ignore and isinstance(error, AlreadyExists | UniqueViolation)

    async def _prepared(self, objects: Sequence[DynamoModel], pending: Block | None) -> list[NewObject]:
        """Return the objects with their items; read the sources of their copies for a hundred objects at a time."""
        for obj in objects:
            if not isinstance(obj, self.model._meta.concrete_model):
                raise TypeError(
                    f"bulk_create() of {self.model._meta.label} got {shown(obj)}. It takes objects: "
                    f"{self.model.__name__}(...) makes one."
                )
            obj._prepare_related_fields_for_save(operation_name="bulk_create")
        if not registry.copied_of(self.model):
            known = bulk_insert.KnownBindings()
            return [await bulk_insert.object_of(known, obj, pending) for obj in objects]
        new: list[NewObject] = []
        for start in range(0, len(objects), MAX_BATCH_KEYS):
            some = objects[start : start + MAX_BATCH_KEYS]
            with copies.known_sources(await copies.read_sources(self.model, some, pending)):
                new += [await new_object(obj, pending) for obj in some]
        return new

    def _note(self, new: NewObject) -> int:
        new.obj._state.adding = False
        self.written.add(id(new.obj))
        return 1

    def _distinct(self, new: Sequence[NewObject]) -> list[NewObject]:
        """Return the objects to store: the first of several with one primary key, or the last of them for an update."""
        if self.update:
            new = [*{key_of(each.item): each for each in new}.values()]
        owners: dict[ItemKey, NewObject] = {}
        kept = []
        for each in new:
            wanted = {key_of(each.item), *_claims(each)}
            taken = sorted(wanted & owners.keys())
            if taken and not self.ignore:
                raise _duplicate_error("bulk_create", owners[taken[0]], each, taken[0])
            if not taken:
                owners |= dict.fromkeys(wanted, each)
                kept.append(each)
        return kept

    # ways to create

    async def _create(self, new: NewObject, pending: Block | None) -> int:
        await create(new.obj, pending, new=new)
        return self._note(new)

    async def _create_if_new(self, new: NewObject, pending: Block | None) -> int:
        try:
            return await self._create(new, pending)
        except (AlreadyExists, UniqueViolation):
            return 0

    async def _upsert(self, new: NewObject, pending: Block | None, found: Item | None = None) -> int:
        for _ in range(ATTEMPTS):
            if found is None:
                try:
                    return await self._create(new, pending)
                except AlreadyExists as error:
                    found = conflicting_item(error)
                    if found is None:
                        raise
            if names.DELETED_AT in found:
                raise exists_error(Subject(new.obj), found)
            if await self._change(new.obj, found, pending):
                return self._note(new)
            found = None
        times = f"{ATTEMPTS} times during the write"
        raise Conflict(f"Other processes deleted and created {named(new.obj)} {times}. It was not written. Try again.")

    async def _change(self, obj: DynamoModel, found: Item, pending: Block | None) -> bool:
        """Set the attributes of an existing object; return ``False`` if it no longer exists."""
        only = _updatable_names(self.model) if self.update_names is None else self.update_names
        given = only - {*automatic_names(self.model)}

        async def write(terms: CallerConditions) -> bool:
            await save(obj, SaveOptions(only=only, given=given, terms=terms, repeat=False), pending)
            return True

        as_it_was, written = obj._stored, False
        obj._stored = {name: dict(value) for name, value in found.items()}
        try:
            written = await write_if(obj, EVERYTHING, write, only)
        finally:
            if not written:
                obj._stored = as_it_was
        if written:
            # Creation time and author do not change.
            held = decode.values_of(self.model, obj._stored)
            obj.__dict__.update({name: held[name] for name in held.keys() - _updatable_names(self.model)})
        return written

    # 25 a request

    def _takes_statements(self, kept: Sequence[NewObject], pending: Block | None) -> bool:
        if pending is not None or self.transaction_size is not None or len(kept) < 2:
            return False
        is_plain = all(map(bulk_insert.is_inserted, {each.binding for each in kept}))
        return is_plain and batches.can_insert(get_table(self.model._options.alias))

    async def _insert(self, kept: Sequence[NewObject], job: BulkWrite) -> None:
        """Insert items: one BatchExecuteStatement for each 25, and a PutItem for each unsupported item."""
        table = get_table(self.model._options.alias)

        async def work(unit: Sequence[NewObject]) -> list[Outcome]:
            if len(unit) > 1 and batches.can_insert(table):
                inserted = await bulk_insert.insert(table, unit, reads=not self.ignore)
            else:
                inserted = [Inserted()] * len(unit)
            outcomes = dict[int, Outcome]()
            for number in sorted(range(len(unit)), key=lambda n: not inserted[n].is_settled):
                is_stopped = any(each.error is not None for each in outcomes.values())
                outcomes[number] = await self._settled(unit[number], inserted[number], is_stopped=is_stopped)
            return [outcomes[number] for number in range(len(unit))]

        sizes = [bulk_insert.size_of(each) for each in kept]
        units = bulk_insert.in_batches(kept, sizes, self.batch_size or MAX_STATEMENTS)
        async with aclosing(as_stream(units)) as stream:
            await job.run(stream, work, lambda unit: [each.obj.pk for each in unit])

    async def _settled(self, new: NewObject, result: Inserted, *, is_stopped: bool) -> Outcome:
        """Return the outcome of an object after its statement; write it separately if DynamoDB did not execute the
        statement.
        """
        label, pk = new.obj._meta.label, new.obj.pk
        if result.is_written:
            return Outcome(pk, {label: self._record(new)})
        if is_stopped and not result.is_settled:
            return Outcome(pk, {}, result.error, was_tried=result.error is not None)
        if result.is_settled and result.error is not None:
            return Outcome(pk, {}, result.error)
        try:
            return Outcome(pk, {label: await self._write_left(new, result)})
        except DynamoSingleError as error:
            return Outcome(pk, {}, error)

    async def _write_left(self, new: NewObject, result: Inserted) -> int:
        """Write an object whose statement was not executed; skip, update or raise for an existing object."""
        found = result.found
        if found is None and not result.is_doubtful:
            return await self._writer()(new, None)
        if found is None:
            try:
                return await self._create(new, None)
            except AlreadyExists as error:
                found = conflicting_item(error)
                if found is None:
                    raise
                if is_same_item(new.item, found, self.model):
                    return self._record(new)
        if self.ignore:
            return 0
        if self.update:
            return await self._upsert(new, None, found)
        raise exists_error(Subject(new.obj), found)

    def _record(self, new: NewObject) -> int:
        decode.set_stored(new.obj, new.item, new.values)
        return self._note(new)

    async def _put_over(self, kept: Sequence[NewObject], job: BulkWrite) -> None:
        """Write whole items without conditions: one BatchWriteItem for each 25."""
        size = min(self.batch_size or MAX_BATCH_WRITES, MAX_BATCH_WRITES)
        # Compile all requests before the first one: an item may be too large.
        puts = {
            id(each): {"PutRequest": {"Item": compile_action(Put(each.item, EVERYTHING, each.size)).params["Item"]}}
            for each in kept
        }
        alone = ObjectWriter(self._write, attrgetter("obj.pk"))

        async def work(unit: Sequence[NewObject]) -> list[Outcome]:
            writes = [puts[id(each)] for each in unit]
            outcomes = await write_batch(self.model, unit, writes, unit[0].binding.lease, alone)
            for each, outcome in zip(unit, outcomes, strict=True):
                if outcome.error is None and id(each.obj) not in self.written:
                    self._record(each)
            return outcomes

        units = [kept[start : start + size] for start in range(0, len(kept), size)]
        async with aclosing(as_stream(units)) as stream:
            await job.run(stream, work, lambda unit: [each.obj.pk for each in unit])


#: The arguments of ``bulk_create()`` after the objects, in Django's order.
Arguments = tuple[int | None, bool, bool, Iterable[str] | None, Iterable[str] | None]


def read_arguments(
    model: type[DynamoModel],
    pending: Block | None,
    given: Arguments,
    progress: Progress | None,
    together: int | None = None,
) -> BulkCreate:
    """Validate the arguments of ``bulk_create()``; raise an error for unsupported combinations."""
    batch_size, ignore_conflicts, update_conflicts, update_fields, unique_fields = given
    together = _transaction_size(together, batch_size)
    if ignore_conflicts and update_conflicts:
        raise ValueError("ignore_conflicts and update_conflicts are mutually exclusive.")
    if not update_conflicts and (update_fields is not None or unique_fields is not None):
        raise ValueError("update_fields and unique_fields require update_conflicts=True; set it too.")
    if unique_fields is not None and {*unique_fields} not in ({"pk"}, {model._meta.pk.name}, {*model._identity}):
        raise NotSupported(
            f"bulk_create(unique_fields={sorted(unique_fields)}): the primary key, "
            f"{', '.join(model._identity)}, identifies {model._meta.label} objects. Remove unique_fields, or "
            "read the objects and save them."
        )
    if update_conflicts and together is not None:
        raise NotSupported(
            "bulk_create() does not support update_conflicts in transactions, because it looks for each "
            "existing object separately. Omit in_transactions, or read the objects and save them."
        )
    if (ignore_conflicts or update_conflicts) and pending is not None:
        raise NotSupported(
            "In an atomic() block, bulk_create() does not support ignore_conflicts and update_conflicts: "
            "conflicts appear only when the app sends the block, and then the whole block fails. Call it "
            "outside the block, or read the objects first."
        )
    update_names = model._update_names(update_fields)
    if update_names is not None and not update_names:
        raise ValueError("update_fields is empty: name attributes, or omit it to replace whole objects.")
    form_of(model).refuse_naming(update_names or ())
    return BulkCreate(model, batch_size, ignore_conflicts, update_conflicts, update_names, progress, together)


async def bulk_update(
    model: Any,
    objs: Iterable[DynamoModel],
    fields: Iterable[str],
    batch_size: int | None,
    progress: Any,
    together: int | None,
    pending: Block | None,
) -> int:
    """Save some attributes of each object, without signals; return the number of objects that existed."""
    together = _transaction_size(together, batch_size)
    only = model._update_names(fields)
    if not only:
        raise ValueError("Field names must be given to bulk_update().")
    form_of(model).refuse_naming(only)
    objects = list({id(obj): obj for obj in objs}.values())
    for obj in objects:
        if not isinstance(obj, model._meta.concrete_model):
            raise TypeError(f"bulk_update() of {model._meta.label} got {shown(obj)}.")
        if not obj._is_pk_set():
            raise ValueError("All bulk_update() objects must have a primary key set.")
        obj._prepare_related_fields_for_save(
            operation_name="bulk_update", fields=[f for f in model._meta.concrete_fields if f.attname in only]
        )
    await _check_objects(model, objects, only)

    async def write(obj: DynamoModel, pending: Block | None) -> Mapping[str, int]:
        async def saved(terms: CallerConditions) -> bool:
            await save(obj, SaveOptions(only=only, terms=terms), pending)
            return True

        try:
            # Do not overwrite another version.
            versioned = version.version_attribute(model) is not None
            written = await (saved(NO_CONDITIONS) if versioned else write_if(obj, EVERYTHING, saved, only))
        except StaleObject as error:
            if not is_gone(error):
                raise
            return {}
        if written:
            obj._state.adding = False
        return {model._meta.label: int(written)}

    job = BulkWrite("bulk_update", model, pending, len(objects), progress, transaction_size=together)
    return sum((await job.write_each(objects, write)).values())


async def _check_objects(model: type[DynamoModel], objects: Sequence[DynamoModel], only: frozenset[str]) -> None:
    """Raise an error for invalid values, an object given twice, and unique values that two objects need."""
    known: dict[Any, Any] = {}
    takers: dict[ItemKey, NewObject] = {}
    holders: dict[ItemKey, Any] = {}
    decides = uniqueness.unique_attributes(model).keys() & only
    for obj in objects:
        if known.setdefault(obj.pk, obj) is not obj:
            raise InvalidValue(f"bulk_update() got two objects with pk {Subject(obj).shown_pk}: give only one of them.")
        if not await _read_missing(obj, only):
            continue
        asked = {name for name in only if is_expression(obj.__dict__.get(name))}
        values = form_of(model).prepared(obj.__dict__, obj._stored, only, asked)
        form_of(model).check_whole(values)
        if not decides or decides & asked or obj._stored is None:
            continue
        held = {**decode.values_of(model, obj._stored), **values}
        new = NewObject(obj, binding_of(model), item_from(model, held), held)
        for claim in sorted(_claims(new)):
            if claim in takers:
                raise _duplicate_error("bulk_update", takers[claim], new, claim)
            takers[claim] = new
        holders |= dict.fromkeys(uniqueness.claims_of(model, obj._stored), obj)
    for claim in sorted(takers.keys() & holders.keys()):
        taker, holder = takers[claim], holders[claim]
        if taker.obj is not holder:
            violation = _unique_error(taker, claim)
            value = secrecy.shown(model, violation.value, *violation.fields)
            raise NotSupported(
                f"bulk_update() cannot give {violation.field} {value} of the {Subject(holder).name} to the "
                f"object with pk {Subject(taker.obj).shown_pk}, because it writes each object separately. "
                "Nothing was written. Save the object that releases the value first, or save both in one "
                "atomic() block."
            )


async def _read_missing(obj: DynamoModel, only: frozenset[str]) -> bool:
    """Read the missing attributes of an object, if necessary; return whether it exists."""
    try:
        if only & missing_attributes(obj) or uniqueness.unique_attributes(type(obj)).keys() & only:
            await acomplete(obj, only - missing_attributes(obj))
    except type(obj).DoesNotExist:
        return False
    return True


def _duplicate_error(verb: str, one: NewObject, other: NewObject, key: ItemKey) -> Exception:
    """The error for two objects that need one key: their primary key, or the claim of a unique value."""
    label, pk, other_pk = one.obj._meta.label, Subject(one.obj).shown_pk, Subject(other.obj).shown_pk
    if key == key_of(other.item):
        return AlreadyExists(f"{verb}() got two {label} objects with pk {pk}. Nothing was written.")
    found = _unique_error(other, key)
    value = secrecy.shown(type(one.obj), found.value, *found.fields)
    return UniqueViolation(
        f"{verb}() got two {label} objects with {found.field} {value}: pk {pk} and {other_pk}. Nothing was written.",
        label=label,
        field=found.field,
        value=found.value,
        fields=found.fields,
    )


def _unique_error(new: NewObject, claim: ItemKey) -> UniqueViolation:
    error = uniqueness.unique_error(Subject(new.obj), new.item, Put(item_key(claim)))
    assert error is not None  # noqa: S101 - the claim is one of the object's own
    return error


def _updatable_names(model: Any) -> frozenset[str]:
    """Return the attributes that a later write may set: not the identity, nor those set on creation only."""
    attributes = registry.attributes_of(model)
    fixed = {name for name, each in attributes.items() if each.computed or _is_set_on_create(each)}
    return frozenset(attributes.keys() - fixed - {*model._identity} - {*automatic_names(model)})


def _is_set_on_create(attribute: Attribute) -> bool:
    return bool(attribute.settled or attribute.immutable or attribute.field_options.get("auto_now_add"))


def _is_independent(model: type[DynamoModel]) -> bool:
    """Return whether the app can overwrite items without conditions: nothing depends on them, and it has nothing to
    keep.
    """
    layout, found = registry.layout_of(model), registry.attributes_of(model).values()
    kept = (_is_set_on_create(each) or (each.computed and not isinstance(each, ComputedAttribute)) for each in found)
    is_tied = effects_of(model) or checked_references(model) or layout.soft_delete
    return not (is_tied or any(kept))


def _transaction_size(together: int | None, batch_size: int | None) -> int | None:
    """Return the maximum number of objects in one transaction; raises ``ValueError`` for an invalid size."""
    if batch_size is not None and batch_size <= 0:
        raise ValueError("Batch size must be a positive integer.")
    return None if together is None else min(together, batch_size or together)
