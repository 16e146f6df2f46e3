"""The state of a queryset: the query as one value, and everything that its evaluation needs.

Django's own ``sql.Query`` holds the rest and is never compiled to SQL. Django changes it in place, so ``state_of``
reads it again for each evaluation; what comes after that is given the value (``results.state``) and no queryset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, cast

from django.db import connections, models
from django.db.models.query import ModelIterable
from django.db.models.sql import Query
from msgspec.structs import replace

from dynamo_single.exceptions import DynamoSingleError, NotSupported
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.conditions.terms import Condition, Nothing
from dynamo_single.orm.items import refresh
from dynamo_single.orm.plan.plan import DEFAULT_BYTES, Visibility
from dynamo_single.orm.query import subqueries
from dynamo_single.orm.results.state import (
    DEFAULT_LIMIT,
    NO_RELATED_READS,
    Asked,
    QueryState,
    RelatedReads,
    Window,
)
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.fields.fetching import FetchMode, checked_mode, mode_to_set
from dynamo_single.orm.schema.types import DynamoModel, M
from dynamo_single.orm.where import lookups
from dynamo_single.orm.where.arguments import check_nesting, sides_of
from dynamo_single.table.flow import run

if TYPE_CHECKING:
    from dynamo_single.orm.expressions import ordering as expression_order
    from dynamo_single.orm.expressions import separating
    from dynamo_single.orm.query import interpreted, set_operations
    from dynamo_single.orm.relations import steps
    from dynamo_single.orm.results import objects, prefetch
    from dynamo_single.orm.results.computation import Computation
    from dynamo_single.orm.where import secrets, tree
    from dynamo_single.orm.write.batch_transactions import Progress
else:
    interpreted = LazyModule("dynamo_single.orm.query.interpreted")
    set_operations = LazyModule("dynamo_single.orm.query.set_operations")
    objects = LazyModule("dynamo_single.orm.results.objects")
    prefetch = LazyModule("dynamo_single.orm.results.prefetch")
    steps = LazyModule("dynamo_single.orm.relations.steps")
    expression_order = LazyModule("dynamo_single.orm.expressions.ordering")
    separating = LazyModule("dynamo_single.orm.expressions.separating")
    secrets = LazyModule("dynamo_single.orm.where.secrets")
    tree = LazyModule("dynamo_single.orm.where.tree")


class InKeyOrder(str):
    """An alias for ``using()``, which replaces an order by ``pk`` alone with the order of the key."""

    def queryset_of(self, queryset: Any) -> Any:
        """The queryset that ``using()`` gives for this alias."""
        return queryset._asking(replace(queryset._asked, in_key_order=True))


class StatefulQuerySet(models.QuerySet[M]):
    """A queryset that stores options beyond Django's own query, and the methods that set them."""

    _asked = Asked()
    #: Django's iterables of objects and of rows.
    _iterables: tuple[type[Any], type[Any]]
    #: The progress callback of bulk operations, which is not part of the query.
    _progress: Progress | None = None
    #: How many objects a bulk operation writes in one transaction at most; ``None`` for each by itself.
    _together: int | None = None
    #: The objects for which a missing value is loaded on access; Django's own name since 6.1.
    _fetch_mode: FetchMode
    # Private to Django.
    _chain: Callable[[], Self]
    _query: Any
    _deferred_filter: Any
    _known_related_objects: dict[Any, dict[Any, models.Model]]
    _prefetch_related_lookups: tuple[str | models.Prefetch[Any], ...]

    @property
    def query(self) -> Query:
        """Django's query; it includes the other options, so that an unpickled query returns the same rows."""
        found: Any = models.QuerySet.query.fget(self)  # type: ignore[attr-defined]  # a property at run time
        found.asked = self._asked, self._iterable_class
        return cast(Query, found)

    @query.setter
    def query(self, value: Query) -> None:
        models.QuerySet.query.fset(self, value)  # type: ignore[attr-defined]  # as above
        self._asked, self._iterable_class = getattr(value, "asked", (self._asked, self._iterable_class))

    def using_index(self, name: str) -> Self:
        """Use this key only, by its name in ``class Keys`` or its index's name; ``"primary"`` is the table."""
        return self._asking(replace(self._asked, using_index=name))

    def without_index(self, *names: str) -> Self:
        """Leave these keys out, by their names in ``class Keys`` or their indexes' names; the others count."""
        return self._asking(replace(self._asked, without=(*self._asked.without, *names)))

    def using(self, alias: str | None) -> Self:
        """Accepted for Django's sake, for the aliases of ``DATABASES``; ``Meta.table`` chooses the table."""
        if alias is not None and alias not in connections:
            raise NotSupported(
                f"using({alias!r}): there is no such database. Omit using(): {self.model._meta.label}.Meta.table "
                "chooses "
                "the table, by a name in DYNAMO_SINGLE."
            )
        found = super().using(alias)
        return cast(Self, alias.queryset_of(found)) if isinstance(alias, InKeyOrder) else found

    def consistent(self) -> Self:
        """Read strongly consistent, at twice the capacity; only the table can, so indexes are refused."""
        return self._asking(replace(self._asked, consistent=True))

    def allow_scan(self) -> Self:
        """Allow reading the whole table, including every model's items, if no key supports the query."""
        return self._asking(replace(self._asked, allow_scan=True))

    def allow_reads(self, number: int) -> Self:
        """Allow ``number`` discarded items instead of ``MAX_READS``, without a warning.

        Items that a filter discards are read and charged. More raise ``TooManyReads``.
        """
        number = objects.checked_number(number, "allow_reads() takes the maximum number of discarded items")
        return self._asking(replace(self._asked, allow_reads=number))

    def allow_in_memory(self, limit: int = DEFAULT_LIMIT, *, max_bytes: int = DEFAULT_BYTES) -> Self:
        """Allow up to ``limit`` items in memory, for computations and orders that DynamoDB does not support.

        All steps of a query share both limits: its matches, the keys of related objects, the objects of joins and
        subqueries, the querysets in its conditions, the objects that an order or ``values()`` refers to, and those of
        each ``Prefetch`` whose queryset has no limit of its own. ``max_bytes`` bounds the sizes of the items together,
        as DynamoDB counts them: 32 MB by default. In Python they take several times as much. More raise
        ``TooManyMatches``; results are never cut off. Queries that a key supports still use it.
        """
        limit = objects.checked_number(limit, "allow_in_memory(limit=...) takes the maximum number of matches")
        max_bytes = objects.checked_number(max_bytes, "allow_in_memory(max_bytes=...) takes the most bytes of items")
        return self._asking(replace(self._asked, in_memory=limit, in_memory_bytes=max_bytes))

    def fetch_mode(self, fetch_mode: FetchMode) -> Self:
        """For whom a reference, or an attribute that ``only()`` left out, is read once it is touched.

        ``FETCH_ONE`` loads it for that object. ``FETCH_PEERS`` loads it for all objects of this result without it, by a
        BatchGetItem for each hundred. ``FETCH_RAISE`` raises ``FetchBlocked``. ``DYNAMO_SINGLE_FETCH_MODE`` sets the
        default.
        """
        clone = self._chain()
        clone._fetch_mode = checked_mode(fetch_mode)
        return clone

    def with_visibility(self, visibility: Visibility) -> Self:
        """``live`` objects, ``deleted`` ones, or ``all``."""
        return self._asking(replace(self._asked, visibility=visibility))

    def without_secrets(self) -> Self:
        """Reject each later condition, order, aggregate and column that names a secret, without a request.

        For querysets that take names from an address. ``DisallowedLookup``, a ``FieldError``, names the attribute, and
        Django responds to it with status 400. Conditions and orders from before the call stay. Objects are read whole.
        """
        return self._asking(replace(self._asked, no_secrets=True))

    def _refuse_secrets(self, named: Iterable[object]) -> None:
        """Raise ``DisallowedLookup`` if names, conditions or expressions name a secret that must not be named here."""
        if self._asked.no_secrets:
            # Django's property would add a manager's own condition first.
            secrets.check(self.model, self._query, named)

    @property
    def _computation(self) -> Computation | None:
        return self._asked.computation_for(self.model)

    def _natively(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Call Django's own method, which a subclass here overrides."""
        return getattr(models.QuerySet, name)(self, *args, **kwargs)

    def _asking(self, asked: Asked) -> Self:
        clone = self._chain()
        clone._asked = asked
        return clone

    def _clone(self) -> Self:
        clone: Self = super()._clone()  # type: ignore[misc]  # Django's, private
        clone._asked = self._asked
        clone._progress = self._progress
        clone._together = self._together
        clone._fetch_mode = self._fetch_mode
        return clone

    def _merge_sanity_check(self, other: Any) -> None:
        if self._asked != other._asked or self._asked.computation is not None:
            raise NotSupported(
                "Cannot combine querysets of different kinds (live and deleted, values and objects, with and "
                "without allow_in_memory(), or one with a queryset after __in). Call the same methods on "
                "both, or combine them in Python: [*queryset, *other]."
            )
        check_nesting((self.query.where, other.query.where))

    def _refuse_combined(self, operation_name: str) -> None:
        """Raise ``NotSupported`` for a method that would change the rows of a set operation."""
        combinator = self.query.combinator
        if combinator:
            raise NotSupported(
                f"Calling QuerySet.{operation_name}() after {combinator}() is not supported. Call it on each of the "
                "querysets, or compute in Python: [... for each in queryset]."
            )

    def _is_plain(self) -> bool:
        """Return whether this requests all live objects, whole, like an unchanged default manager."""
        query: Any = self.query
        special = (query.where.children, query.is_sliced, query.select_related, self._prefetch_related_lookups)
        return self._asked == Asked() and not query.deferred_loading[0] and not any(special)

    def _gives_all(self, objs: Sequence[models.Model]) -> bool:
        """Return whether a related manager's queryset with one condition returns these loaded objects."""
        asked = replace(self._asked, visibility=Asked().visibility)
        if asked != Asked() or self.query.is_sliced or len(self.query.where.children) > 1:
            return False
        states = [getattr(obj, registry.DELETED_AT, None) is None for obj in objs]
        return self._asked.visibility == "all" or states == [self._asked.visibility == "live"] * len(states)

    def _leads_on(self, conditions: Sequence[object]) -> bool:
        """Return whether a condition names an attribute of a related object."""
        raise NotImplementedError

    async def _narrowed_for(self, objects: Sequence[models.Model]) -> Self:
        """Return the queryset that has these of its objects, without conditions on related objects.

        Sends a BatchGetItem for each hundred references, and for each object a Query in a relation to several.
        """
        read_all, read = subqueries.with_subquery_values, subqueries.subquery_values
        return cast(Self, await steps.narrowed(self, read_all, read, objects))

    async def _narrowed(self) -> Self:
        """Return the queryset that replaces this one after that read."""
        if not self._asked.inside:
            return self
        if self._asked.in_memory is not None or self._leads_on([condition for _, condition in self._asked.inside]):
            read_all, read = subqueries.with_subquery_values, subqueries.subquery_values
            return cast(Self, await steps.narrowed(self, read_all, read))
        narrowed = self._asking(replace(self._asked, inside=()))
        for negated, condition in self._asked.inside:
            found = await subqueries.with_subquery_values(condition)
            narrowed.query.add_q(~found if negated else found)
        return narrowed


def state_of(queryset: StatefulQuerySet[Any]) -> QueryState:
    """Return the current query; raise ``NotSupported`` by name for conditions that no key can support."""
    is_empty = queryset.query.is_empty()
    if not is_empty and queryset._asked.inside:
        queryset = run(queryset._narrowed())
    model, asked, query = queryset.model, queryset._asked, queryset.query
    if query.combinator:
        return set_operations.state_of(queryset)
    known = asked.computation is not None or asked.interpreted
    if query.extra or query.distinct_fields or (query.annotations and not known):
        raise NotSupported(
            "DynamoDB cannot evaluate annotations and extra() in queryset.query. Use the methods of the queryset."
        )
    order_by = tuple(query.order_by)
    ordering = order_by or (tuple(model._meta.ordering or ()) if query.default_ordering else ())
    interpretation = None
    if asked.interpreted:
        where, interpretation = separating.interpretation_of(model, query, asked.row_shape)
    else:
        try:
            where = _where(model, query, in_python=asked.cached_lists is not None)
        except NotSupported as refusal:
            if asked.cached_lists is not None:
                raise
            if asked.in_memory is None:
                # A slice bounds the reading of subqueries as it bounds that of related objects.
                if query.high_mark is None or not subqueries.has_expression(sides_of(query.where)):
                    raise
                queryset = queryset._asking(replace(asked, in_memory=DEFAULT_LIMIT))
            return state_of(interpreted.instead(queryset, refusal))
        if asked.in_memory is not None and not _is_by_attributes(model, ordering):
            return state_of(interpreted.entered(queryset))
    return QueryState(
        model=model,
        asked=asked,
        where=where,
        order_by=order_by,
        ordering=() if asked.in_key_order and ordering == (model._meta.pk.name,) else ordering,
        reversed=not query.standard_ordering,
        window=Window.between(query.low_mark, query.high_mark),
        is_empty=is_empty,
        loading=query.deferred_loading,
        related_reads=related_reads_of(queryset),
        # Rows do not hold objects.
        known_related=queryset._known_related_objects if asked.columns is None else {},
        interpretation=interpretation,
    )


def is_by_names(ordering: Iterable[object]) -> bool:
    """Return whether an order is by names of attributes, rather than by expressions or random."""
    return all(
        name != "?" if isinstance(name, str) else hasattr(getattr(name, "expression", name), "name")
        for name in ordering
    )


def _is_by_attributes(model: type[DynamoModel], ordering: Iterable[Any]) -> bool:
    """Return whether an order is by attributes of the objects, or of those that they refer to."""
    own = {name for field in model._meta.concrete_fields for name in (field.name, field.attname)}
    others = [name for name in ordering if not isinstance(name, str) or name.lstrip("-+") not in own]
    return not others or (is_by_names(others) and not expression_order.are_joined(model, others))


def query_identity(queryset: StatefulQuerySet[Any]) -> object:
    """Return a value that is equal for two querysets with the same objects, without a request.

    Raises ``NotSupported`` as ``state_of()`` does.
    """
    inside = queryset._asked.inside
    return state_of(queryset._asking(replace(queryset._asked, inside=()))), inside


def _where(model: type[DynamoModel], query: Query, *, in_python: bool) -> Condition:
    try:
        return lookups.with_canonical_equality(model, tree.read_where(model, query.where, in_python=in_python))
    except DynamoSingleError:
        if query.is_empty():
            return Nothing()  # as in Django, an unsupported condition is harmless in an empty query
        raise


def related_reads_of(queryset: StatefulQuerySet[DynamoModel]) -> RelatedReads:
    """Return the related objects to read with a queryset's objects; rows have none."""
    wanted, prefetched = queryset.query.select_related, queryset._prefetch_related_lookups
    asked = queryset._asked
    in_memory = None if asked.in_memory is None or asked.steps is not None else (asked.in_memory, asked.in_memory_bytes)
    mode = mode_to_set(queryset._fetch_mode) if issubclass(queryset._iterable_class, ModelIterable) else None
    named: tuple[str, ...] = ()
    implied: tuple[str, ...] = ()
    if isinstance(wanted, dict) and asked.columns is None:
        named = tuple("__".join(path) for path in _paths(wanted))
    elif wanted and asked.columns is None:
        implied = _implied_references(queryset.model, queryset.query)
    elif not prefetched and not mode:
        return NO_RELATED_READS
    return RelatedReads(named, implied, prefetched, mode, in_memory)


def _implied_references(model: type[DynamoModel], query: Query) -> tuple[str, ...]:
    """Return the references of ``select_related()`` without names: the required and loaded ones."""
    read = refresh.attributes_to_load(model, query.deferred_loading)
    kept = None if read is None else {*read, *registry.layout_of(model).identity}
    references = (field for field in model._meta.concrete_fields if field.is_relation and not field.null)
    return tuple(field.name for field in references if kept is None or field.attname in kept)


def _paths(wanted: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, branches in wanted.items():
        yield (name,)
        yield from ((name, *path) for path in _paths(branches))
