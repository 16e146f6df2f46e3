"""Search a list by ``search_fields``, with Django's prefixes and suffixes.

If the rows fit in memory, the search works as in Django: it finds each word at any position in any field, and ignores
case. Otherwise, it queries by keys, and uses the complete search text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Q
from django.utils.translation import gettext as _
from msgspec.structs import replace

from dynamo_single.admin import paths
from dynamo_single.admin.references import is_exact
from dynamo_single.exceptions import InvalidValue, NoAccessPattern, NotSupported
from dynamo_single.orm.query.queryset import QuerySet
from dynamo_single.orm.query.state import state_of
from dynamo_single.orm.results import objects
from dynamo_single.orm.results.cached_lists import CachedLists
from dynamo_single.orm.schema.fields.base import IdentityField
from dynamo_single.orm.schema.types import DynamoModel

_WORDS = re.compile(r"""\"([^\"]+)\"|'([^']+)'|(\S+)""")
_PREFIXES = {"^": "istartswith", "=": "iexact"}


def lookups(model: type[DynamoModel], name: str) -> list[str]:
    """Return the lookups of a search field: ``icontains``, or the lookup of its prefix or suffix, as in Django.

    A primary key with several attributes has a lookup for each of them.
    """
    if name.startswith("@"):
        raise NotSupported(f"search_fields: {name!r}: full-text search is not supported. Remove the @.")
    path, lookup = name, "icontains"
    if name[:1] in _PREFIXES:
        path, lookup = name[1:], _PREFIXES[name[0]]
    elif "__" in name and _has_lookup(model, name):
        path, _separator, lookup = name.rpartition("__")
    identity = model._meta.pk
    if path in ("pk", identity.name) and isinstance(identity, IdentityField) and lookup != "exact":
        return [f"{each}__{lookup}" for each in identity.names]
    return [f"{path}__{lookup}"]


def path_of(model: type[DynamoModel], name: str) -> str:
    """Return the path of a search field, without its lookup."""
    return lookups(model, name)[0].rpartition("__")[0]


def _has_lookup(model: type[DynamoModel], name: str) -> bool:
    """Return whether the last part of a search field is a lookup rather than an attribute."""
    path, _separator, lookup = name.rpartition("__")
    field = paths.field_at(model, path)
    is_path = paths.leads_on(model, name) and paths.field_at(model, name) is not None
    return field is not None and not is_path and hasattr(field, "get_lookup") and field.get_lookup(lookup) is not None


def split_words(text: str) -> list[str]:
    """Split a search text into words. Quoted text is a single word."""
    return ["".join(found) for found in _WORDS.findall(text)]


def contains_words(queryset: QuerySet[DynamoModel], fields: Sequence[str], text: str) -> QuerySet[DynamoModel]:
    """Return the rows that contain each word of a text in at least one field. Skip fields of an unsuitable type."""
    named = [lookup for name in fields for lookup in lookups(queryset.model, name)]
    words = []
    for word in split_words(text):
        conditions: list[Any] = [(lookup, word) for lookup in named if _fits_type(queryset, lookup, word)]
        if not conditions:
            return queryset.none()
        words.append(Q.create(conditions, connector=Q.OR))
    # As in Django, a single filter() requires one related object to contain all the words.
    return queryset.filter(*words)


def _fits_type(queryset: QuerySet[DynamoModel], lookup: str, word: str) -> bool:
    """Return whether the type of a lookup's attribute accepts a word."""
    try:
        model, rest = paths.end_of(queryset.model, lookup)
        if model is not queryset.model or rest != lookup:
            return _fits_related(model, rest, word)
        # Filters over relations do not affect the type of this attribute.
        rows = queryset._asking(replace(queryset._asked, inside=()))
        objects.plan(state_of(rows.filter(**{lookup: word}).order_by()))
    except (InvalidValue, ValidationError, ValueError):
        return False
    return True


def _fits_related(model: Any, lookup: str, word: str) -> bool:
    """Return whether the type of a related object's attribute accepts a word, with or without a key."""
    rows = model._base_manager.all()
    rows = rows._asking(replace(rows._asked, cached_lists=CachedLists(1)))
    with suppress(NoAccessPattern):
        objects.plan(state_of(rows.filter(**{lookup: word}).order_by()))
    return True


def search_by_keys(queryset: Any, fields: Sequence[str], text: str) -> tuple[object, list[str]]:
    """Return a queryset that finds the text by keys, and the names of the fields that it searches.

    The text matches the start of a value, or the whole value. If no key supports any field, the queryset raises
    ``NoAccessPattern``.
    """
    found, used = None, []
    for name in fields:
        for lookup in supported_lookup(queryset, name, text):
            narrowed = queryset.filter(**{lookup: text})
            joined = narrowed if found is None else found | narrowed
            if is_exact(joined.order_by()):
                found = joined
                options, named = queryset.model._meta, lookup.partition("__")[0]
                used.append(str((options.pk if named == "pk" else options.get_field(named)).verbose_name))
    if found is None:
        return queryset.filter(**{f"{path_of(queryset.model, fields[0])}__startswith": text}), []
    return found, used


def supported_lookup(queryset: QuerySet[DynamoModel], name: str, text: str) -> list[str]:
    """Return the first lookup of a search field that a key supports; those that ignore case come first."""
    path = path_of(queryset.model, name)
    if paths.leads_on(queryset.model, path):
        return []  # stepwise scans search related objects
    whole = name.startswith("=") or name.endswith(("__exact", "__iexact"))
    for lookup in ("iexact", "exact") if whole else ("istartswith", "startswith"):
        try:
            if is_exact(queryset.filter(**{f"{path}__{lookup}": text}).order_by()):
                return [f"{path}__{lookup}"]
        except (NotSupported, InvalidValue, ValidationError, ValueError):
            continue
    return []


def result_text(used: Sequence[str], text: str) -> str:
    """Describe a search by keys to the user of the list."""
    return _("Results where %(fields)s starts with “%(text)s” (case-sensitive).") % {
        "fields": ", ".join(used),
        "text": text,
    }
