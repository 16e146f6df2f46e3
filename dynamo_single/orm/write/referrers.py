"""Which objects refer to one by its ``pk``, as far as a key finds them. It must not know what is done about them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db import router
from django.db.models import DO_NOTHING

from dynamo_single.exceptions import NoAccessPattern, NotSupported
from dynamo_single.orm.plan.plan import Visibility
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.bindings import ModelBinding, fact
from dynamo_single.orm.schema.fields.base import relations_from_sql
from dynamo_single.orm.schema.keys.values import named
from dynamo_single.orm.schema.references import declared
from dynamo_single.orm.schema.types import DynamoModel

_VISIBILITIES: tuple[Visibility, ...] = ("all", "live", "deleted")


@fact
def references_to(binding: ModelBinding) -> tuple[tuple[Any, bool], ...]:
    """Return the references to a model, each with whether a key has to find its objects: those of ``Children``, and
    those with an ``on_delete``. References of derived objects are omitted."""
    return tuple(_found_references(binding.model))


def _found_references(model: type[DynamoModel]) -> Iterator[tuple[Any, bool]]:
    owned = {children.field for children in declared(model)}
    for other in registry.all_models():
        fields: list[Any] = list(other._meta.concrete_fields)
        for field in fields:
            follows = other.derived_by in (field.name, field.attname) and not _has_independent_objects(other)
            related: Any = field.related_model
            if field.is_relation and issubclass(model, related) and not follows:
                yield field, field in owned or field.remote_field.on_delete is not DO_NOTHING


def _has_independent_objects(model: type[DynamoModel]) -> bool:
    """Whether a model says for itself which of its objects follow from others."""
    return sum("is_derived" in vars(each) for each in model.__mro__) > 1


def referrer_querysets(field: Any, pk: object, *, always: bool) -> Iterator[Any]:
    """Querysets of the objects with a reference, where a key has it; ``always`` for those that any key lists."""
    # Without Meta.ordering, which no key may have.
    found = field.model._base_manager.order_by().filter(**{field.attname: pk})
    for visibility in _VISIBILITIES if registry.layout_of(field.model).soft_delete else _VISIBILITIES[1:2]:
        queryset = found.with_visibility(visibility)
        try:
            plan = queryset._plan()
        except NoAccessPattern:
            continue
        if always or plan.key is None or field.attname in plan.key.variables:
            yield queryset
            if visibility == "all":
                return


def refuse_sql_references(obj: DynamoModel) -> None:
    """Refuse to move what rows of SQL models refer to: a query for each such reference."""
    for related in relations_from_sql(type(obj)):
        rows = related.related_model._base_manager.using(router.db_for_write(related.related_model))
        if rows.filter(**{related.field.attname: obj.pk}).exists():
            label = obj._meta.label
            raise NotSupported(
                f"{named(obj)} cannot move: rows of {related.related_model._meta.label} refer to it by "
                f"{related.field.name}, and would refer to nothing. Create another {label}, and let them refer to "
                "that; nothing was written."
            )
