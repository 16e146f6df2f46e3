"""Writing through a queryset: what is to be written is checked before anything is read or sent.

Each object is written by itself, under the queryset's own conditions: one that does not meet them any more is left
alone and not counted. This module must not know how a single object is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.db.models import Model

from dynamo_single import registry, uniqueness
from dynamo_single.conditions import conjuncts, join, lower, simplify
from dynamo_single.exceptions import BulkError, DynamoSingleError, InvalidValue, NotSupported, UnknownField
from dynamo_single.query import DELETED_AT, IDENTITY, Compare, Condition, Query, Stored

#: Writes one object; tells how many objects of which model were written.
Write = Callable[[Any], Mapping[str, int]]


def update(queryset: Any, changes: Mapping[str, Any]) -> int:
    """Set attributes of each object that matches; the number of those that were written."""
    model = queryset.model
    values = dict(_checked(model, name, value) for name, value in changes.items())
    if not values:
        return 0
    objects = queryset._to_write()
    _check_unique(model, values, objects)
    query = queryset._query_value(ordered=False)

    def write(obj: Any) -> Mapping[str, int]:
        for name, value in values.items():
            setattr(obj, name, value)
        written = obj._write_if(_own_condition(query, obj), update_fields=list(values))
        return {model._meta.label: int(written)}

    return sum(_write_each(objects, write, "update").values())


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

    counts = _write_each(queryset._to_write(), write, verb)
    return sum(counts.values()), counts


def restore(queryset: Any) -> int:
    """Take each object out of the trash; the number of those that were in it."""
    model = queryset.model
    if not registry.layout_of(model).soft_delete:
        raise NotSupported(f"{model._meta.label} has no soft delete, so there is no trash to restore() from.")

    def write(obj: Any) -> Mapping[str, int]:
        try:
            return {model._meta.label: int(obj.restore())}
        except model.DoesNotExist:
            return {}  # deleted for good since it was read

    return sum(_write_each(queryset._to_write(), write, "restore").values())


def _checked(model: Any, name: str, value: Any) -> tuple[str, Any]:
    """The attribute that a name means, and the value as it is stored."""
    label = model._meta.label
    if hasattr(value, "resolve_expression"):
        raise NotSupported(f"update({name}={value!r}) is not supported: give a value, or save the objects.")
    fields = {key: field for field in model._meta.concrete_fields for key in (field.name, field.attname)}
    field = model._meta.pk if name == "pk" else fields.get(name)
    if field is None:
        known = ", ".join(each.name for each in model._meta.concrete_fields if not _is_of_key(each))
        raise UnknownField(f"{label} has no attribute {name!r} to update. It has {known}.")
    if _is_of_key(field):
        raise NotSupported(
            f"{label}.{name} is part of the primary key and cannot change: create new objects and delete these."
        )
    if field.attribute.computed:
        raise NotSupported(f"{label}.{name} is computed from {field.attribute.source}: update that.")
    return field.attname, _checked_value(field, value)


def _is_of_key(field: Any) -> bool:
    return bool(field.primary_key or field.attname in field.model._identity)


def _checked_value(field: Any, value: Any) -> Any:
    attribute = field.attribute
    if isinstance(value, Model):
        if not field.is_relation or not isinstance(value, field.remote_field.model):
            raise InvalidValue(f"{field.model._meta.label}.{field.name} cannot be set to {value!r}.")
        value = value.pk
    try:
        prepared = attribute.prepare(value)
    except InvalidValue as error:
        raise InvalidValue(f"{field.model._meta.label}: {error}") from error
    if prepared is None and not attribute.null:
        raise InvalidValue(
            f"{field.model._meta.label}: {field.name} is missing: it takes {attribute.expects}, or null=True."
        )
    return prepared


def _check_unique(model: Any, values: Mapping[str, Any], objects: Sequence[Any]) -> None:
    for name in uniqueness.unique_attributes(model):
        if len(objects) > 1 and values.get(name) not in (None, ""):
            raise NotSupported(
                f"{model._meta.label}.{name} is unique, and {len(objects)} objects match: they cannot all have "
                f"{values[name]!r}. Nothing was written."
            )


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


def _write_each(objects: Sequence[Any], write: Write, verb: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    written: list[Any] = []
    for obj in objects:
        pk = obj.pk
        try:
            found = {label: count for label, count in write(obj).items() if count}
        except DynamoSingleError as error:
            if not written:
                raise
            raise BulkError(
                f"{verb}() has written {len(written)} of {len(objects)} {obj._meta.label} objects and then failed at "
                f"pk {pk!r}: {error} What is written stays.",
                written=tuple(written),
                failed=pk,
            ) from error
        for label, count in found.items():
            counts[label] = counts.get(label, 0) + count
        if found:
            written.append(pk)
    return counts
