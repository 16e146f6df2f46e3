"""The filters of a list: the trash, references to a bounded number of objects, and members of sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.contrib.admin import (
    AllValuesFieldListFilter,
    FieldListFilter,
    RelatedFieldListFilter,
    RelatedOnlyFieldListFilter,
    SimpleListFilter,
)
from django.db.models import Count, Q
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from dynamo_single.admin import paths
from dynamo_single.admin.lists import in_memory
from dynamo_single.admin.lists.related import RelatedValues, resolved
from dynamo_single.admin.references import in_key_order
from dynamo_single.admin.types import KeyChangeList
from dynamo_single.admin.viewing.rules import may_view, narrowed_queryset
from dynamo_single.backend.errors import is_stored_in_dynamodb
from dynamo_single.exceptions import NoAccessPattern, NotSupported, TooManyMatches, TooManyReads
from dynamo_single.orm.schema.fields.base import ReferenceField, SetField
from dynamo_single.orm.schema.types import DynamoModel, ModelField

if TYPE_CHECKING:
    from django.contrib.admin.views.main import ChangeList


class TrashFilter(SimpleListFilter):
    """Filter by live objects or by objects in the trash."""

    title = _("state")
    parameter_name = "trash"

    def lookups(self, request: HttpRequest, model_admin: object) -> list[tuple[str, Any]]:
        """Return the only state besides live objects."""
        return [("yes", _("In the trash"))]

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        """Yield the live objects, which are the default, then the trash."""
        everything, *states = super().choices(changelist)
        yield {**everything, "display": _("Live")}
        yield from states

    def get_facet_queryset(self, changelist: Any) -> dict[str, int]:
        """Count the objects in the trash: one Query with Select=COUNT."""
        listed = changelist.get_queryset(self.request, exclude_parameters=self.expected_parameters())
        return {"0__c": listed.with_visibility("deleted").count()}

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        """Return the objects of the chosen state; the trash has its own key, which is one Query."""
        return queryset.with_visibility("deleted") if self.value() else queryset


def shows_trash(request: HttpRequest) -> bool:
    """Return whether the list page shows the trash."""
    return bool(request.GET.get(TrashFilter.parameter_name))


def count_choices(spec: Any, changelist: ChangeList) -> dict[str, int]:
    """Count the rows that each choice of a ``SimpleListFilter`` leaves, one choice at a time.

    Django counts the rows of each choice with a subquery.
    """
    listed = changelist.get_queryset(spec.request, exclude_parameters=spec.expected_parameters())
    chosen = spec.used_parameters.get(spec.parameter_name)
    counts = {}
    for number, (value, _title) in enumerate(spec.lookup_choices):
        spec.used_parameters[spec.parameter_name] = value
        rows = spec.queryset(spec.request, listed)
        if rows is not None:
            counts[f"{number}__c"] = rows.count()
    spec.used_parameters[spec.parameter_name] = chosen
    return counts


def count_values(spec: Any, changelist: KeyChangeList) -> dict[str, int]:
    """Count the rows for each value of an ``AllValuesFieldListFilter``, grouped by value.

    Django builds a condition for each value, which would be evaluated for each row.
    """
    counts = _by_value(spec, changelist, spec.field_path)
    return {f"{number}__c": counts[value] for number, value in enumerate(spec.lookup_choices)}


def count_references(spec: Any, changelist: Any) -> dict[str, int]:
    """Count the rows that refer to each object, and those without a reference."""
    counts = _by_value(spec, changelist, spec.field.attname)
    found = {f"{key}__c": counts[key] for key, _title in spec.lookup_choices}
    return {**found, "__c": counts[None]} if spec.include_empty_choice else found


def _by_value(spec: FieldListFilter, changelist: KeyChangeList, name: str) -> Counter[object]:
    listed = changelist.get_queryset(spec.request, exclude_parameters=spec.expected_parameters())
    counts: Counter[Any] = Counter()
    for value, count in listed.order_by().values_list(name).annotate(rows=Count("pk")):
        for each in value if isinstance(value, set | frozenset) else (value,):
            counts[each] += count
    return counts


def facet_counter(spec: Any, model_admin: Any) -> Callable[[Any, Any], dict[str, int]] | None:
    """Return the function that counts the rows of each choice instead of Django; ``None`` if Django's way works."""
    if counts_by_subquery(spec):
        return count_choices
    if isinstance(spec, RelatedFilter):
        return None
    if paths.leads_on(model_admin.model, getattr(spec, "field_path", None) or ""):
        return count_conditions
    kinds = {AllValuesFieldListFilter: count_values, ReferencedListFilter: count_references}
    return kinds.get(type(spec)) if getattr(spec, "field_path", "") in _own_names(spec) else None


def count_conditions(spec: Any, changelist: Any) -> dict[str, int]:
    """Count the rows that meet the condition of each choice over a relation: the relation's requests for each."""
    listed = changelist.get_queryset(spec.request, exclude_parameters=spec.expected_parameters())
    counts = {}
    for name, counted in spec.get_facet_counts("pk", listed).items():
        condition = counted.filter
        if not isinstance(condition, Q):  # since Django 5.2
            (condition,) = condition.get_source_expressions()
        counts[name] = resolved(spec.request, changelist.model_admin, listed.filter(condition)).count()
    return counts


def _own_names(spec: FieldListFilter) -> set[str]:
    """Return the names of the listed model's own fields, without paths along references."""
    field: Any = getattr(spec, "field", None)
    return set() if field is None else {each.name for each in field.model._meta.concrete_fields}


def counts_by_subquery(spec: FieldListFilter) -> bool:
    """Return whether a filter counts its choices like Django's ``SimpleListFilter``."""
    own = type(spec)
    return (
        isinstance(spec, SimpleListFilter)
        and own.get_facet_queryset is SimpleListFilter.get_facet_queryset
        and own.get_facet_counts is SimpleListFilter.get_facet_counts
    )


def listed_choices(
    field: Any, request: HttpRequest, model_admin: Any, ordering: Iterable[object], limit: int
) -> list[tuple[Any, str]]:
    """Return the keys and names of up to ``limit`` objects that a reference may have and the user may see.

    Sends a Query for each megabyte. Returns an empty list if no key lists the objects, or there are more.
    """
    model = field.remote_field.model
    own = narrowed_queryset(model_admin.admin_site, request, model)
    queryset = model._default_manager.all() if own is None else own
    listed, is_listed = in_key_order(queryset.order_by(*ordering))
    if not is_listed:
        return []
    found = list(listed[: limit + 1])
    if len(found) > limit:
        return []
    seen = [each for each in found if may_view(model_admin.admin_site, request, each)]
    return [(getattr(each, field.target_field.attname), str(each)) for each in seen]


class ReferenceListFilter(RelatedFieldListFilter):
    """Filter by the objects of a reference, if a key lists them and the list's bound is not exceeded."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> list[Any]:
        """Return the objects that the user may see: one Query. There are none without a key, or past the bound."""
        ordering = self.field_admin_ordering(field, request, model_admin)
        return listed_choices(field, request, model_admin, ordering, in_memory.others_limit_of(model_admin))

    def get_facet_queryset(self, changelist: ChangeList) -> dict[str, int]:
        """Count the rows that refer to each object, and those without a reference."""
        return count_references(self, changelist)

    def has_output(self) -> bool:
        """Return whether the page shows the filter; a filter in the address applies even without choices."""
        return super().has_output() or bool(self.used_parameters)


class ReferencedListFilter(RelatedOnlyFieldListFilter):
    """Filter by the objects that rows refer to; in a list above the bound, by all objects of the reference."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> list[Any]:
        """Return Django's choices. Above the bound: the requests of ``ReferenceListFilter``."""
        try:
            return list(super().field_choices(field, request, model_admin))
        except (TooManyMatches, NoAccessPattern):
            if not _is_reference(field):
                return []
            ordering = self.field_admin_ordering(field, request, model_admin)
            return listed_choices(field, request, model_admin, ordering, in_memory.others_limit_of(model_admin))

    def has_output(self) -> bool:
        """Return whether the page shows the filter; a filter in the address applies even without choices."""
        return super().has_output() or bool(self.used_parameters)


class RelatedFilter(FieldListFilter):
    """A filter over relations. Its choices and counts come from one reading of the related objects."""

    #: What follows the path of the filter to reach the values of the choices.
    _end = ""
    request: HttpRequest
    used_parameters: Any

    def __init__(
        self, field: Any, request: HttpRequest, params: Any, model: Any, model_admin: Any, field_path: str
    ) -> None:
        self._admin = model_admin
        super().__init__(field, request, params, model, model_admin, field_path)

    @cached_property
    def related(self) -> RelatedValues | None:
        """The values of the path; ``None`` if no key lists the related objects, or there are more than the bound."""
        try:
            return RelatedValues(self.request, self._admin, f"{self.field_path}{self._end}")
        except (TooManyMatches, TooManyReads, NotSupported):
            return None

    def _counts(self, changelist: Any) -> tuple[dict[Any, int], int]:
        """Return the number of rows for each value, and the number of rows that lead to no object."""
        if self.related is None:
            return {}, 0
        listed = changelist.get_queryset(self.request, exclude_parameters=self.expected_parameters())
        rows = Counter(listed.order_by().values_list(self.related.near, flat=True))
        found = {value: sum(rows[key] for key in keys) for value, keys in self.related.by_value.items()}
        known = set().union(*self.related.by_value.values())
        return found, sum(number for key, number in rows.items() if key not in known)


class RelatedValuesListFilter(RelatedFilter, AllValuesFieldListFilter):
    """Filter by the values that an attribute of related objects has."""

    def __init__(
        self, field: Any, request: HttpRequest, params: Any, model: Any, model_admin: Any, field_path: str
    ) -> None:
        self.lookup_kwarg, self.lookup_kwarg_isnull = field_path, f"{field_path}__isnull"
        self.lookup_val = params.get(self.lookup_kwarg)
        self.lookup_val_isnull = (params.get(self.lookup_kwarg_isnull) or [None])[-1]
        self.empty_value_display = model_admin.get_empty_value_display()
        # Django's own method reads the values of all objects without a bound.
        self._admin = model_admin
        FieldListFilter.__init__(self, field, request, params, model, model_admin, field_path)

    @property
    def lookup_choices(self) -> list[Any]:  # type: ignore[override]  # an attribute in the stubs
        """The values of the related objects that the user may see."""
        values = [] if self.related is None else list(self.related.by_value)
        return sorted(values, key=lambda value: (value is None, str(value)))

    def get_facet_queryset(self, changelist: ChangeList) -> dict[str, int]:
        """Count the rows for each value."""
        counts, empty = self._counts(changelist)
        return {
            f"{number}__c": counts[value] + (empty if value is None else 0)
            for number, value in enumerate(self.lookup_choices)
        }


class RelatedObjectsListFilter(RelatedFilter, ReferenceListFilter):
    """Filter by the objects at the other end of relations, such as the members of a many-to-many relation."""

    _end = "__pk"

    def get_facet_queryset(self, changelist: ChangeList) -> dict[str, int]:
        """Count the rows that lead to each object, and those that lead to none."""
        counts, empty = self._counts(changelist)
        return {**{f"{key}__c": counts.get(key, 0) for key, _title in self.lookup_choices}, "__c": empty}


class RelatedOnlyObjectsListFilter(RelatedObjectsListFilter):
    """Filter by the objects at the other end of relations that an object leads to."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> list[Any]:
        """Return the objects that relations lead to; above the bound, all of them."""
        offered = super().field_choices(field, request, model_admin)
        if self.related is None:
            return offered
        return [(key, name) for key, name in offered if key in self.related.by_value]


def is_unread(spec: object, *, is_counted: bool) -> bool:
    """Return whether a filter over relations lacks its choices, or the counts of a list with facets."""
    is_needed = is_counted or isinstance(spec, RelatedValuesListFilter)
    return isinstance(spec, RelatedFilter) and is_needed and spec.related is None


def bounded_filters(model: type[DynamoModel], list_filter: Sequence[Any]) -> Sequence[Any]:
    """Return ``list_filter`` with our filters in the place of those of Django that read without a bound."""
    found = [_bounded(model, each) for each in paths.query_paths(model, list_filter)]
    return list_filter if found == [*list_filter] else found


def _bounded(model: type[DynamoModel], declared: Any) -> Any:
    if isinstance(declared, list | tuple):
        path, kind = declared
    else:
        path, kind = declared, None
    field = paths.field_of(model, path) if isinstance(path, str) else None
    if field is None or not (kind is None or kind in _UNBOUNDED):
        return declared
    if not paths.leads_on(model, path) and not paths.leads_on(model, f"{path}__pk"):
        return (path, ReferencedListFilter) if kind is RelatedOnlyFieldListFilter else declared
    if field.is_relation:
        is_only = kind is RelatedOnlyFieldListFilter
        return path, RelatedOnlyObjectsListFilter if is_only else RelatedObjectsListFilter
    if kind is None and not _lists_values(field):
        return declared
    return path, RelatedValuesListFilter


#: The filters of Django that read all objects for their choices.
_UNBOUNDED = (AllValuesFieldListFilter, RelatedFieldListFilter, RelatedOnlyFieldListFilter)


def _lists_values(field: Any) -> bool:
    """Return whether Django's filter for a field offers the values that objects have."""
    found: Any = next(kind for test, kind in FieldListFilter._field_list_filters if test(field))  # type: ignore[attr-defined]
    return issubclass(found, AllValuesFieldListFilter)


class MembersListFilter(FieldListFilter):
    """Filter by the members of sets of strings; other sets have no filter."""

    def __init__(
        self, field: Any, request: HttpRequest, params: Any, model: Any, model_admin: Any, field_path: str
    ) -> None:
        self.lookup_kwarg = f"{field_path}__contains"
        self.lookup_val = params.get(self.lookup_kwarg)
        self._sets: Any = model_admin.get_queryset(request).order_by().distinct().values_list(field_path, flat=True)
        super().__init__(field, request, params, model, model_admin, field_path)

    def has_output(self) -> bool:
        """Return whether the members are strings, like parameters; a filter in the address applies in any case."""
        return self.field.member is str or bool(self.used_parameters)  # type: ignore[attr-defined]  # a SetField's

    def expected_parameters(self) -> list[str | None]:
        """Return the parameter that contains the member."""
        return [self.lookup_kwarg]

    def _members(self) -> list[str]:
        return sorted({member for members in self._sets for member in members or ()})

    def get_facet_queryset(self, changelist: Any) -> dict[str, int]:
        """Count the objects with each member."""
        counts = _by_value(self, changelist, str(self.field_path))
        return {f"{number}__c": counts[member] for number, member in enumerate(self._members())}

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        """Yield "All", then each member."""
        counts = self.get_facet_queryset(changelist) if changelist.add_facets else None
        everything = changelist.get_query_string(remove=[self.lookup_kwarg])
        yield {"selected": self.lookup_val is None, "query_string": everything, "display": _("All")}
        for number, member in enumerate(self._members()):
            yield {
                "selected": self.lookup_val is not None and member in self.lookup_val,
                "query_string": changelist.get_query_string({self.lookup_kwarg: member}),
                "display": member if counts is None else f"{member} ({counts[f'{number}__c']})",
            }


#: The filters whose choices are values of the rows, each with the lookup by which it compares.
_ROW_LOOKUPS: dict[type[FieldListFilter], str] = {AllValuesFieldListFilter: "exact", MembersListFilter: "contains"}


def row_lookup(spec: object) -> str:
    """Return the lookup of a filter whose choices are values of the rows; an empty string for another filter."""
    if isinstance(spec, RelatedFilter):
        return ""
    return next((lookup for kind, lookup in _ROW_LOOKUPS.items() if isinstance(spec, kind)), "")


def _is_reference(field: ModelField) -> bool:
    return isinstance(field, ReferenceField) and is_stored_in_dynamodb(field.remote_field.model)


FieldListFilter.register(_is_reference, ReferenceListFilter, take_priority=True)
FieldListFilter.register(lambda field: isinstance(field, SetField), MembersListFilter, take_priority=True)
