"""``annotate()``, ``values()`` after it, ``dates()`` and ``datetimes()``: querysets with computations.

Django resolves and checks the names; nothing is sent. This module must not know how results are made.
"""

from __future__ import annotations

import datetime
import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import models
from django.db.models import Count, F
from django.utils import timezone
from msgspec.structs import replace

from dynamo_single.exceptions import InvalidValue, NotSupported, UnknownField
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.conditions.wording import COMPUTE_IN_PYTHON
from dynamo_single.orm.query.base import PlannedQuerySet, RowIterable
from dynamo_single.orm.results import aggregates, measures, rows
from dynamo_single.orm.results.columns import Columns, Shape, as_value, columns
from dynamo_single.orm.results.computation import Computation, Dates, repeats_rows
from dynamo_single.orm.results.measures import Measure
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import DateAttribute, TimestampAttribute
from dynamo_single.orm.schema.keys.values import shown
from dynamo_single.orm.schema.references import Children
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.where.arguments import django_errors_translated

if TYPE_CHECKING:
    from dynamo_single.orm.query import interpreted
else:
    interpreted = LazyModule("dynamo_single.orm.query.interpreted")

Q = TypeVar("Q", bound=PlannedQuerySet[Any])


async def aggregate(
    queryset: PlannedQuerySet[DynamoModel], args: Sequence[object], kwargs: Mapping[str, object]
) -> dict[str, Any]:
    """The results of aggregates over the objects of a queryset."""
    computation = queryset._computation
    queryset._refuse_secrets((*args, *kwargs.values()))
    expressions = aggregates.named_expressions(args, kwargs, "aggregate")
    if not expressions:
        return {}
    state = await queryset._state()
    if state.interpretation is not None or (computation is not None and rows.chooses(state, computation)):
        return await interpreted.aggregate(queryset, expressions)
    try:
        measures = [
            aggregates.read_measure(queryset.model, queryset.query, alias, expression, summarize=True)
            for alias, expression in expressions.items()
        ]
    except aggregates.NotMeasured as refusal:
        _check_may_join(queryset, refusal)
        return await interpreted.aggregate(queryset, expressions, refusal)
    return await aggregates.aggregate(state.source(), measures)


def annotate(queryset: Q, args: Sequence[object], kwargs: Mapping[str, object]) -> Q:
    """Return the queryset with computed values for each object, or after ``values()`` for each group."""
    expressions = aggregates.named_expressions(args, kwargs, "annotate")
    queryset._refuse_secrets(expressions.values())
    if queryset._asked.interpreted:
        return interpreted.annotate(queryset, args, kwargs, select=True)
    try:
        return _measured(queryset, expressions)
    except aggregates.NotMeasured as refusal:
        _check_may_join(queryset, refusal)
        return interpreted.annotate(queryset, args, kwargs, select=True, refusal=refusal)


def _check_may_join(queryset: PlannedQuerySet[Any], refusal: aggregates.NotMeasured) -> None:
    """Raise an error for an aggregate of related objects that nothing allows to read."""
    if isinstance(refusal, aggregates.NotJoined) and queryset._asked.in_memory is None:
        way_out = "Or call .allow_in_memory(limit=1000) first, which reads the related objects."
        raise NotSupported(f"{refusal} {way_out}") from None


def _measured(queryset: Q, expressions: Mapping[str, Any]) -> Q:
    """Return the queryset with aggregates of attributes alone."""
    before = queryset._asked.computation
    if before is None:
        before = Computation(groups=_groups(queryset))
    if before.dates is not None:
        raise NotSupported(
            f"annotate() after dates() is not supported. Call annotate() and values(), or {COMPUTE_IN_PYTHON}."
        )
    if before.shape is not None and before.groups is None:
        raise aggregates.NotMeasured("annotate() after values() of annotated objects groups them.")
    if before.groups is not None and queryset.query.is_sliced:
        raise NotSupported(
            "annotate() does not support a sliced values(), because the slice would contain groups. Annotate "
            "first, and slice the result: queryset.annotate(...)[:100]."
        )
    clone = queryset._chain()
    measures = {measure.alias: measure for measure in before.measures}
    for alias, expression in expressions.items():
        _check_alias(queryset, before, alias)
        measures[alias] = _measure(clone, alias, expression, grouped=before.groups is not None)
        # Django knows the name from now on, and refuses or resolves it wherever it is used.
        known = Count("pk") if measures[alias].children else expression
        with django_errors_translated(queryset.model, expression):
            clone.query.add_annotation(known, alias)
    computation = replace(before, measures=tuple(measures.values()))
    if before.groups is not None:
        new = tuple(alias for alias in expressions if alias not in before.output)
        output = (before.output or before.groups.names) + new
        computation = replace(computation, output=output, shape=before.shape or before.groups.shape)
        clone._iterable_class = RowIterable
    clone._asked = replace(clone._asked, computation=computation)
    return clone


def _groups(queryset: PlannedQuerySet[DynamoModel]) -> Columns | None:
    chosen = queryset._asked.columns
    if chosen is not None:
        chosen.without_places(queryset.model)
    identity = registry.layout_of(queryset.model).identity
    if chosen is None or len(identity) > 1:
        return chosen
    # A single name for a group's column, so that results can be ordered by it.
    return replace(chosen, attributes=tuple(identity[0] if name == "pk" else name for name in chosen.attributes))


def _check_alias(queryset: PlannedQuerySet[DynamoModel], before: Computation, alias: str) -> None:
    if before.groups is not None:
        taken = alias in before.groups.names or alias in before.groups.attributes
    else:
        # As in Django a method's name is free: the object has the number instead. Relations and properties are not.
        named = {name for field in queryset.model._meta.get_fields() for name in _names_of(field)}
        set_by_class = hasattr(inspect.getattr_static(queryset.model, alias, None), "__set__")
        related = isinstance(getattr(queryset.model, alias, None), Children)
        taken = alias not in before.aliases and (alias in named or set_by_class or related)
    if taken:
        raise ValueError(f"The annotation '{alias}' conflicts with a field on the model.")


def _names_of(field: Any) -> tuple[str, ...]:
    return (field.name, getattr(field, "attname", field.name))


def _measure(queryset: PlannedQuerySet[DynamoModel], alias: str, expression: object, *, grouped: bool) -> Measure:
    sources = [each for each in getattr(expression, "source_expressions", ()) if isinstance(each, F)]
    name = getattr(sources[0], "name", "") if len(sources) == 1 else ""
    if not isinstance(getattr(queryset.model, name, None) if name else None, Children):
        return aggregates.read_measure(queryset.model, queryset.query, alias, expression, summarize=False)
    if type(expression) is not Count or expression.distinct or expression.filter is not None or grouped:  # type: ignore[attr-defined]  # missing in the stubs
        raise NotSupported(
            f"{queryset.model._meta.label}: {alias}={shown(expression)} is not supported: of children there is "
            f"Count({name!r}) for each object, without filter= and distinct=. Otherwise "
            f"{_of_children(queryset.model, name)}."
        )
    return Measure(alias, "Count", children=name)


def _of_children(model: type[DynamoModel], name: str) -> str:
    reference = getattr(model, name).field
    grouped = f"values({reference.attname!r}).annotate(...)"
    return f"group these: {reference.model._meta.object_name}.objects.allow_in_memory(limit=1000).order_by().{grouped}"


def with_columns(
    queryset: Q, before: Computation, fields: Sequence[object], expressions: Mapping[str, object], shape: Shape
) -> Q:
    """Return ``values()`` of computations made ``before``: the columns of the groups or objects, and the aliases."""
    model = queryset.model
    if before.dates is not None:
        raise NotSupported(
            "values() and values_list() after dates() and datetimes() are not supported. Call them alone: "
            "queryset.values(...)."
        )
    own = [name for name in fields if name not in before.aliases]
    read = queryset._asked.columns
    if before.groups is None:
        read = columns(model, own, expressions, shape) if own or not fields else Columns((), (), shape)
        read.without_places(model)
        output = tuple(fields) or (*read.names, *before.aliases)
    else:
        for name in own:
            if name not in before.groups.names:
                known = ", ".join((*before.groups.names, *before.aliases))
                raise UnknownField(
                    f"{model._meta.label}: the rows are {before}, and have no {name!r}. They have {known}."
                )
        output = tuple(fields) or (*before.groups.names, *before.aliases)
    computation = replace(before, output=output, shape=shape)
    clone = queryset._asking(replace(queryset._asked, columns=read, computation=computation))
    clone._iterable_class = RowIterable
    return compared(clone, computation)


def compared(queryset: Q, computation: Computation) -> Q:
    """Return a queryset whose rows are compared if they must be distinct and can be equal."""
    asked = queryset._asked
    if asked.distinct and repeats_rows(queryset.model, computation, asked.columns):
        return interpreted.entered(queryset)
    return queryset


def dates(queryset: Q, name: str, kind: str, order: str) -> Q:
    """The days on which the periods of an attribute begin."""
    measures.check_period(kind, measures.DATE_PERIODS, order)
    return _dates(queryset, name, (DateAttribute, TimestampAttribute), kind, order, None)


def datetimes(queryset: Q, name: str, kind: str, order: str, zone: datetime.tzinfo | None) -> Q:
    """Return the datetimes at which the periods of an attribute begin."""
    measures.check_period(kind, measures.DATETIME_PERIODS, order)
    return _dates(queryset, name, (TimestampAttribute,), kind, order, zone or timezone.get_current_timezone())


def _dates(
    queryset: Q, name: str, kinds: tuple[type[object], ...], kind: str, order: str, zone: datetime.tzinfo | None
) -> Q:
    label = queryset.model._meta.label
    if queryset.query.is_sliced:
        raise TypeError(
            "Cannot use dates() or datetimes() once a slice has been taken. Call .allow_in_memory(limit=...) instead."
        )
    if queryset._computation is not None:
        raise NotSupported(
            "dates() and datetimes() of rows or annotated objects are not supported: call them alone, before values() "
            "and annotate()."
        )
    fields = {key: field for field in queryset.model._meta.concrete_fields for key in (field.name, field.attname)}
    is_of_others = name not in fields
    field = _field_of_referenced(queryset, name) if is_of_others else fields[name]
    if field is None:
        raise UnknownField(f"{label} has no attribute {name!r}. It has {', '.join(sorted(fields))}.")
    attribute = getattr(field, "attribute", None)
    if not isinstance(attribute, kinds):
        takes = " or a ".join(each.__name__ for each in kinds)
        raise InvalidValue(f"{label}.{name} is a {type(attribute).__name__}; this takes a {takes}.")
    if queryset._asked.interpreted or is_of_others:
        plain: Any = models.QuerySet
        computed: Q = (
            plain.dates(queryset, name, kind, order)
            if zone is None
            else plain.datetimes(queryset, name, kind, order, zone)
        )
        return computed
    present = queryset.filter(**{f"{field.attname}__isnull": False}).order_by()
    values = Columns((field.attname,), (field.attname,), as_value)
    computation = Computation(dates=Dates(field.attname, kind, zone, order == "DESC"))
    clone = present._asking(replace(queryset._asked, columns=values, computation=computation))
    clone._iterable_class = RowIterable
    return clone


def _field_of_referenced(queryset: PlannedQuerySet[Any], path: str) -> Any:
    """Return the field that a path through references leads to, if the related objects may be read; or ``None``."""
    model: Any = queryset.model
    *references, last = path.split("__")
    if not references or queryset._asked.in_memory is None:
        return None
    for name in references:
        found = next((field for field in model._meta.concrete_fields if field.name == name), None)
        if found is None or not found.is_relation:
            return None
        model = found.related_model
    return next((field for field in model._meta.concrete_fields if field.name == last), None)
