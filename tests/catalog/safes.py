"""Models with a secret of every kind, for the tests of hidden values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError

from dynamo_single import models


class Content:
    """The declared places of a safe's list of contents."""

    label = models.UnicodeAttribute(null=True)
    place = models.UnicodeAttribute(secret=True, null=True)


class Safe(models.Model):
    """Secrets by option and by name, of every type, and values derived from them."""

    safe_id = models.UnicodeAttribute()
    name = models.UnicodeAttribute()
    text = models.UnicodeAttribute(secret=True, null=True)
    folded = models.CanonicalAttribute(source="text")
    pin = models.UnicodeAttribute(null=True)
    email = models.EmailAttribute(secret=True, null=True)
    integer = models.IntegerAttribute(secret=True, null=True)
    number = models.NumberAttribute(secret=True, null=True)
    decimal = models.DecimalAttribute(secret=True, null=True)
    flag = models.BooleanAttribute(secret=True, null=True)
    moment = models.TimestampAttribute(secret=True, null=True)
    day = models.DateAttribute(secret=True, null=True)
    time = models.TimeAttribute(secret=True, null=True)
    duration = models.DurationAttribute(secret=True, null=True)
    slug = models.SlugAttribute(secret=True, null=True)
    url = models.URLAttribute(secret=True, null=True)
    address = models.IPAddressAttribute(secret=True, null=True)
    uuid = models.UUIDAttribute(secret=True, null=True)
    json = models.JSONAttribute(secret=True, null=True)
    map = models.MapAttribute(secret=True, null=True)
    list = models.ListAttribute(secret=True, null=True)
    words = models.UnicodeSetAttribute(secret=True)
    numbers = models.NumberSetAttribute(secret=True)
    blobs = models.BinarySetAttribute(secret=True)
    blob = models.BinaryAttribute(secret=True, null=True, editable=True)
    parent = models.ReferenceAttribute("catalog.Safe", secret=True, null=True, on_delete=models.DO_NOTHING)
    claimed = models.UnicodeAttribute(secret=True, null=True, unique=True)
    papers = models.MapAttribute(null=True)
    contents = models.MapAttribute(schema=Content, null=True)
    drawn = models.ExtractedAttribute("papers__apiKey")
    remark = models.UnicodeAttribute(null=True, multiline=True)

    locks = models.Children("Lock")

    class Keys:
        primary = models.Key("SAFE#{safe_id}", "#METADATA")
        by_name = models.IndexKey("gs1", "SAFE", "{name}#{safe_id}")
        by_text = models.IndexKey("gs2", "SAFETEXT", "{text}#{safe_id}")

    class Meta:
        app_label = "catalog"

    def __str__(self) -> str:
        return self.name


class Lock(models.Model):
    """A child with a secret, and a copy of its parent's."""

    safe = models.ReferenceAttribute(Safe, on_delete=models.DO_NOTHING)
    lock_id = models.UnicodeAttribute()
    brand = models.UnicodeAttribute(null=True)
    code = models.UnicodeAttribute(secret=True, null=True)
    safe_pin = models.CopiedAttribute("safe", "pin")

    class Keys:
        primary = models.Key("SAFE#{safe_id}", "LOCK#{lock_id}")

    class Meta:
        app_label = "catalog"

    def __str__(self) -> str:
        return f"{self.safe_id} {self.lock_id}"


#: A value of each secret of a safe, by the attribute's name.
VALUES: dict[str, Any] = {
    "text": "swordfish-text",
    "pin": "swordfish-471147",
    "email": "swordfish@example.com",
    "integer": 814281,
    "number": 6543.25,
    "decimal": Decimal("7766.55"),
    "flag": True,
    "moment": datetime(2071, 5, 6, 7, 8, 9, tzinfo=UTC),
    "day": date(2072, 3, 4),
    "time": time(13, 37, 42),
    "duration": timedelta(days=9191),
    "slug": "swordfish-slug",
    "url": "https://swordfish.example.com/",
    "address": "192.0.2.77",
    "uuid": UUID("50f1d1f1-0000-4000-8000-000000000000"),
    "json": {"a": "swordfish-json"},
    "map": {"a": "swordfish-map"},
    "list": ["swordfish-list"],
    "words": {"swordfish-word"},
    "numbers": {551155},
    "blobs": {b"swordfish-blobs"},
    "blob": b"swordfish-blob",
    "parent_id": "swordfish-parent",
    "claimed": "swordfish-claimed",
}
#: Other contents of a safe: secrets inside other values.
INSIDE: dict[str, Any] = {
    "papers": {"apiKey": "swordfish-key", "author": "Ann", "deep": [{"password": "swordfish-deep"}]},
    "contents": {"label": "Gold", "place": "swordfish-place"},
    "remark": 'from the log: {"user": "ann", "password": "swordfish-remark"}',
}
#: Attributes derived from these.
FOLLOWING = ("folded", "drawn")
#: Texts with one of the secrets each, in some form of pages, messages and logs.
TELLING = (
    *("swordfish", "814281", "814,281", "6543.25", "6,543.25", "7766.55", "7,766.55", "2071-05-06", "May 6, 2071"),
    *("2072-03-04", "March 4, 2072", "13:37:42", "1:37 p.m.", "9191", "192.0.2.77", "50f1d1f1", "551155"),
    *("datetime(2071", "date(2072", "time(13, 37"),
)


def told(text: str) -> list[str]:
    """Return the secrets in a text."""
    return [each for each in TELLING if each in text]


#: Values that attributes of other types reject, each with a secret.
WRONG: tuple[Any, ...] = (
    *("swordfish", ["swordfish"], b"swordfish", {"swordfish": "swordfish"}, object, 814281, 6543.25, "swordfish" * 100),
    *("2071-05-06T99:99", "13:37:42x", "swordfish\ud800", {"a": {1: "swordfish"}}, 10**50 + 814281, ("swordfish", 3)),
)


def said(ask: Callable[[], object]) -> str:
    """Return what a call returns as text, or its error with all that a log would have of it."""
    try:
        return str(ask())
    except Exception as error:
        return "\n".join(said_of(error))


def said_of(error: BaseException) -> Iterator[str]:
    """Yield the texts of an error, its parts, and the errors before it in a traceback."""
    yield f"{error!r} {error}"
    yield from getattr(error, "__notes__", ())
    for one in error.error_list if isinstance(error, ValidationError) and hasattr(error, "error_list") else ():
        yield f"{one.message!r} {one.params!r}"
    for part in getattr(error, "error_dict", {}).values():
        for one in part:
            yield from said_of(one)
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None:
        yield from said_of(before)
