"""Update or delete the object under a key by one request, without Django's where tree and the planner.

The complete primary key has to be the only filter of the queryset. If anything else is unusual, each function returns
``None`` before it sends a request, and ``queryset_update`` plans the write and raises the errors. Both ways send the
same requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from django.db.models import Model
from django.db.models.signals import post_delete, pre_delete

from dynamo_single.exceptions import BeginAgain, ConditionFailed
from dynamo_single.orm.conditions.terms import Condition, Stored, join
from dynamo_single.orm.effects.all_effects import effects_of, watched_attributes
from dynamo_single.orm.items import decode, version
from dynamo_single.orm.items.form import form_of
from dynamo_single.orm.items.writer import ItemWriter, item_writer
from dynamo_single.orm.plan.plan import Visibility
from dynamo_single.orm.query.get import KeyFilter, Lookup, key_filter, lookup
from dynamo_single.orm.query.state import StatefulQuerySet
from dynamo_single.orm.requests.actions import ITEM_EXISTS, Delete, ItemKey, Update, type_condition
from dynamo_single.orm.requests.compiler import compile_action
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema.attributes import VersionAttribute
from dynamo_single.orm.schema.bindings import ModelBinding, fact
from dynamo_single.orm.schema.references import cascading_children
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.write import on_delete
from dynamo_single.orm.write.direct import MAX_SHAPES, UpdateShape
from dynamo_single.table.flow import Flow
from dynamo_single.table.names import MOVED_FROM, PARTITION_KEY, SORT_KEY
from dynamo_single.table.request import Request
from dynamo_single.table.table import get_table

Counts = tuple[int, dict[str, int]]

_NO_KEY: Final[ItemKey] = ("", "")


class WritesByKey:
    """How to write the objects of one binding by their keys.

    - ``condition`` is that the item exists, is of the model, and is visible.
    - ``settable`` contains the attributes that DynamoDB can set by itself, by their names in ``update()``.
    - ``deletion`` contains the parameters of a DeleteItem without the key; ``None`` if other objects depend on it.
    """

    __slots__ = ("binding", "condition", "deletion", "form", "lookup", "settable", "shapes", "version_name", "writer")

    def __init__(self, binding: ModelBinding, found: Lookup, writer: ItemWriter) -> None:
        self.binding, self.lookup, self.writer = binding, found, writer
        self.form = form_of(binding)
        self.condition: Condition = join((ITEM_EXISTS, type_condition(binding.layout.item_type), found.condition))
        self.settable = _settable(binding)
        self.version_name = version.version_stored(binding) or None
        self.shapes: dict[Any, UpdateShape] = {}
        depended = effects_of(binding) or on_delete.has_references(binding.model) or cascading_children(binding)
        never_moved = Stored(MOVED_FROM, "missing")
        action = Delete(_NO_KEY, join((self.condition, never_moved)))
        self.deletion = None if depended else _without_key(compile_action(action))

    def update(self, key: ItemKey, given: Mapping[str, object]) -> Request:
        """Return the request that sets attributes; raise any error if it has to be planned."""
        written, form = self._automatic(), self.form
        names = [self.settable[name] for name in given]
        for name, value in zip(names, given.values(), strict=True):
            if isinstance(value, Model) or (value is None and not form.attributes[name].null):
                raise TypeError(name)
            written[form.stored[name]] = None if value is None else self.writer.parts[name](value)[1]
        if len({*names}) < len(given):
            raise TypeError(names)
        return self._shape(written).request(_written_key(key), written, {}, self.binding.lease)

    def _automatic(self) -> dict[str, Any]:
        form = self.form
        if not form.automatic:
            return {}
        blank = form.model.__new__(form.model)
        blank._stored = None
        return {form.stored[name]: form.writers[name](value) for name, value in form.automatic_values(blank).items()}

    def _shape(self, written: Mapping[str, Any]) -> UpdateShape:
        key = tuple((name, value is None) for name, value in written.items())
        found = self.shapes.get(key)
        if found is None:
            if len(self.shapes) >= MAX_SHAPES:
                self.shapes.clear()
            put = [name for name, is_removed in key if not is_removed]
            removed = tuple(name for name, is_removed in key if is_removed)
            add = {} if self.version_name is None else {self.version_name: {"N": "1"}}
            found = self.shapes[key] = UpdateShape.of(put, Update(_NO_KEY, {}, removed, add, condition=self.condition))
        return found


@fact
def writes_by_key(binding: ModelBinding, visibility: Visibility) -> WritesByKey | None:
    """Return how to write a model's objects by their keys; ``None`` if each such write has to be planned."""
    found, writer = lookup(binding, visibility, False), item_writer(binding)
    if found is None or writer is None:
        return None
    writes = WritesByKey(binding, found, writer)
    # A datetime that sets itself is written too, and other items must not depend on it.
    return writes if form_of(binding).automatic.keys() <= {*writes.settable.values()} else None


def _settable(binding: ModelBinding) -> dict[str, str]:
    form, watched = form_of(binding), watched_attributes(binding)
    extracted_from = {each.place.name for each in form.extracted}
    found = {}
    for field in binding.model._meta.concrete_fields:
        attribute = form.attributes.get(field.attname)
        if attribute is None or field.primary_key or field.attname in form.identity or field.attname in watched:
            continue
        if attribute.computed or attribute.settled or attribute.immutable or isinstance(attribute, VersionAttribute):
            continue
        if form.stored[field.attname] not in extracted_from:
            found.update({field.name: field.attname, field.attname: field.attname})
    return found


def _without_key(request: Request) -> Mapping[str, object]:
    return {name: value for name, value in request.params.items() if name != "Key"}


def _written_key(key: ItemKey) -> dict[str, dict[str, str]]:
    return {PARTITION_KEY: {"S": key[0]}, SORT_KEY: {"S": key[1]}}


def _found(queryset: StatefulQuerySet[Any]) -> tuple[ItemKey, WritesByKey] | None:
    asked: KeyFilter | None = key_filter(queryset) if queryset._progress is None else None
    if asked is None:
        return None
    writes = writes_by_key(asked.binding, queryset._asked.visibility)
    return None if writes is None or not writes.lookup.decides(asked.key) else (asked.key, writes)


async def update(queryset: StatefulQuerySet[Any], given: Mapping[str, object]) -> int | None:
    """Set attributes of the object that a queryset's key identifies: one UpdateItem. Return how many were written."""
    if (found := _found(queryset)) is None or not given:
        return None
    key, writes = found
    try:
        request = writes.update(key, given)
    except Exception:
        return None  # whatever it is, it is raised again where it is worded
    if not writes.binding.is_current:
        return None
    try:
        await get_table(writes.form.alias).ask_patiently(request)
    except BeginAgain:
        knowledge.stale()
        return None
    except ConditionFailed as error:
        _check_found(writes.form.model, error)
        return 0
    finally:
        queryset._result_cache = None
    return 1


async def delete(
    queryset: StatefulQuerySet[Any], read_and_delete: Callable[[], Flow[Counts]], *, for_good: bool
) -> Counts | None:
    """Delete the object that a queryset's key identifies: one DeleteItem. Return the counts as ``delete()`` does.

    Objects may refer to the former identity of a moved one: ``read_and_delete`` deletes that.
    """
    if (found := _found(queryset)) is None:
        return None
    key, writes = found
    binding, model = writes.binding, writes.form.model
    is_heard = pre_delete.has_listeners(model) or post_delete.has_listeners(model)
    if writes.deletion is None or is_heard or (binding.layout.soft_delete and not for_good) or not binding.is_current:
        return None
    deleted = 1
    try:
        await get_table(writes.form.alias).ask_patiently(
            Request("DeleteItem", {"Key": _written_key(key), **writes.deletion}, binding.lease)
        )
    except BeginAgain:
        knowledge.stale()
        return None
    except ConditionFailed as error:
        _check_found(model, error)
        if error.item and MOVED_FROM in error.item:
            return await read_and_delete()
        # If there is no item, an earlier attempt may have deleted it.
        deleted = int(error.retried and not error.item)
    finally:
        queryset._result_cache = None
    return deleted, {model._meta.label: deleted} if deleted else {}


def _check_found(model: type[DynamoModel], error: ConditionFailed) -> None:
    if error.item:
        decode.check_type(model, error.item)
