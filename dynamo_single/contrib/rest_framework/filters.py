"""Filter backends that offer what keys support: ``"DEFAULT_FILTER_BACKENDS"`` in ``REST_FRAMEWORK``, in this order.

Each backend plans the query, which sends no request. If no key supports a parameter, the response has status 400 and
lists the supported parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.core.exceptions import ValidationError as DjangoValidationError
from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError
from rest_framework.filters import BaseFilterBackend, OrderingFilter, SearchFilter
from rest_framework.request import Request
from rest_framework.views import APIView

from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.query.queryset import QuerySet
from dynamo_single.orm.query.state import state_of
from dynamo_single.orm.results import objects
from dynamo_single.orm.schema import registry, secrecy
from dynamo_single.unavailable import REFUSED

#: The lookups of a parameter, such as ``?placed_at__gte=``; without one it is ``exact``.
LOOKUPS: Final = ("exact", "iexact", "in", "isnull", "gt", "gte", "lt", "lte", "startswith", "istartswith")
#: The most values of a parameter with ``__in``: one BatchGetItem reads a hundred keys.
MAX_VALUES: Final = 100
#: The lookups of a search, the first that a key supports.
_BEGINNINGS: Final = ("istartswith", "startswith")
_BOOLEANS: Final[Mapping[str, bool]] = {"true": True, "1": True, "false": False, "0": False}
#: The OpenAPI schemas of attributes that are not strings, by Django's internal type.
_SCHEMAS: Final[Mapping[str, dict[str, str]]] = {
    "BooleanField": {"type": "boolean"},
    "DateField": {"type": "string", "format": "date"},
    "DateTimeField": {"type": "string", "format": "date-time"},
    "DecimalField": {"type": "number"},
    "FloatField": {"type": "number"},
    "IntegerField": {"type": "integer"},
}
_DESCRIPTION: Final = (
    f"The exact value. If a key supports it, also with {', '.join(f'__{each}' for each in LOOKUPS[1:])}."
)
_INVALID: Final = (DjangoValidationError, InvalidValue, ValueError, TypeError, ArithmeticError)


def is_supported(queryset: QuerySet[Any]) -> bool:
    """Return whether a key supports a queryset. Sends no request; raises the errors of unsuitable values."""
    try:
        objects.plan(state_of(queryset))
    except REFUSED:
        return False
    return True


def _in_keys(model: Any) -> list[str]:
    """Return the attributes that a model's keys contain, except secrets."""
    names = dict.fromkeys(name for key in registry.layout_of(model).keys for name in key.variables)
    return [name for name in names if not secrecy.is_secret(model, name)]


class KeyFilterBackend(BaseFilterBackend):  # type: ignore[misc]  # the package has no types
    """Filter by query parameters such as ``?status=open&placed_at__gte=2026-01-01``.

    The view's ``filter_fields`` names the attributes. The default is every attribute in the model's keys except
    secrets. A parameter may end with one of ``LOOKUPS``; ``__in`` takes up to ``MAX_VALUES`` values, separated
    by commas. Parameters of other names are ignored.
    """

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: APIView) -> QuerySet[Any]:
        """Return the queryset with the conditions of a request; raise ``ValidationError`` for unsuitable ones."""
        offered, used = self.names(queryset, view), list[str]()
        errors: dict[str, list[str]] = {}
        filtered = queryset.without_secrets()
        # A cursor is bound to the conditions in their order, and links sort their parameters.
        for parameter, text in sorted(request.query_params.items()):
            name, _separator, lookup = parameter.partition("__")
            if name not in offered:
                continue
            try:
                narrowed = filtered.filter(**{parameter: _value(lookup, text)})
                # Planning converts the value. Another parameter may name the rest of the key.
                is_supported(narrowed.order_by())
            except _INVALID:
                errors[parameter] = [_("This value is not valid.")]
            else:
                filtered = narrowed
                used.append(parameter)
        if used and not errors and not is_supported(filtered.order_by()):
            refused = _("No key supports these filters together. This list filters by: %(names)s.")
            errors = {parameter: [refused % {"names": ", ".join(offered)}] for parameter in used}
        if errors:
            raise ValidationError(errors)
        return filtered if used else queryset

    def names(self, queryset: QuerySet[Any], view: APIView) -> list[str]:
        """Return the attributes that a view filters by."""
        declared: Sequence[str] | None = getattr(view, "filter_fields", None)
        return _in_keys(queryset.model) if declared is None else [*declared]

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """Return the OpenAPI parameters of the filters, with the types of the attributes."""
        # A view's own ``get_queryset()`` may need a user.
        queryset = view.get_queryset() if view.queryset is None else view.queryset
        return [
            {"name": name, "required": False, "in": "query", "description": _DESCRIPTION, "schema": schema}
            for name in self.names(queryset, view)
            for schema in [_SCHEMAS.get(queryset.model._meta.get_field(name).get_internal_type(), {"type": "string"})]
        ]


def _value(lookup: str, text: str) -> Any:
    if (lookup or "exact") not in LOOKUPS:
        raise ValueError(lookup)
    if lookup == "isnull":
        return _BOOLEANS.get(text.lower(), text)
    if lookup != "in":
        return text
    values = text.split(",")
    if len(values) > MAX_VALUES:
        raise ValueError(text)
    return values


class KeySearchFilter(SearchFilter):  # type: ignore[misc]  # as above
    """Search ``?search=`` by its beginning in the ``search_fields`` of a view that keys can search.

    The whole text is compared with the beginning of a value, regardless of case if the model has a
    ``CanonicalAttribute`` of the attribute.
    """

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: APIView) -> QuerySet[Any]:
        """Return the objects that a request searches; raise ``ValidationError`` if no key supports the search."""
        text = request.query_params.get(self.search_param, "").replace("\x00", "").strip()
        fields: Sequence[str] = self.get_search_fields(view, request) or ()
        if not (text and fields):
            return queryset
        searched, found = queryset.without_secrets().order_by(), None
        for name in fields:
            for lookup in _BEGINNINGS:
                narrowed = searched.filter(**{f"{name.lstrip('^=@$')}__{lookup}": text})
                if is_supported(narrowed):
                    found = narrowed if found is None else found | narrowed
                    break
        if found is None or not is_supported(found):
            refused = _("No key supports a search here. Filter the list instead.")
            raise ValidationError({self.search_param: [refused]})
        return found


class KeyOrderingFilter(OrderingFilter):  # type: ignore[misc]  # as above
    """Sort by ``?ordering=-placed_at``, if a key has this order among the objects that the other backends leave.

    The view's ``ordering_fields`` limits what is offered. Put this backend last.
    """

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: APIView) -> QuerySet[Any]:
        """Return the queryset in the order that a request names; raise ``ValidationError`` for any other order."""
        text = request.query_params.get(self.ordering_param, "")
        names = [name.strip() for name in text.split(",") if name.strip()]
        if not names:
            return super().filter_queryset(request, queryset, view)  # type: ignore[no-any-return]  # as above
        declared = getattr(view, "ordering_fields", None)
        allowed = None if declared in (None, "__all__") else {*declared}
        is_allowed = allowed is None or allowed.issuperset(name.lstrip("-") for name in names)
        if is_allowed and self._is_order(queryset, names):
            return queryset.without_secrets().order_by(*names)
        offered = [
            name
            for each in (_in_keys(queryset.model) if allowed is None else sorted(allowed))
            for name in (each, f"-{each}")
            if self._is_order(queryset, [name])
        ]
        refused = _("No key supports this order. This list sorts by: %(names)s.")
        none = _("No key supports this order. Filter the list first, or remove the order.")
        raise ValidationError(
            {self.ordering_param: [refused % {"names": ", ".join(offered)} if offered else none]},
        )

    def _is_order(self, queryset: QuerySet[Any], names: Sequence[str]) -> bool:
        try:
            return is_supported(queryset.without_secrets().order_by(*names))
        except REFUSED:
            return False
