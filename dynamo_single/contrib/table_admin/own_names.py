"""The names and values of a table's keys as the table stores them, for people who know it from other tools.

The app knows items by its own names and keys as strings. A table of other origin may call its keys ``PK`` or ``views``,
and may have numbers as keys. This module sends no requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from django.utils.translation import gettext as _

from dynamo_single.admin.viewing.pages import Wrong
from dynamo_single.conf import table_settings
from dynamo_single.conf.shapes import NO_SORT_KEY
from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.schema.keys.secret_values import MASK
from dynamo_single.table import names
from dynamo_single.table.shaped.sortable import is_number_text, number_of_text, text_of_number


def stored_names(alias: str, index: str | None) -> tuple[str, str]:
    """Return the table's names of the two keys; the second one is empty without a sort key."""
    shape = table_settings(alias).shape
    partition, sort = (shape.name_of(name) for name in names.key_names(index))
    if index is None:
        return shape.partition.name, "" if shape.sort is None else sort
    found = shape.index(index)
    return partition, "" if found is not None and found.sort is None else sort


def index_name(alias: str, index: str) -> str:
    """Return DynamoDB's name of an index."""
    found = table_settings(alias).shape.index(index)
    return index if found is None else found.index_name


def shown_text(alias: str, name: str, text: str) -> str:
    """Return a key as the table stores it: the number of a key that is a number. ``name`` is the app's own name."""
    if _kind(alias, name) != "N" or MASK in text:
        return text
    try:
        return number_of_text(text)
    except NotSupported:
        return text


def key_text(alias: str, name: str, text: str) -> str:
    """Return what a user wrote as the string that the app uses for it; raise ``Wrong`` if it is not a number."""
    if _kind(alias, name) != "N" or not text or is_number_text(text):
        return text
    try:
        number = Decimal(text)
        if not number.is_finite():
            raise InvalidOperation
        return text_of_number(f"{number:f}" if abs(number.adjusted()) < 130 else text)
    except InvalidOperation as error:
        raise Wrong(_("This key is a number.")) from error


def check_text(text: str, limit: int) -> None:
    """Raise ``Wrong`` for a string that no key can contain (AWS developer guide, "Quotas in Amazon DynamoDB")."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        size = limit + 1
    if size > limit:
        raise Wrong(_("This is too long for a key, or contains characters that keys do not have."))


def stored_item(alias: str, item: Mapping[str, Any], keys: Iterable[tuple[str | None, str, str]]) -> dict[str, Any]:
    """Return an item with masked keys by the table's own names: the keys first, then the attributes of ``item``."""
    shape = table_settings(alias).shape
    found: dict[str, Any] = {}
    for index, *texts in keys:
        if index is None and shape.sort is None:
            continue  # its caller knows the joined form
        for own, stored, text in zip(names.key_names(index), stored_names(alias, index), texts, strict=True):
            if stored and text != NO_SORT_KEY:
                kind = _kind(alias, own) if MASK not in text else "S"
                found[stored] = {kind: shown_text(alias, own, text)}
    for name, value in item.items():
        if name != names.ITEM_TYPE or shape.type_attribute is not None:
            found.setdefault(shape.name_of(name), value)
    return found


def _kind(alias: str, own: str) -> str:
    shape = table_settings(alias).shape
    return shape.key_types.get(shape.name_of(own), "S")
