"""Querysets whose results are computed in memory: Django's own methods describe them in Django's own query.

``orm.expressions`` computes the results. A queryset changes to this form at the first call that DynamoDB cannot
evaluate.
Only ``aggregate()`` and ``update()`` send requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from django.db import models
from django.db.models import Exists, Model, OuterRef, Subquery
from django.db.models import query as django_query
from django.db.models.expressions import Col, ResolvedOuterRef
from msgspec.structs import replace

from dynamo_single.exceptions import InvalidValue, NotSupported, StaleObject
from dynamo_single.orm.conditions.wording import COMPUTE_IN_PYTHON
from dynamo_single.orm.expressions import computable, interpreter
from dynamo_single.orm.expressions.nested import columns_beside, columns_in, within
from dynamo_single.orm.expressions.plain_columns import with_plain_columns
from dynamo_single.orm.expressions.scope import Scope, value_of
from dynamo_single.orm.relations import filters, joining
from dynamo_single.orm.requests.atomic_block import Block
from dynamo_single.orm.results import columns, objects
from dynamo_single.orm.results.columns import Shape
from dynamo_single.orm.results.computation import Dates
from dynamo_single.orm.results.state import Asked, QueryState
from dynamo_single.orm.schema import secrecy
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.where.arguments import django_errors_translated, leaves_of, with_leaves_of
from dynamo_single.orm.where.secrets import names_secret

Q = TypeVar("Q", bound=models.QuerySet[Any])

#: How often ``update()`` reads and computes an object again because another process changed it.
ATTEMPTS = 5

#: The shape of a row by Django's iterable.
_SHAPES: dict[type[Any], Shape] = {
    django_query.ValuesIterable: columns.as_dict,
    django_query.ValuesListIterable: columns.as_tuple,
    django_query.NamedValuesListIterable: columns.as_named_tuple,
    django_query.FlatValuesListIterable: columns.as_value,
}


def entered(queryset: Q) -> Q:
    """Return a queryset with the same results that describes them by Django's query alone."""
    given: Any = queryset
    if given._asked.interpreted:
        return queryset
    clone: Q = given._chain()
    computed = given._asked.computation
    if computed is not None and computed.dates is not None:
        found: Q = _dated(clone, computed.dates)
        return found
    enter(clone)
    return clone


def _dated(queryset: Any, dates: Dates) -> Any:
    """Return Django's ``dates()`` or ``datetimes()`` of a queryset, which describes them otherwise, in its slice."""
    query = queryset.query
    low, high = query.low_mark, query.high_mark
    query.clear_limits()
    queryset._asked = replace(queryset._asked, columns=None, computation=None)
    queryset._iterable_class = queryset._iterables[False]
    enter(queryset)
    plain: Any = models.QuerySet
    order = "DESC" if dates.descending else "ASC"
    if dates.zone is None:
        found = plain.dates(queryset, dates.attribute, dates.kind, order)
    else:
        found = plain.datetimes(queryset, dates.attribute, dates.kind, order, dates.zone)
    found.query.set_limits(low, high)
    return found


def ordered(queryset: Q, names: Sequence[object]) -> Q:
    """Return a queryset that is ordered by expressions."""
    prepare(names)
    return entered(queryset)


def instead(queryset: Q, refusal: NotSupported) -> Q:
    """Return a queryset that computes in memory what was refused; raises ``refusal`` if that is impossible."""
    found = entered(queryset)
    _checked(found, refusal)
    return found


def enter(queryset: Any) -> None:
    """Change a queryset so that Django's query alone describes its results."""
    asked, query = queryset._asked, queryset.query
    if asked.interpreted:
        return
    computed, chosen = asked.computation, asked.columns
    if computed is not None and (computed.dates is not None or any(each.children for each in computed.measures)):
        raise NotSupported(
            f"{queryset.model._meta.label}: cannot combine results {computed} with expressions in memory. Omit "
            f"one of them, or {COMPUTE_IN_PYTHON}."
        )
    shape = None
    if chosen is not None:
        shape = chosen.shape
        _select(queryset, chosen.names)
    if computed is not None and computed.groups is not None:
        shape = computed.shape or computed.groups.shape
        _select(queryset, computed.groups.names)
        query.set_group_by()
    if computed is not None and computed.shape is not None and computed.output:
        shape = computed.shape
        queryset._fields = computed.output
        query.set_values(computed.output)
    query.distinct = query.distinct or asked.distinct
    queryset._asked = replace(asked, columns=None, computation=None, distinct=False, interpreted=True, row_shape=shape)
    queryset._iterable_class = queryset._iterables[shape is not None]


def _select(queryset: Any, names: Sequence[str]) -> None:
    """Select columns and all annotations, as ``values()`` before ``annotate()`` does."""
    query: Any = queryset.query
    annotations = dict(query.annotations)
    query.annotations = {}
    query.set_annotation_mask(None)
    queryset._fields = tuple(names)
    query.set_values(tuple(names))
    query.annotations = annotations
    query.set_annotation_mask(annotations)
    if query.selected is not None:
        query.selected.update({alias: alias for alias in annotations})


def prepare(expressions: Iterable[object]) -> None:
    """Translate the querysets of the subqueries in expressions, before Django resolves these."""
    for each in within(expressions):
        if isinstance(each, tuple):
            prepare(each[1:])
        elif isinstance(each, Subquery):
            _translate(each)


def _translate(subquery: Any) -> None:
    query = subquery.query
    asked, iterable = getattr(query, "asked", (None, None))
    if asked is None or asked.interpreted:
        return
    if isinstance(subquery, Exists):
        # No columns or groups decide whether there is a row.
        query.asked = replace(asked, columns=None, computation=None, distinct=False, interpreted=True), iterable
        return
    queryset = query.model._base_manager.all()
    queryset.query = query
    enter(queryset)
    query = queryset.query
    query.subquery = True
    subquery.query = query


def prepared(conditions: Sequence[object]) -> list[object]:
    """Return the conditions of ``filter()`` in the form that is computed, or that is read first.

    A subquery after ``__in`` without ``OuterRef`` is read first, as its queryset would be.
    """
    found = [with_leaves_of(each, _prepared) for each in conditions]
    prepare(found)
    return found


def _prepared(condition: Any) -> Any:
    if not isinstance(condition, tuple) or not str(condition[0]).endswith("__in"):
        return condition
    name, value = condition
    if type(value) is Subquery and not names_outer([value]):
        query: Any = value.query
        queryset = query.model._base_manager.all()
        queryset.query = query.clone()
        return name, queryset
    if hasattr(value, "_asked") and names_outer([value.query]):
        return name, entered(value)
    return condition


def names_outer(expressions: Iterable[object]) -> bool:
    """Return whether expressions or conditions name an attribute of an outer queryset, at any depth."""
    for each in within(expressions):
        if isinstance(each, OuterRef | ResolvedOuterRef):
            return True
        if isinstance(each, tuple) and names_outer(each[1:]):
            return True
        value: Any = each
        if isinstance(each, Subquery) or hasattr(each, "_asked"):
            value = value.query
        if hasattr(value, "where"):
            asked: Asked = getattr(value, "asked", (Asked(),))[0]
            inside = [condition for _, condition in asked.inside]
            if names_outer([value.where, *value.annotations.values(), *inside]):
                return True
    return False


def separated(
    model: type[DynamoModel], conditions: Sequence[object], *, negate: bool
) -> tuple[list[object], list[object]]:
    """Return the conditions for Django's query, and the conditions to read first.

    Raises ``NotSupported`` for a condition that cannot be either.
    """
    own = [each for each in conditions if any(map(_is_computed, leaves_of((each,))))]
    others = [each for each in conditions if not any(each is one for one in own)]
    if filters.leads_on(model, own) or (negate and own and filters.leads_on(model, others)):
        # Related objects are joined, as in SQL.
        if any(filters.leads_to_several(model, each) for each in conditions) and (negate or _has_negation(own)):
            raise NotSupported(
                f"{model._meta.label}: exclude() and ~Q() do not support OuterRef() over relations to several objects. "
                "Write ~Exists(...) of the related model."
            )
        return [*own, *others], []
    if negate and own and others:
        return [*own, *others], []
    return own, others


def _has_negation(conditions: Iterable[Any]) -> bool:
    return any(isinstance(each, models.Q) and (each.negated or _has_negation(each.children)) for each in conditions)


def _is_computed(condition: Any) -> bool:
    """Return whether a condition is an expression, or names an outer queryset."""
    return not isinstance(condition, tuple) or names_outer([condition[1]]) or isinstance(condition[1], Subquery)


def annotate(
    queryset: Q,
    args: Sequence[object],
    kwargs: Mapping[str, object],
    *,
    select: bool,
    refusal: NotSupported | None = None,
) -> Q:
    """Return the queryset with annotations; ``select`` is false for ``alias()``, which does not return them.

    Raises ``refusal`` for expressions that cannot be computed in memory.
    """
    computable.check_depth((*args, *kwargs.values()))
    prepare((*args, *kwargs.values()))
    before: Any = entered(queryset)
    with django_errors_translated(queryset.model, *args, *kwargs.values()):
        clone: Q = before._natively("annotate" if select else "alias", *args, **kwargs)
    _checked(clone, refusal)
    _with_plain_columns(clone, before)
    return clone


def _with_plain_columns(queryset: Any, before: Any) -> None:
    """Give the columns of new annotations the types of Django's own fields, which functions compare."""
    annotations = queryset.query.annotations
    for alias, expression in annotations.items():
        if alias not in before.query.annotations and not isinstance(expression, Col):
            annotations[alias] = with_plain_columns(expression)


def _checked(queryset: Any, refusal: NotSupported | None) -> None:
    try:
        check(queryset)
    except NotSupported as error:
        raise (refusal or error) from None


def with_columns(
    queryset: Q, fields: Sequence[object], expressions: Mapping[str, object], *, flat: bool | None, named: bool
) -> Q:
    """Return ``values()``, or ``values_list()`` if ``flat`` is not ``None``."""
    computable.check_depth((*fields, *expressions.values()))
    prepare((*fields, *expressions.values()))
    before: Any = entered(queryset)
    with django_errors_translated(queryset.model, *fields, *expressions.values()):
        found = before._natively("values_list", *fields, flat=flat, named=named) if flat is not None else None
        if found is None:
            found = before._natively("values", *fields, **expressions)
    _with_plain_columns(found, before)
    found._asked = replace(found._asked, row_shape=_SHAPES[found._iterable_class])
    found._iterable_class = found._iterables[True]
    check(found)
    result: Q = found
    return result


def check(queryset: Any) -> None:
    """Raise ``NotSupported`` for expressions that are SQL, and for columns of other models."""
    query, may_join = queryset.query, queryset._asked.in_memory is not None
    computable.check(queryset.model, [*query.annotations.values(), *query.select, query.where], may_join=may_join)
    if may_join:
        joining.check(query)


async def aggregate(
    queryset: Any, expressions: Mapping[str, object], refusal: NotSupported | None = None
) -> dict[str, Any]:
    """Return the results of aggregates by alias; raises ``refusal`` if they cannot be computed in memory.

    An aggregate of related objects reads them, as ``annotate()`` does; not after results that are groups or a slice.
    """
    computable.check_depth(expressions.values())
    prepare(expressions.values())
    found: Any = entered(queryset)
    query: Any = found.query.chain()
    resolved: dict[str, Any] = {}
    with django_errors_translated(queryset.model, *expressions.values()):
        for alias, expression in expressions.items():
            query.check_alias(alias)
            given: Any = expression
            each = given.resolve_expression(query, allow_joins=True, reuse=None, summarize=True)
            if not each.contains_aggregate:
                raise TypeError(f"{alias} is not an aggregate expression")
            query.append_annotation_mask([alias])
            query.annotations[alias] = resolved[alias] = with_plain_columns(each)
    is_joined = joining.joins_of(query) != joining.joins_of(found.query)
    reads_others = any(computable.reads_others(query, each) for each in resolved.values())
    if reads_others and (query.group_by or query.is_sliced or query.distinct):
        raise refusal or NotSupported(
            f"{queryset.model._meta.label}: aggregate({', '.join(expressions)}) cannot read related objects of "
            f"groups, a slice or distinct rows. Annotate with these values first, or {COMPUTE_IN_PYTHON}."
        )
    probe = found._chain()
    probe.query = query
    _checked(probe, refusal)
    if is_joined:
        # The rows have the joins of the aggregates, without the values.
        query.annotations = dict(found.query.annotations)
        query.set_annotation_mask(found.query.annotation_select_mask)
        found = probe
    if (query.distinct or isinstance(query.group_by, tuple)) and found._asked.row_shape is not None:
        found = _with_columns_of(found, resolved.values())
    return await interpreter.aggregate(await found._state(), resolved)


def _with_columns_of(queryset: Any, aggregates: Iterable[Any]) -> Any:
    """Return groups or distinct rows with the columns of aggregates, which Django adds before it compares rows."""
    clone = queryset._chain()
    query = clone.query
    selected = set(query.select)
    for column in dict.fromkeys(each for aggregate in aggregates for each in columns_beside(aggregate)):
        if column not in selected:
            query.add_annotation(column, f"__col{len(query.annotations)}", select=True)
            query.group_by = (*query.group_by, column) if isinstance(query.group_by, tuple) else query.group_by
    return clone


def names_annotations(annotations: Mapping[str, object], values: Iterable[object]) -> bool:
    """Return whether expressions name annotations."""
    names = {str(each.name).partition("__")[0] for each in within(values) if isinstance(each, models.F)}  # type: ignore[attr-defined]  # the stubs lack it
    return not names.isdisjoint(annotations)


async def update(
    queryset: Any, given: Mapping[str, object], pending: Block | None, refusal: NotSupported | None = None
) -> int:
    """Return the number of updated objects: one read of all, then one conditional update for each, sequentially.

    An object that changes in between is read and computed again, up to ``ATTEMPTS`` times; then it raises
    ``StaleObject``. Raises ``refusal`` for values that cannot be computed in memory.
    """
    aliases = {f"computed_{name}": each for name, each in given.items() if hasattr(each, "resolve_expression")}
    found = annotate(queryset, (), aliases, select=True, refusal=refusal)
    plain = {name: each for name, each in given.items() if f"computed_{name}" not in aliases}
    try:
        return await _updated(found, plain, tuple(aliases), pending, ATTEMPTS)
    except InvalidValue:
        model, query = queryset.model, queryset.query
        hidden = [name for name in given if f"computed_{name}" in aliases and names_secret(model, query, given[name])]
        if not hidden:
            raise
    # Raised here, the error does not carry the one that shows the value.
    raise InvalidValue(
        f"{model._meta.label}: update() cannot store the value of a secret in {', '.join(hidden)}, which is not shown. "
        "Objects before this one were updated. Compute a value that the attribute accepts."
    )


async def _updated(
    found: Any, plain: Mapping[str, object], aliases: tuple[str, ...], pending: Block | None, attempts: int
) -> int:
    state = await found._state()
    if state.is_empty:
        return 0
    if state.interpretation.is_grouped or state.interpretation.shape is not None:
        raise NotSupported("Cannot update rows of values(). Nothing was written. Call update() on the objects.")
    written = 0
    for scope in await interpreter.held(state, "update() with expressions"):
        obj = objects.instance(state, scope.row[scope.statement.base] or {})
        target = found.__class__(model=found.model, using=found.db)
        target._asked = replace(Asked(), visibility=state.asked.visibility)
        values = {**plain, **{alias.removeprefix("computed_"): scope.known[alias] for alias in aliases}}
        changed = await target.filter(_unchanged(state, scope, obj))._updated(values, pending)
        if not changed and not attempts:
            raise StaleObject(
                f"Cannot update {secrecy.named(type(obj), obj.pk)}: other processes changed it {ATTEMPTS} times while "
                f"the app computed its new values. The app wrote {written} objects, but not this object. Call "
                "update() again."
            )
        if not changed:
            changed = await _updated(found.filter(pk=obj.pk), plain, aliases, pending, attempts - 1)
        written += changed
    return written


def _unchanged(state: QueryState, scope: Scope, obj: Model) -> models.Q:
    """Return the condition that the object's own values used to compute the write are unchanged."""
    query = state.interpretation.query
    base = query.get_initial_alias()
    columns = {
        each.target.attname: each
        for part in (*query.annotations.values(), query.where)
        for each in columns_in(part)
        if each.alias == base
    }
    condition = models.Q(pk=obj.pk)
    for name, column in columns.items():
        if name in ("pk", obj._meta.pk.attname, *state.layout.identity):
            continue
        value = value_of(scope, column)
        condition &= models.Q(**({f"{name}__isnull": True} if value is None else {name: value}))
    return condition
