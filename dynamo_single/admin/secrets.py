"""Keep secrets out of the admin's pages and addresses: filters, searches, orders, columns and read-only values.

A project's code may still filter by any attribute. Editable inputs contain the value, since a mask would be saved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from inspect import signature
from typing import Any, Final, TypeVar

from django.contrib.admin import SimpleListFilter
from django.contrib.admin.views.main import ChangeList
from django.db.models import F
from django.db.models.expressions import OrderBy
from django.http import HttpRequest

from dynamo_single.admin.paths import query_path, query_paths
from dynamo_single.admin.types import AdminMixin
from dynamo_single.cache import entries
from dynamo_single.orm.schema import secrecy
from dynamo_single.orm.schema.attributes.base import AlsoSecret
from dynamo_single.orm.schema.fields.documents import document_text
from dynamo_single.orm.schema.keys.secret_values import MASK, Path, hide
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table.request import StoredValue

N = TypeVar("N")

#: The types of the cache's items. Their values may be anything.
CACHE_TYPES: Final = frozenset({entries.ENTRY_TYPE, entries.PART_TYPE, entries.GENERATIONS_TYPE})
_CACHED: Final = frozenset({entries.VALUE, entries.NUMBER, entries.SIGNATURE})

#: The prefixes of ``search_fields`` and of an order.
_PREFIXES = "^=@-"


def site_secrets(model_admin: Any) -> AlsoSecret | None:
    """Return the function with which an admin's site adds secrets; ``None`` for a site without one."""
    found: AlsoSecret | None = getattr(model_admin.admin_site, "is_secret", None)
    return found


def is_secret(model_admin: Any, name: object, model: type[Any] | None = None) -> bool:
    """Return whether an option of an admin names a secret: a field, a path, an order, or what has an order."""
    if isinstance(name, list | tuple):
        return bool(name) and is_secret(model_admin, name[0], model)
    if isinstance(name, OrderBy):
        name = name.expression
    if isinstance(name, F):
        name = getattr(name, "name", None)  # missing in the stubs
    if not isinstance(name, str):
        return False
    found, path = model_admin.model if model is None else model, name.lstrip(_PREFIXES)
    # Anything else is code: a method or a property.
    is_attribute = secrecy.has(found, path.partition("__")[0])
    return is_attribute and secrecy.lookup_hides(found, path, site_secrets(model_admin))


def without_secrets(model_admin: Any, names: Iterable[object] | None) -> list[Any]:
    """Return the names of an option without secrets; callables and classes are a project's own code."""
    return [name for name in names or () if not is_secret(model_admin, name)]


def list_arguments(request: HttpRequest, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """Return the arguments of Django's list without secrets: masked columns, and no filter, date or search by them."""
    bound = signature(ChangeList).bind(request, *args, **kwargs)
    given = bound.arguments
    model_admin = given["model_admin"]
    instead = {
        name: mask_column(model_admin, name) if isinstance(name, str) and is_secret(model_admin, name) else name
        for name in given["list_display"]
    }
    replace_columns(given, instead)
    for name in ("list_filter", "search_fields", "list_editable"):
        kept = without_secrets(model_admin, given[name])
        given[name] = given[name] if kept == [*(given[name] or ())] else kept
    if is_secret(model_admin, given["date_hierarchy"]):
        given["date_hierarchy"] = None
    return bound.args, bound.kwargs


def has_secrets(owner: Any, model: type[Any], name: str, values: Iterable[object]) -> bool:
    """Return whether one of the values of an attribute contains a secret."""
    also = site_secrets(owner)
    return any(secrecy.hide(model, name, value, also) != value for value in values)


def replace_columns(options: MutableMapping[str, Any], instead: Mapping[str, object]) -> None:
    """Replace columns, by their names, in the options of a list."""
    for option in ("list_display", "list_display_links", "sortable_by"):
        options[option] = options[option] and [instead.get(name, name) for name in options[option]]


def replaced(names: Iterable[object], instead: Mapping[N, object]) -> list[object]:
    """Return names of fields, or callables, some of them in lists, with some replaced."""
    found: Any = instead
    return [replaced(each, instead) if isinstance(each, list | tuple) else found.get(each, each) for each in names]


def replaced_in_fieldsets(fieldsets: Any, instead: Mapping[N, object]) -> list[tuple[object, dict[str, object]]]:
    """Return fieldsets with some names of fields replaced."""
    return [(title, {**each, "fields": replaced(each["fields"], instead)}) for title, each in fieldsets]


class SecretsMixin(AdminMixin):
    """An admin or an inline whose addresses and declared orders do not compare with secrets."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        filters = getattr(self, "list_filter", ())
        if isinstance(filters, list | tuple):
            named: Any = query_paths(self.model, filters)
            if named != [*filters]:
                self.list_filter = named  # type: ignore[misc]  # a class variable in the stubs
        if getattr(self, "list_editable", ()):
            kept = without_secrets(self, self.list_editable)
            self.list_editable = kept  # type: ignore[misc]  # a class variable in the stubs

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        """Return whether an address may filter by this lookup: what Django returns, except for secrets.

        The parameter of a project's own ``SimpleListFilter`` is passed to its code.
        """
        declared = self.get_list_filter(request) if hasattr(self, "get_list_filter") else ()
        own = {
            each.parameter_name for each in declared if isinstance(each, type) and issubclass(each, SimpleListFilter)
        }
        if lookup not in own:
            lookup = query_path(self.model, lookup)
        if lookup not in own and secrecy.lookup_hides(self.model, lookup, site_secrets(self)):
            return False
        return super().lookup_allowed(lookup, value, request)

    def get_ordering(self, request: HttpRequest) -> list[Any]:
        """Return the declared order without secrets."""
        return without_secrets(self, super().get_ordering(request))

    def get_queryset(self, request: HttpRequest) -> Any:
        """Return Django's queryset without an order of the model that names a secret."""
        found = super().get_queryset(request)
        declared = self.opts.ordering or ()
        if len(kept := without_secrets(self, declared)) == len(declared) or self.get_ordering(request):
            return found
        return found.order_by(*kept)


def mask_column(owner: Any, name: str, model: Any = None) -> Callable[[Any], str]:
    """Return a callable that shows a mask, or nothing if there is no value."""

    def shown(obj: Any) -> Any:
        value = obj
        for step in name.split("__"):
            value = getattr(value, step, None)
        return owner.get_empty_value_display() if value in (None, "") else MASK

    return with_label(shown, name, owner.model if model is None else model)


def hide_values(owner: Any, model: Any, name: str) -> Callable[[Any], str]:
    """Return a callable that shows a value with its secrets masked."""

    def shown(obj: Any) -> Any:
        value = secrecy.hide(model, name, getattr(obj, name), site_secrets(owner))
        if value in (None, ""):
            return owner.get_empty_value_display()
        if isinstance(value, set):
            return ", ".join(sorted(value))
        return value if isinstance(value, str) else document_text(value)

    return with_label(shown, name, model)


def with_label(function: Any, name: str, model: Any) -> Callable[[object], str]:
    """Return a callable with the label of a field, and with the name from which Django derives the cell's class."""
    fields = {field.name: field for field in (*model._meta.concrete_fields, *model._meta.many_to_many)}
    function.__name__ = name
    function.short_description = fields[name].verbose_name if name in fields else name.replace("_", " ").capitalize()
    return function  # type: ignore[no-any-return]  # a function with Django's attributes


class Masks:
    """The masks for the items of one table; ``also`` is the function with which a site adds secrets."""

    def __init__(self, also: AlsoSecret | None = None) -> None:
        self._also = also

    def attributes(self, model: type[DynamoModel] | None) -> frozenset[str]:
        """Return the Python names of a model's secrets, including copies of them."""
        return frozenset() if model is None else secrecy.secrets_of(model, self._also)

    def hides(self, model: type[DynamoModel] | None, item_type: str, stored: str) -> bool:
        """Return whether an attribute of an item, by its stored name, is masked."""
        if item_type in CACHE_TYPES:
            return stored in _CACHED
        return secrecy.is_secret(model, stored, self._also)

    def masked(
        self, model: type[DynamoModel] | None, item_type: str, item: Mapping[str, Any]
    ) -> dict[str, dict[str, object]]:
        """Return an item in DynamoDB's JSON with its secrets masked at any depth; its keys do not change."""
        return {
            name: {"S": MASK} if self.hides(model, item_type, name) else self._inside(model, (name,), value)
            for name, value in item.items()
        }

    def inside(self, model: type[Any], name: str, value: object) -> object:
        """Return a Python value of an attribute with its secrets masked at any depth."""
        return secrecy.hide(model, name, value, self._also)

    def key(self, alias: str, partition: str, sort: str = "") -> tuple[str, str]:
        """Return a key of a table or an index with its secrets masked."""
        return secrecy.masked_key(alias, partition, sort, self._also)

    def log_key(self, partition: str) -> str:
        """Return a partition key of an object's log without the ``pk`` if that contains a secret."""
        return secrecy.masked_log(partition, self._also)

    def _inside(self, model: type[DynamoModel] | None, path: Path, value: StoredValue) -> dict[str, object]:
        ((kind, held),) = value.items()
        if kind == "S":
            return {"S": hide(held)}
        if kind == "SS":
            return {"SS": [hide(each) for each in held]}
        if kind == "M":
            return {"M": {name: self._member(model, (*path, name), each) for name, each in held.items()}}
        if kind == "L":
            return {"L": [self._inside(model, (*path, number), each) for number, each in enumerate(held)]}
        return dict(value)

    def _member(self, model: type[DynamoModel] | None, path: Path, value: StoredValue) -> dict[str, object]:
        return {"S": MASK} if secrecy.hides(model, path, self._also) else self._inside(model, path, value)
