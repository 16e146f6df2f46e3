"""``aggregate()``: one request if keys support it, otherwise a bounded read, and aggregation in memory.

It reads Django's aggregate expressions into ``Measure`` values. This module does not depend on groups, rows or
annotated objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, cast

from django.db.models import Avg, Count, Max, Min, Q, Sum, Value, sql
from django.db.models.expressions import Col, Ref, Star
from django.db.models.fields.json import KeyTransform
from msgspec.structs import replace

from dynamo_single import clock
from dynamo_single.exceptions import NoAccessPattern, NotSupported
from dynamo_single.orm.conditions.lowering import lower
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING, Compare, Condition, Order, join
from dynamo_single.orm.conditions.wording import COMPUTE_IN_PYTHON, capitalized, condition_text, extraction_advice
from dynamo_single.orm.items import decode
from dynamo_single.orm.items.decode import Item
from dynamo_single.orm.items.readers import absent_value, value_reader
from dynamo_single.orm.plan import planner
from dynamo_single.orm.plan.plan import Plan, attributes_of, project
from dynamo_single.orm.reading import execute as reading
from dynamo_single.orm.results import cached_lists, objects, sorting
from dynamo_single.orm.results.measures import NUMBERS, Accumulator, Function, Measure, checked_default
from dynamo_single.orm.results.state import QueryState
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.fields.base import DynamoField, IdentityField
from dynamo_single.orm.schema.keys.values import shown
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.where.arguments import check_lists, check_nesting, django_errors_translated
from dynamo_single.orm.where.lookups import aggregate_advice, is_own
from dynamo_single.orm.where.tree import read_where


class NotMeasured(NotSupported):
    """An expression that is no ``Measure``; ``orm.expressions`` may compute it."""


class NotJoined(NotMeasured):
    """An aggregate of related objects, which ``orm.relations`` may join."""


FUNCTIONS: dict[type[Any], Function] = {Count: "Count", Min: "Min", Max: "Max", Sum: "Sum", Avg: "Avg"}


def named_expressions(args: Sequence[Any], kwargs: Mapping[str, Any], method: str) -> dict[str, Any]:
    """Return the expressions of a method's arguments by alias, in the order of Django's results."""
    strange = [str(each) for each in (*args, *kwargs.values()) if not hasattr(each, "resolve_expression")]
    if strange:
        raise TypeError(f"QuerySet.{method}() received non-expression(s): {', '.join(strange)}.")
    found: dict[str, Any] = {}
    for each in args:
        try:
            alias = each.default_alias
        except (AttributeError, TypeError) as error:
            raise TypeError(
                f"Complex {'aggregates' if method == 'aggregate' else 'annotations'} require an alias"
            ) from error
        if alias in kwargs or alias in found:
            raise ValueError(f"The named annotation '{alias}' conflicts with the default name for another annotation.")
        found[alias] = each
    return {**kwargs, **found} if method == "aggregate" else {**found, **kwargs}


def check_function(model: type[DynamoModel], alias: str, expression: Any) -> None:
    """Raise ``NotSupported`` for expressions other than the five plain aggregates."""
    if type(expression) not in FUNCTIONS:
        raise NotMeasured(
            f"{model._meta.label}: {alias}={shown(expression)} is not supported. Use "
            f"{', '.join(FUNCTIONS.values())} of an attribute. For anything else, {COMPUTE_IN_PYTHON}. Or keep "
            "the value in an attribute."
        )
    if "output_field" in vars(expression) or expression.extra:
        raise NotMeasured(
            f"{model._meta.label}: {alias}={shown(expression)}: an aggregate has the type of its attribute; leave out "
            "output_field and other options, and convert the result."
        )


def read_measure(
    model: type[DynamoModel], query: sql.Query, alias: str, expression: Any, *, summarize: bool
) -> Measure:
    """Return the measure of an aggregate expression; raises ``NotSupported`` by name for unsupported ones."""
    check_function(model, alias, expression)
    if isinstance(_condition_of(expression), Q):
        check_nesting((_condition_of(expression),))
        check_lists(model, (_condition_of(expression),))
    # A default is Django's COALESCE around the aggregate, which would hide it.
    bare: Any = expression.copy()
    bare.default = None
    with django_errors_translated(model, expression):
        resolved: Any = bare.resolve_expression(query.chain(), allow_joins=True, summarize=summarize)
    (source,) = resolved.source_expressions
    function = FUNCTIONS[type(expression)]
    field = _field(model, alias, expression, source)
    attribute = None if field is None or isinstance(field, IdentityField) else field.attname
    if function != "Count":
        _check_attribute(model, function, field)
    elif not expression.distinct and attribute in registry.layout_of(model).identity:
        attribute = None
    try:
        condition = EVERYTHING if resolved.filter is None else read_where(model, _condition_of(resolved))
    except NotSupported as error:
        raise NotMeasured(str(error)) from None
    # Report a wrong value before the first read.
    lower(condition, registry.layout_of(model))
    return Measure(
        alias,
        function,
        attribute,
        distinct=expression.distinct and attribute is not None,
        filter=condition,
        default=_default(function, field, expression),
        worded="" if condition == EVERYTHING else condition_text(condition, registry.layout_of(model)),
    )


def _condition_of(expression: Any) -> object:
    """Return the condition of an aggregate's ``filter``: since Django 6.0 it is inside an ``AggregateFilter``."""
    return getattr(expression.filter, "condition", expression.filter)


def _field(model: type[DynamoModel], alias: str, expression: object, source: object) -> DynamoField | None:
    """The field that an aggregate is of; ``None`` for ``Count("*")``."""
    if isinstance(source, Star):
        return None
    if isinstance(source, Col):
        field: Any = source.target
        if isinstance(field, DynamoField) and is_own(model, source):
            return field
        way_out = aggregate_advice(model, field, f"{alias}={type(expression).__name__}")
        raise NotJoined(
            f"{model._meta.label}: {alias}={shown(expression)} needs {field.model._meta.label}, and DynamoDB has no "
            f"joins. {way_out}."
        )
    if isinstance(source, Ref) or getattr(source, "contains_aggregate", False):
        raise NotMeasured(
            f"{model._meta.label}: {alias}={shown(expression)}: an aggregate of annotations is not supported. "
            f"{capitalized(COMPUTE_IN_PYTHON)}."
        )
    if isinstance(source, KeyTransform):
        raise NotMeasured(
            f"{model._meta.label}: {alias}={shown(expression)}: an aggregate cannot use a nested value. Either "
            f"{COMPUTE_IN_PYTHON}. Or keep it in a separate attribute: {extraction_advice(_place(source))}."
        )
    raise NotMeasured(
        f"{model._meta.label}: {alias}={shown(expression)}: an aggregate accepts only the name of an attribute. "
        f"{capitalized(COMPUTE_IN_PYTHON)}."
    )


def _place(source: Any) -> str:
    """Return the path in a document that an expression names, in the form of lookups."""
    steps: list[str] = []
    while isinstance(source, KeyTransform):
        steps, source = [str(source.key_name), *steps], source.lhs
    return "__".join((source.target.name, *steps))


def _check_attribute(model: type[DynamoModel], function: Function, field: Any) -> None:
    if field is None or isinstance(field, IdentityField):
        raise NotSupported(
            f"{model._meta.label}: {function}() takes one attribute. The primary key consists of "
            f"{', '.join(registry.layout_of(model).identity)}: name one of these, or {COMPUTE_IN_PYTHON}."
        )
    if function in ("Min", "Max"):
        sorting.check_orderable(model, field.attname, f"{function}()")
    elif not isinstance(field.attribute, NUMBERS):
        raise NotSupported(
            f"{model._meta.label}: {function}() adds numbers, and {field.attname} is a "
            f"{type(field.attribute).__name__}. Use Count(), Min() or Max(), or {COMPUTE_IN_PYTHON}."
        )


def _default(function: Function, field: Any, expression: Any) -> object:
    default = expression.default
    if default is None:
        return None
    if isinstance(default, Value):
        default = default.value
    if hasattr(default, "resolve_expression"):
        raise NotMeasured(
            f"{shown(expression)}: the default of an aggregate must be a value. Omit the expression, and "
            "replace None in the result."
        )
    return checked_default(function, field.attribute, default)


async def aggregate(source: QueryState, measures: Sequence[Measure]) -> dict[str, object]:
    """Return the results by alias; ``source`` is the queryset of the objects, with its order and slice."""
    if source.is_empty:
        results = Accumulators(source.model, measures).results()
    else:
        direct = await _aggregate_by_keys(source, measures)
        results = await _aggregate_in_memory(source, measures) if direct is None else direct
    return {measure.alias: result for measure, result in zip(measures, results, strict=True)}


class Accumulators:
    """Accumulates several measures over the same items."""

    def __init__(self, model: type[DynamoModel], measures: Sequence[Measure]) -> None:
        attributes = registry.attributes_of(model)
        layout = registry.layout_of(model)
        self._each: list[tuple[Accumulator, Any, Callable[[Any], Any]]] = []
        for measure in measures:
            name = measure.attribute
            tally = Accumulator(measure, attributes[name] if name else None)
            value = value_reader(model, name) if name else bool
            self._each.append((tally, lower(measure.filter, layout), value))

    def add(self, item: Item) -> None:
        """Add an item."""
        for tally, condition, value in self._each:
            if condition == EVERYTHING or matches(condition, item):
                tally.add(value(item))

    def results(self) -> list[object]:
        """Return the result of each measure."""
        return [tally.result() for tally, _, _ in self._each]


def measured_attributes(measures: Iterable[Measure]) -> set[str]:
    """Return the names of the attributes that measures read."""
    found: set[str] = set()
    for measure in measures:
        found |= {*attributes_of(measure.filter), *([measure.attribute] if measure.attribute else [])}
    return found


async def _aggregate_in_memory(source: QueryState, measures: Sequence[Measure]) -> list[object]:
    what = f"aggregate({', '.join(map(str, measures))})"
    sliced = source.window.is_sliced
    plan = objects.plan(source) if sliced else objects.plan_of_matches(source)
    limit = objects.limit_of(source, plan, what, sliced=True)
    plan = project(plan, measured_attributes(measures))
    if sliced:
        found = objects.limited_matches(source, objects.items(source, plan), limit)
    else:
        found = objects.matches(source, plan, limit)
    tallies = Accumulators(source.model, measures)
    async with aclosing(found):
        async for page in found:
            for item in page:
                decode.check_type(source.model, item)
                tallies.add(item)
    return tallies.results()


async def _aggregate_by_keys(source: QueryState, measures: Sequence[Measure]) -> list[object] | None:
    """The results that keys give by themselves, one by one; ``None`` unless they give all of them.

    There may be one count, since each reads all that it counts, and any number of values at the ends of a key.
    """
    if source.asked.cached_lists is not None:
        return None
    if source.window.is_sliced:
        whole = len(measures) == 1 and replace(measures[0], alias="") == Measure("", "Count")
        return [await objects.count(source)] if whole else None
    if sum(measure.function == "Count" for measure in measures) > 1:
        return None
    plans = [_plan_of(source, measure) for measure in measures]
    if None in plans:
        return None
    return [await _key_result(source, measure, cast(Plan, plan)) for measure, plan in zip(measures, plans, strict=True)]


def _plan_of(source: QueryState, measure: Measure) -> Plan | None:
    """Return the plan of a single measure."""
    name = measure.attribute
    if measure.function in ("Sum", "Avg") or measure.distinct or measure.children:
        return None
    counts = measure.function == "Count"
    query = source.query(ordered=False)
    ordering = (Order(name, measure.function == "Max"),) if name and not counts else ()
    query = replace(
        query, where=join((query.where, measure.filter, _has_value(source.model, measure))), ordering=ordering
    )
    try:
        plan = planner.plan(query, now=clock.instant())
    except NoAccessPattern:
        return None
    limit = source.asked.cache_limit
    if plan.in_memory is not None:
        return None  # the first of several single items is not the least of them
    if limit is not None and cached_lists.with_short_filter(plan, limit) is not plan:
        return None
    return project(plan, {name}) if name and not counts else plan


def _has_value(model: type[DynamoModel], measure: Measure) -> Condition:
    """Return the condition that excludes items without the attribute."""
    name = measure.attribute
    layout = registry.layout_of(model)
    if name is None or name in layout.identity:
        return EVERYTHING
    required = layout.attributes[name].required
    # If a default replaces a missing value, the item counts, which DynamoDB cannot do.
    defaults = absent_value(registry.attributes_of(model)[name]) is not None
    if defaults or (required and measure.function != "Count"):
        return EVERYTHING
    return Compare(name, "isnull", False)


async def _key_result(source: QueryState, measure: Measure, plan: Plan) -> object:
    if measure.function == "Count":
        return await reading.count(source.table, plan)
    tallies = Accumulators(source.model, [replace(measure, filter=EVERYTHING)])
    for item in await reading.item_list(source.table, plan, stop=1):
        decode.check_type(source.model, item)
        tallies.add(item)
    return tallies.results()[0]
