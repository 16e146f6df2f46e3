"""The queryset: Django's, with a plan of DynamoDB requests instead of SQL.

This module has the public methods. ``base`` contains their implementation; a queryset does not send a request until it
is evaluated.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar, cast

from django.db import models
from django.db.models.sql.where import WhereNode
from msgspec.structs import replace

from dynamo_single.exceptions import NotSupported
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.items import refresh
from dynamo_single.orm.query import get
from dynamo_single.orm.query.async_methods import AsyncQuerySet
from dynamo_single.orm.query.base import ObjectIterable, RowIterable
from dynamo_single.orm.query.state import is_by_names, state_of
from dynamo_single.orm.requests.compiler import compile_plan
from dynamo_single.orm.schema import registry, secrecy
from dynamo_single.orm.schema.keys.secret_values import MASK
from dynamo_single.orm.schema.keys.values import shown
from dynamo_single.orm.schema.types import DynamoModel, M
from dynamo_single.orm.where.arguments import django_errors_translated, identity_parts
from dynamo_single.orm.where.lookups import membership_values
from dynamo_single.table.flow import run

if TYPE_CHECKING:
    from dynamo_single.orm.expressions import interpreter
    from dynamo_single.orm.query import annotate, explain, interpreted, set_operations
    from dynamo_single.orm.requests import explain as plan_explanation
    from dynamo_single.orm.results import columns as row_columns
    from dynamo_single.orm.results import computation, objects, pages, related, rows
    from dynamo_single.orm.results.columns import Columns, Shape
    from dynamo_single.orm.where import secrets
else:
    annotate = LazyModule("dynamo_single.orm.query.annotate")
    computation = LazyModule("dynamo_single.orm.results.computation")
    explain = LazyModule("dynamo_single.orm.query.explain")
    objects = LazyModule("dynamo_single.orm.results.objects")
    plan_explanation = LazyModule("dynamo_single.orm.requests.explain")
    interpreted = LazyModule("dynamo_single.orm.query.interpreted")
    interpreter = LazyModule("dynamo_single.orm.expressions.interpreter")
    related = LazyModule("dynamo_single.orm.results.related")
    secrets = LazyModule("dynamo_single.orm.where.secrets")
    set_operations = LazyModule("dynamo_single.orm.query.set_operations")
    row_columns = LazyModule("dynamo_single.orm.results.columns")
    pages = LazyModule("dynamo_single.orm.results.pages")
    rows = LazyModule("dynamo_single.orm.results.rows")


# The public methods of Django's QuerySet and Manager that have no answer here, and what to do instead.
#
# Each becomes a method that raises ``NotSupported``, so that none of them can reach Django's SQL compiler by
# inheritance. A test compares this table and our own methods with Django's, by introspection.

C = TypeVar("C", bound=type)

#: Method name: the reason and the closest alternative.
REFUSED = {
    "extra": "DynamoDB has no SQL. Use filter() and order_by(), or compute in Python: [... for each in queryset]",
    "raw": "DynamoDB has no SQL. Use filter(), or PynamoDB's Model.query(), which takes keys and conditions",
    "select_for_update": "DynamoDB has no locks. Use save(condition=Q(...)), which writes only if no other process has "
    "changed the value, or a VersionAttribute, with which save() raises StaleObject if another process has changed the "
    "object",
}


def refusing(name: str) -> Callable[..., object]:
    """Return a method that raises ``NotSupported`` with the reason from the table."""

    def method(self: object, *args: object, **kwargs: object) -> NoReturn:
        raise NotSupported(f"{name}() is not supported: {REFUSED[name]}.")

    method.__name__ = name
    method.__doc__ = "Refused by name; see ``REFUSED``."
    return method


def refuse_all(cls: C) -> C:
    """Class decorator: put a refusing method on the class for every row of the table."""
    for name in REFUSED:
        setattr(cls, name, refusing(name))
    return cls


T = TypeVar("T")


@refuse_all
class QuerySet(AsyncQuerySet[M]):
    """A lazy description of what to read; the same methods as Django's, each exact or refused by name.

    ``explain()`` lists the requests of a queryset. A query that no declared key supports raises ``NoAccessPattern``
    unless ``allow_scan()`` was called.
    """

    if TYPE_CHECKING:
        # The manager has every method of the queryset, including custom ones. No type can express this for any
        # queryset, so for a type checker it is the queryset.
        @classmethod
        def as_manager(cls) -> Self: ...  # type: ignore[override]  # a manager, to Django's stubs

    def explain(self, *, format: str | None = None, execute: bool = False, **options: object) -> str:
        """Return the requests, the reasons for them, and the items they discard, without sending a request.

        Only the steps of a query over relations, and querysets after ``__in``, are read: the requests that follow
        depend on their keys.

        With ``execute`` it evaluates the queryset and discards the results: it reports each request with its items and
        capacity units, including those of ``select_related`` and ``prefetch_related``.
        """
        if format is not None or options:
            raise NotSupported("explain() does not accept a format or options other than execute=True. Call explain().")
        if self.query.combinator:
            return set_operations.explain(self, execute=execute)
        state = state_of(self)
        plan = rows.plan(state) if state.interpretation is None else interpreter.plan(state)
        members = related.members_of(state, plan)
        related_reads = tuple(explain.announce_related(state, plan, members))
        if members:
            plan = related.collection_plan(plan, members)
            afterwards = [*related_reads]
        else:
            computed = computation.explain_requests(state.asked.computation)
            steps = explain.computed_steps(state)
            afterwards = [*explain.deletion_lines(self.model, plan), *computed, *steps, *related_reads]
        if execute:
            afterwards += explain.execute(self._iterable_class(self), state.related_reads)
        requests = compile_plan(plan, table_name=state.table.name, limit=objects.first_limit(state, plan))
        described = plan_explanation.describe(plan, requests, afterwards=afterwards)
        return "\n".join((*explain.steps_before(state), described))

    def complex_filter(self, filter_obj: Any) -> Self:
        """``filter()`` for a ``Q`` or a dict."""
        return self.filter(filter_obj) if isinstance(filter_obj, models.Q) else self.filter(**filter_obj)

    def order_by(self, *field_names: Any) -> Self:
        """Order by the key that serves the query, or its reverse; reject any other order."""
        self._refuse_secrets(field_names)
        with django_errors_translated(self.model, *field_names):
            ordered = super().order_by(*field_names)
        return ordered if is_by_names(field_names) else interpreted.ordered(ordered, field_names)

    def count(self) -> int:
        """Count without reading: Query with Select=COUNT, one request for each megabyte that is passed over."""
        return run(self._counted())

    def exists(self) -> bool:
        """Return whether there is an object: read until the first match."""
        return run(self._found_any())

    def _identifies_one(self, kwargs: Mapping[str, object]) -> bool:
        return get.is_key_filter(self, kwargs)

    def get(self, *args: object, **kwargs: object) -> M:
        """Return the single object: one GetItem for a complete primary key, two for a unique value, else a Query for
        two matches."""
        key = get.key_of_one(self, kwargs) if kwargs and not args else None
        found = list(self._two(args, kwargs)) if key is None else run(get.one(self, key))
        return self._only(found, args, kwargs)

    def _two(self, args: Any, kwargs: Any) -> Self:
        clone = self._chain() if not args and not kwargs else self.filter(*args, **kwargs)
        clone.query.clear_ordering(force=False)
        if not clone.query.is_sliced:
            clone.query.set_limits(high=2)
        return clone

    def _only(self, found: list[M], args: object, kwargs: Any) -> M:
        if len(found) == 1:
            return found[0]
        label = self.model._meta.label
        if not found:
            raise self.model.DoesNotExist(
                f"No {label} matches {_shown(self, args, kwargs)}.{identity_parts(self.model, kwargs)}"
            )
        raise self.model.MultipleObjectsReturned(f"More than one {label} matches {_shown(self, args, kwargs)}.")

    def in_bulk(self, id_list: object = None, *, field_name: str = "pk") -> dict[Any, M]:
        """The objects by ``pk``: one BatchGetItem for each hundred, in their order; by a unique attribute two.

        It accepts 10,000 keys, like ``__in``. With an SQL database Django splits them by that database's limit.
        """
        self._check_bulk(field_name)
        if self._asked.columns is not None:
            return self._rows_in_bulk(self._asked.columns, id_list, field_name)
        if id_list is not None:
            id_list = membership_values(field_name, id_list)
            keys = get.keys_of_several(self, id_list) if field_name == "pk" else None
            if keys is not None:
                return run(get.by_pk(self, keys))
        return models.QuerySet.in_bulk(self._in_any_order(id_list), id_list, field_name=field_name)

    def _rows_in_bulk(self, columns: Columns, id_list: Any, field_name: str) -> dict[Any, Any]:
        """Return rows of ``values()`` by a unique attribute, which is read with them."""
        plain = self._asking(replace(self._asked, columns=None))
        plain._iterable_class = ObjectIterable
        # Django's checks of slices and of the attribute.
        models.QuerySet.in_bulk(plain, (), field_name=field_name)
        if id_list is not None:
            plain = plain._in_any_order(id_list).filter(**{f"{field_name}__in": id_list})
        names = columns.names
        at = names.index(field_name) if field_name in names else len(names)
        rows = plain.values_list(*names, *(() if at < len(names) else (field_name,)))
        return {row[at]: columns.shape(names, row[: len(names)]) for row in rows}

    def _in_any_order(self, id_list: object) -> Self:
        # The order of Meta.ordering would keep the keys from being read at once.
        query: Any = self.query
        return self if id_list is None or query.is_sliced or query.order_by else self.order_by()

    def first(self) -> M | None:
        """Return the first object in the requested order, or else in the order of the key that serves the query."""
        return next(iter(self[:1]), None)

    def last(self) -> M | None:
        """The first object in the opposite order."""
        return next(iter(self.reverse()[:1]), None)

    @property
    def ordered(self) -> bool:
        """Always: items come in the order of the key that they are read by, so pages do not shuffle."""
        return True

    @property
    def totally_ordered(self) -> bool:
        """Always true, because a key's order is total. Django reads it since 6.1, and would order by ``pk``
        otherwise."""
        return True

    def reverse(self) -> Self:
        """The opposite order; without an order, the chosen key's read backwards."""
        if self.query.is_sliced:
            raise TypeError("Cannot reverse a query once a slice has been taken.")
        clone = self._chain()
        clone.query.standard_ordering = not clone.query.standard_ordering
        return clone

    def earliest(self, *fields: object) -> M:
        """The object with the least value of the fields, in the order that a key serves."""
        return self._one_of(self._outermost(fields, first=True).first())

    def latest(self, *fields: object) -> M:
        """The object with the greatest value of the fields, in the order that a key serves."""
        return self._one_of(self._outermost(fields, first=False).first())

    def _outermost(self, fields: Any, *, first: bool) -> Self:
        """The queryset whose first object is meant."""
        names = fields or self.model._meta.get_latest_by
        if not names:
            raise ValueError("earliest() and latest() require either fields or Meta.get_latest_by.")
        ordered = self.order_by(*((names,) if isinstance(names, str) else names))
        return ordered if first else ordered.reverse()

    def _one_of(self, found: M | None) -> M:
        if found is None:
            raise self.model.DoesNotExist(f"No {self.model._meta.label} matches.")
        return found

    # pages

    def cursor_for(self, obj: DynamoModel, *, before: bool = False) -> str:
        """Return the cursor of the page that begins after an object, or ends ``before`` it, without a request.

        The object has to be one of the queryset's, as it was read.
        """
        return pages.cursor_for(state_of(self), obj, before=before)

    # other shapes of the result

    def values(self, *fields: object, **expressions: object) -> Any:
        """Dictionaries of the named attributes, which alone are read; of all of them without names."""
        self._check_identity((*fields, *expressions))
        if self._asked.interpreted or expressions or not all(isinstance(field, str) for field in fields):
            self._refuse_secrets((*(fields or self._all_columns()), *expressions.values()))
            return interpreted.with_columns(self, fields, expressions, flat=None, named=False)
        return self._with_columns(fields, expressions, row_columns.as_dict)

    def values_list(self, *fields: object, flat: bool = False, named: bool = False) -> Any:
        """Tuples of the named attributes, which alone are read; ``named`` ones, or ``flat`` one value each."""
        if flat and named:
            raise TypeError("'flat' and 'named' can't be used together.")
        if flat and len(fields) != 1:
            raise TypeError("'flat' is not valid when values_list is called with more than one field.")
        self._check_identity(fields)
        if self._asked.interpreted or not all(isinstance(field, str) for field in fields):
            self._refuse_secrets(fields or self._all_columns())
            return interpreted.with_columns(self, fields, {}, flat=flat, named=named)
        as_named = row_columns.as_named_tuple if named else row_columns.as_tuple
        return self._with_columns(fields, {}, row_columns.as_value if flat else as_named)

    def _with_columns(self, fields: Sequence[object], expressions: Mapping[str, object], shape: Shape) -> Self:
        if self._asked.no_secrets:
            self._refuse_secrets((*(fields or self._all_columns()), *expressions.values()))
        if self._asked.computation is not None:
            return annotate.with_columns(self, self._asked.computation, fields, expressions, shape)
        clone = self._asking(replace(self._asked, columns=row_columns.columns(self.model, fields, expressions, shape)))
        clone._iterable_class = RowIterable
        return clone

    def contains(self, obj: Any) -> bool:
        """Return whether an object is among the results: ``exists()`` of its key, unless the results are loaded."""
        if self._asked.columns is not None or self._asked.row_shape is not None:
            raise TypeError("Cannot call QuerySet.contains() after .values() or .values_list().")
        return super().contains(obj)

    def _check_identity(self, fields: Sequence[object]) -> None:
        """Raise ``NotSupported`` for rows that SQL would compare instead of the objects."""
        if not self._asked.by_objects:
            return
        names = {field.name: field.attname for field in self.model._meta.concrete_fields}
        given = {names.get(str(name), str(name)) for name in fields}
        if fields and "pk" not in given and not given.issuperset(registry.layout_of(self.model).identity):
            raise NotSupported(
                f"{self._asked.by_objects} does not support values() without the primary key: SQL compares rows, "
                "and this compares objects. Name 'pk' as well, or compare in Python: [... for each in queryset]."
            )

    def _all_columns(self) -> tuple[str, ...]:
        """The names of the columns if none are given."""
        computed = self._asked.computation
        if computed is not None and computed.groups is not None:
            return computed.groups.names
        return tuple(field.attname for field in self.model._meta.concrete_fields)

    def aggregate(self, *args: object, **kwargs: object) -> dict[str, Any]:
        """``Count``, ``Min``, ``Max``, ``Sum`` and ``Avg`` of attributes, with Django's types of results.

        A single count is one Query with Select=COUNT; the minimum or maximum of the attribute that orders a key is one
        Query for one item. Everything else reads every match, and needs a slice or ``allow_in_memory()``.
        """
        self._refuse_combined("aggregate")
        return run(annotate.aggregate(self, args, kwargs))

    def annotate(self, *args: object, **kwargs: object) -> Any:  # objects get attributes that their type does not have
        """Compute the same aggregates for each object, or after ``values()`` for each group, which needs
        ``allow_in_memory()``.

        ``Count("people")`` of ``people = Children(...)`` is one Query with Select=COUNT for each object.
        """
        self._refuse_combined("annotate")
        return annotate.annotate(self, args, kwargs)

    def alias(self, *args: object, **kwargs: object) -> Any:  # as annotate()
        """Name expressions for later conditions, orders and annotations, without returning their values."""
        self._refuse_combined("alias")
        self._refuse_secrets((*args, *kwargs.values()))
        return interpreted.annotate(self, args, kwargs, select=False)

    def dates(self, field_name: str, kind: str, order: str = "ASC") -> Any:
        """The years, months, weeks or days of an attribute's values, each once; needs ``allow_in_memory()``."""
        self._refuse_combined("dates")
        return annotate.dates(self, field_name, kind, order)

    def datetimes(self, field_name: str, kind: str, order: str = "ASC", tzinfo: datetime.tzinfo | None = None) -> Any:
        """Return the same as datetimes, down to the second, in ``tzinfo`` or the current time zone.

        With ``USE_TZ = False`` they are naive in ``TIME_ZONE``, whatever ``tzinfo`` is, as in Django.
        """
        self._refuse_combined("datetimes")
        return annotate.datetimes(self, field_name, kind, order, tzinfo)

    def only(self, *fields: object) -> Self:
        """Load only the named attributes and the identity; the others are loaded on access.

        The responses become smaller, but DynamoDB charges for whole items.
        """
        self._check_loadable("only")
        names = fields if fields == (None,) else refresh.named_fields(self.model, fields, "only")
        return super().only(*names)

    def defer(self, *fields: object) -> Self:
        """Objects of which all but the named attributes are read; ``defer(None)`` takes back what was deferred."""
        self._check_loadable("defer")
        names = fields if fields == (None,) else refresh.named_fields(self.model, fields, "defer")
        return super().defer(*names)

    def _check_loadable(self, name: str) -> None:
        if self._asked.columns is not None:
            raise TypeError(f"Cannot call {name}() after .values() or .values_list()")

    def union(self, *other_qs: object, all: bool = False) -> Self:
        """Return the objects of any of the querysets, each once, like ``|``; ``order_by()`` sorts them again.

        Rows, annotated objects, objects of other models and with ``all`` also duplicates are read from each queryset,
        and are held in memory together: call ``allow_in_memory()``, or slice the result. Rows have the names of the
        first queryset.
        """
        united: Any = self
        others: list[Any] = [*other_qs]
        if self.query.is_empty():
            united, *others = [each for each in others if not each.query.is_empty()] or [self]
        if not others:
            return cast(Self, united)
        found = None if all else united._united_by_conditions(others)
        if found is None:
            found = set_operations.combined(united, others, "union", keeps_duplicates=all)
        return cast(Self, found)

    def _united_by_conditions(self, others: Sequence[Any]) -> Any:
        """Return a union that is one query for objects, or for the same columns; ``None`` if there is none."""
        for each in (self, *others):
            if getattr(each, "model", None) is not self.model or each.query.combinator:
                return None
            if each._asked.interpreted or each._asked.computation is not None:
                return None
        try:
            united = reduce(or_, others, self)
        except NotSupported:
            return None
        # Only rows without the primary key can be equal.
        united = united._chain() if self._asked.columns is None else united.distinct()
        united.query.clear_ordering(force=True)
        return united

    def intersection(self, *other_qs: object) -> Self:
        """Return the objects that all of the querysets have, as ``filter(pk__in=other)``; ``order_by()`` sorts them.

        Each of the others is read first: up to 1,000 keys, or as many as ``allow_in_memory()`` of this queryset allows.
        Rows, and annotated objects, are compared in memory, as by ``union()``.
        """
        return self._compared(other_qs, "intersection", negate=False)

    def difference(self, *other_qs: object) -> Self:
        """Return the objects that none of the others has, as ``exclude(pk__in=other)``; ``order_by()`` sorts them.

        The others are read first, as in ``intersection()``.
        """
        return self._compared(other_qs, "difference", negate=True)

    def _compared(self, others: Sequence[Any], name: str, *, negate: bool) -> Self:
        for each in (self, *others):
            if getattr(each, "model", None) is not self.model or _is_of_rows(each) or each.query.combinator:
                return set_operations.combined(self, others, name)
        if self.query.is_sliced:
            return set_operations.combined(self, others, name)
        found: Any = self._asking(replace(self._asked, by_objects=f"{name}()"))
        found.query.clear_ordering(force=True)
        for each in others:
            found._filter_or_exclude_inplace(negate, (), {"pk__in": each})
        result: Self = found
        return result

    def __or__(self, other: Any) -> Self:
        """Return the objects of both querysets; if one is a slice, or follows relations, by the keys of both."""
        if self._is_combined_by_pk(other):
            return self._combined(other, models.Q(pk__in=self) | models.Q(pk__in=other))
        if self.query.is_sliced or (hasattr(other, "query") and other.query.is_sliced):
            raise NotSupported(
                "Cannot combine a slice of rows or computed objects with another queryset. Combine the lists in "
                "Python: [*queryset, *other]."
            )
        result: Self = super().__or__(other)
        return result

    def __and__(self, other: Any) -> Self:
        """Return the objects that both querysets have; see ``|``."""
        if not self.query.is_sliced and self._is_combined_by_pk(other):
            return self._combined(other, models.Q(pk__in=self) & models.Q(pk__in=other))
        result: Self = super().__and__(other)
        return result

    def __xor__(self, other: Any) -> Self:
        """Return the objects that exactly one of two querysets has; see ``|``."""
        if self._is_combined_by_pk(other):
            ours, theirs = models.Q(pk__in=self), models.Q(pk__in=other)
            return self._combined(other, (ours & ~theirs) | (theirs & ~ours))
        result: Self = super().__xor__(other)
        return result

    def _is_combined_by_pk(self, other: Any) -> bool:
        """Return whether the objects of each queryset have to be read before they are combined."""
        if not isinstance(other, QuerySet) or other.model is not self.model:
            return False
        if self.query.combinator or other.query.combinator:
            return False
        asked = replace(self._asked, inside=())
        plain = asked == replace(other._asked, inside=()) and asked.columns is None and not asked.interpreted
        special = self._asked != other._asked or self.query.is_sliced or other.query.is_sliced
        return plain and asked.computation is None and special

    def _combined(self, other: Self, condition: models.Q) -> Self:
        """Return the objects that match a condition on both querysets, in the order of ``other``, or else of this one.

        The keys of both are read first: 1,000 of each, or as many as ``allow_in_memory()`` allows for all. More raise
        ``TooManyMatches``.
        """
        ordered = [each.query.order_by for each in (other, self) if not each.query.is_sliced]
        clone = self._asking(replace(self._asked, inside=()))
        clone.query.where = WhereNode()
        clone.query.clear_limits()
        clone.query.order_by = next(filter(None, ordered), ())
        return clone.filter(condition)

    def distinct(self, *field_names: object) -> Self:
        """Return the same objects, which are distinct already; for ``values()`` each row once, with
        ``allow_in_memory()``."""
        if field_names:
            raise NotSupported(
                "distinct() over fields is not supported. To read each value once, call "
                "allow_in_memory(limit=1000).values(...).distinct()."
            )
        self._refuse_combined("distinct")
        if self.query.is_sliced:
            raise TypeError("Cannot create distinct fields once a slice has been taken.")
        if self._asked.interpreted:
            return super().distinct()
        clone = self._asking(replace(self._asked, distinct=True))
        return clone if self._asked.computation is None else annotate.compared(clone, self._asked.computation)

    def select_related(self, *fields: Any) -> Self:
        """Read the referenced objects along: one BatchGetItem for each hundred of each reference."""
        if self._asked.columns is not None:
            raise TypeError("Cannot call select_related() after .values() or .values_list()")
        related.check_references(self.model, fields)
        clone: Self = super().select_related(*fields)
        return clone


def _is_of_rows(queryset: Any) -> bool:
    """Return whether a queryset has rows or annotations, which set operations of SQL compare."""
    asked = queryset._asked
    return bool(asked.columns is not None or asked.computation or queryset.query.annotations or asked.row_shape)


def _shown(queryset: Any, args: Any, kwargs: Any) -> str:
    model, query = queryset.model, queryset.query
    # A name that is no annotation is an attribute's, for which a first get imports nothing.
    hides = partial(secrets.names_secret, model, query) if query.annotations else partial(secrecy.lookup_hides, model)
    values = {name: MASK if hides(name) else shown(value) for name, value in kwargs.items()}
    is_hidden = any(secrets.names_secret(model, query, each) for each in args)
    given = ", ".join(
        (
            *(("a condition on a secret",) if is_hidden else map(shown, args)),
            *(f"{name}={text}" for name, text in values.items()),
        )
    )
    return given or "the query"
