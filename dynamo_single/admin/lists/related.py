"""Filters and searches of a list over relations: ``company__name``, ``people__name``, ``tags__word``.

The related objects are read first, up to the list's bound, and the list is filtered by their keys. Keys, the rows in
memory and a scan then serve these keys like any other condition. If more related objects match, a scan reads the
related objects of each row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from django.contrib import messages
from django.db.models import Model, Q
from django.http import HttpRequest
from django.utils.translation import gettext as _
from msgspec.structs import replace

from dynamo_single.admin import paths
from dynamo_single.admin.lists import in_memory, search
from dynamo_single.admin.references import is_served_by_keys
from dynamo_single.admin.viewing.rules import may_view, narrowed_queryset
from dynamo_single.exceptions import TooManyMatches
from dynamo_single.orm.conditions.lowering import lower
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.query.state import state_of
from dynamo_single.orm.relations import filters
from dynamo_single.orm.relations.paths import step_of
from dynamo_single.table.flow import run

#: The key of the conditions of a request that were read, by the model's label and the condition.
_READ: Final = "_dynamo_single_related"
#: The mark of a request whose search leaves the related objects out.
_LEFT_OUT: Final = "_dynamo_single_own_search"

#: The conditions of a queryset on related objects, and whether each is negated.
Conditions = tuple[tuple[bool, Q], ...]


class TooManyRelated(TooManyMatches):
    """A filter or a search would have to read too many related objects. This exception stays inside the admin."""


def leave_out_search(request: HttpRequest, model: Any, names: Sequence[str]) -> bool:
    """Search only in the list's own attributes until ``include_search()``.

    Returns ``False`` if that is already so, or if all search fields are in related objects.
    """
    outside = [name for name in names if is_outside(model, name)]
    if request.__dict__.get(_LEFT_OUT) or len(outside) in (0, len(names)):
        return False
    request.__dict__[_LEFT_OUT] = True
    return True


def include_search(request: HttpRequest) -> bool:
    """Search in related objects again; return whether they were left out."""
    return bool(request.__dict__.pop(_LEFT_OUT, False))


def warn_of_search(request: HttpRequest, model_admin: Any, names: Sequence[str]) -> None:
    """Add a message that names the search fields that are left out, if there are any."""
    if request.__dict__.get(_LEFT_OUT):
        model = model_admin.model
        outside = [_column(model, name) for name in names if is_outside(model, name)]
        what = [_("the search in %(column)s") % {"column": each} for each in outside]
        messages.warning(request, too_many_text(model_admin, ", ".join(what)), fail_silently=True)


def _column(model: Any, name: str) -> str:
    """Return the path of a search field as words."""
    return search.path_of(model, name).replace("__", ": ").replace("_", " ")


def search_fields(request: HttpRequest, model: Any, names: Sequence[str]) -> list[str]:
    """Return the search fields of a request; after ``leave_out_search()``, only the list's own attributes."""
    is_left_out = request.__dict__.get(_LEFT_OUT)
    return [name for name in names if not is_left_out or not is_outside(model, name)]


def is_outside(model: Any, name: str) -> bool:
    """Return whether a search field is an attribute of related objects."""
    return paths.leads_on(model, search.path_of(model, name))


def too_many_text(model_admin: Any, what: str) -> str:
    """Return the message that a list omits a part, because of the number of related objects."""
    return _("More than %(limit)d related objects would have to be read, so this page is shown without %(what)s.") % {
        "limit": in_memory.others_limit_of(model_admin),
        "what": what,
    }


def resolved(request: HttpRequest, model_admin: Any, queryset: Any) -> Any:
    """Return a queryset that filters by the keys of the related objects instead of conditions on them.

    Sends the requests of each relation once for each condition of a request. Returns the queryset itself without such
    conditions, or if the list has no bound. Raises ``TooManyRelated`` for more keys than the bound.
    """
    asked, limit = getattr(queryset, "_asked", None), in_memory.others_limit_of(model_admin)
    if asked is None or not asked.inside or not limit:
        return queryset
    known: dict[Any, Any] = request.__dict__.setdefault(_READ, {})
    result = without_conditions(queryset)
    for is_negated, condition in asked.inside:
        name = queryset.model, asked.visibility, is_negated, repr(condition)
        if name not in known:
            try:
                known[name] = run(_asking(queryset, ((is_negated, condition),), limit)._narrowed()).query.where
            except TooManyMatches as error:
                known[name] = TooManyRelated(str(error), limit=limit)
        if isinstance(known[name], TooManyRelated):
            raise known[name]
        result.query.where.add(known[name].clone(), "AND")
    return result


def without_conditions(queryset: Any) -> Any:
    """Return a queryset without its conditions on related objects, which ``matching_rows()`` then compares."""
    return queryset._asking(replace(queryset._asked, inside=()))


def matching_rows(queryset: Any, conditions: Conditions, rows: Sequence[Any]) -> list[Any]:
    """Return the rows whose related objects meet the conditions, in the order of the rows.

    Sends a BatchGetItem for each hundred references, and for each row a Query of one match in a relation to several.
    Raises ``TooManyRelated`` if the rows refer to more than ``MAX_OTHERS`` objects.
    """
    if not rows or not conditions:
        return list(rows)
    try:
        narrowed = run(_asking(queryset, conditions, in_memory.MAX_OTHERS)._narrowed_for(rows))
    except TooManyMatches as error:
        raise TooManyRelated(str(error), limit=in_memory.MAX_OTHERS) from error
    # With the options of the list, Python compares all of the condition.
    found = without_conditions(queryset)
    found.query.where = narrowed.query.where
    state = state_of(found)
    condition = lower(state.where, state.layout)
    return [row for row in rows if matches(condition, row._stored)]


def leads_to_several(model: Any, conditions: Conditions) -> bool:
    """Return whether ``matching_rows()`` sends a Query for each row."""
    return any(filters.leads_to_several(model, each) for _negated, each in conditions)


def _asking(queryset: Any, conditions: Conditions, limit: int) -> Any:
    """Return a queryset of all rows with conditions on related objects; it reads up to ``limit`` of these objects."""
    asked = replace(queryset._asked, inside=conditions, in_memory=limit, cached_lists=None)
    return queryset.model._base_manager.all()._asking(asked)


#: The most rows whose related objects are read with a Query each, if no key lists the related objects.
MAX_PARTITIONS: Final = 100


class RelatedValues:
    """The values of a path over relations, by the keys of the listed model's attribute ``near``."""

    def __init__(self, request: HttpRequest, model_admin: Any, path: str) -> None:
        found = step_of(model_admin.model, path)
        if found is None:
            raise LookupError(path)
        self._request, self._admin = request, model_admin
        step, rest = found
        self.near = step.near
        self._first = step
        self.by_value: dict[Any, set[Any]] = defaultdict(set)
        for key, value in self._pairs(step.model, step.far, step.name(rest)):
            self.by_value[value].add(key)

    def _pairs(self, model: Any, key: str, path: str) -> list[tuple[Any, Any]]:
        """Return the keys and values: the requests that list each model on the path."""
        found = step_of(model, path)
        if found is None:
            return self._rows(model, key, path)
        step, rest = found
        values = defaultdict(list)
        for near, value in self._pairs(step.model, step.far, step.name(rest)):
            values[near].append(value)
        return [(own, value) for own, near in self._rows(model, key, step.near) for value in values[near]]

    def _rows(self, model: Any, *names: str) -> list[tuple[Any, Any]]:
        """Return two attributes of the objects that the user may see: a Query for each megabyte, up to the bound."""
        limit, site = in_memory.others_limit_of(self._admin), self._admin.admin_site
        own = narrowed_queryset(site, self._request, model)
        queryset: Any = model._default_manager.all() if own is None else own
        queryset = queryset.order_by()
        if not is_served_by_keys(queryset) and model is self._first.model and names[0] == self._first.far:
            queryset = queryset.filter(**{f"{names[0]}__in": self._listed_keys()})
        objects = list(queryset[: limit + 1])
        if len(objects) > limit:
            raise TooManyMatches(
                f"{model._meta.label}: there are more than {limit} objects, which is the limit of filters over "
                "relations. Filter by a reference.",
                limit=limit,
            )
        seen = [each for each in objects if may_view(site, self._request, each)]
        return [(_value(each, names[0]), _value(each, names[1])) for each in seen]

    def _listed_keys(self) -> list[Any]:
        """Return the keys of the listed rows, for related objects that only these keys reach: a Query for each."""
        rows = in_memory.with_cache(self._request, self._admin, self._admin.get_queryset(self._request))
        found = list(rows.order_by().values_list(self.near, flat=True)[: MAX_PARTITIONS + 1])
        if len(found) > MAX_PARTITIONS:
            raise TooManyMatches(
                f"{self._admin.opts.label}: each of more than {MAX_PARTITIONS} rows would need a Query.",
                limit=MAX_PARTITIONS,
            )
        return found


def _value(obj: Model, name: str) -> Any:
    if name == "pk":
        return obj.pk
    # Without a step, the rest of the path is the name of the reference's key.
    field: Any = obj._meta.get_field(name.partition("__")[0])
    return getattr(obj, field.attname)
