"""Messages never contain secrets, in errors of queries and writes and in ``explain()``."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db.models import Count, F, Q

from dynamo_single import models, transactions
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests
from tests.catalog.safes import INSIDE, VALUES, WRONG, Lock, Safe, said, told
from tests.catalog.secret_lookups import PATHS, conditions_on
from tests.deep import IS_DEEP, deep


@pytest.fixture
def safe(table: Table) -> Safe:
    """A safe with every secret."""
    found: Safe = Safe.objects.create(safe_id="s1", name="Front", **VALUES, **INSIDE)
    return found


#: Calls of a query with a condition on a secret.
QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "list": lambda queryset: list(queryset),
    "get": lambda queryset: queryset.using_index("by_name").get(),
    "count": lambda queryset: queryset.aggregate(n=Count("pk")),
}


@deep
@pytest.mark.parametrize("path", PATHS)
def test_no_message_of_query_tells_secret(safe: Safe, path: str) -> None:
    found = {
        (repr(condition), question): leaks
        for condition in conditions_on(path)
        for question, ask in QUESTIONS.items()
        if (leaks := told(said(lambda: ask(Safe.objects.filter(**condition)))))  # noqa: B023 - called at once
    }

    assert found == {}


#: Calls that raise an error or log a warning because of a secret's value.
CALLS: dict[str, Callable[[Any, str, Any], Any]] = {
    "get": lambda safe, name, value: Safe.objects.get(**{name: value}),
    "get by Q": lambda safe, name, value: Safe.objects.get(Q(name="Front") & ~Q(**{name: value})),
    "get in": lambda safe, name, value: Safe.objects.get(name="Front", **{f"{name}__in": [value]}),
    "exclude": lambda safe, name, value: Safe.objects.exclude(**{name: value}).get(),
    "union": lambda safe, name, value: (Safe.objects.filter(pk="s1") | Safe.objects.filter(**{name: value})).explain(),
    "aggregate": lambda safe, name, value: Safe.objects.aggregate(n=Count("name", filter=Q(**{name: value}))),
    "create": lambda safe, name, value: Safe.objects.create(safe_id="s2", **{name: value}),
    "create twice": lambda safe, name, value: Safe.objects.create(safe_id="s3", name="B", claimed=VALUES["claimed"]),
    "update": lambda safe, name, value: Safe.objects.filter(name="Front").update(**{name: value}),
    "update of none": lambda safe, name, value: Safe.objects.filter(name="x", **{name: value}).update(name="y"),
    "bulk": lambda safe, name, value: Safe.objects.bulk_create([Safe(safe_id="s4", name="C", **{name: value})]),
    "save": lambda safe, name, value: assigned(safe, name, value).save(),
    "save on a condition": lambda safe, name, value: safe.save(condition=getattr(Safe, name) != value),
    "repr": lambda safe, name, value: repr(assigned(safe, name, value)),
    "order": lambda safe, name, value: list(Safe.objects.filter(name="Front", **{name: value}).order_by(name)),
    "expression": lambda safe, name, value: Safe.objects.filter(**{name: F("name") + value}),
    "atomic": lambda safe, name, value: twice(safe, name, value),
    "in bulk": lambda safe, name, value: len(Safe.objects.in_bulk([value], field_name=name)),
    "list": lambda safe, name, value: Safe.objects.filter(name="Front").update(**{f"{name}__0": value}),
    "append": lambda safe, name, value: Safe.objects.filter(pk="s2").update(**{name: models.Append([value])}),
    "get or create": lambda safe, name, value: Safe.objects.get_or_create(name="Front", **{name: value}),
    "update or create": lambda safe, name, value: Safe.objects.update_or_create(safe_id="s1", defaults={name: value}),
    "move": lambda safe, name, value: Safe.objects.get(pk="s1").move(**{name: value}),
    "require": lambda safe, name, value: required(safe, Q(**{name: value})),
    "copy": lambda safe, name, value: Lock.objects.create(safe=safe, lock_id="l2", safe_pin=value),
}


def assigned(safe: Safe, name: str, value: Any) -> Safe:
    """Return an object with a value."""
    setattr(safe, name, value)
    return safe


def twice(safe: Safe, name: str, value: Any) -> None:
    """Write one item twice in a block."""
    with transactions.atomic():
        assigned(safe, name, value).save()
        Safe.objects.create(safe_id="s1", name="E", **{name: value})


def required(safe: Safe, condition: Q) -> None:
    """Require a condition on an object in a block."""
    with transactions.atomic():
        transactions.require(safe, condition)
        Safe.objects.create(safe_id="s5", name="F")


@pytest.mark.parametrize("call", CALLS)
def test_no_message_of_call_tells_secret(safe: Safe, call: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    found = {
        (name, repr(value)): leaks
        for name, own in VALUES.items()
        for value in (own, *(WRONG if IS_DEEP else WRONG[:1]))
        if (leaks := told(said(lambda: CALLS[call](Safe.objects.get(pk="s1"), name, value))))  # noqa: B023 - as above
    }

    assert found == {}
    assert [record.getMessage() for record in caplog.records if told(record.getMessage())] == []


@pytest.mark.parametrize("name", VALUES)
def test_condition_with_lone_surrogate_keeps_secret(safe: Safe, name: str) -> None:
    """The encoding error of the request's body would contain the string."""
    condition = {"save on a condition": CALLS["save on a condition"], "update": CALLS["update of none"]}

    found = {call: told(said(lambda: ask(safe, name, "swordfish\ud800"))) for call, ask in condition.items()}  # noqa: B023 - called at once

    assert found == {"save on a condition": [], "update": []}


@pytest.mark.parametrize("value", WRONG, ids=lambda value: type(value).__name__)
def test_wrong_reference_is_masked(safe: Safe, value: object) -> None:
    lock = Lock(lock_id="swordfish")
    asked = {
        "filter": lambda: Safe.objects.filter(parent=value),
        "filter by pk": lambda: Safe.objects.filter(parent__pk=value),
        "filter by Q": lambda: Safe.objects.filter(Q(name="Front") | Q(parent=value)),
        "filter by object": lambda: Safe.objects.filter(parent=lock),
        "create": lambda: Safe.objects.create(safe_id="s2", name="Back", parent=value),
        "set": lambda: assigned(safe, "parent", value),
        "set id": lambda: assigned(safe, "parent_id", value).save(),
    }

    assert {name: leaks for name, ask in asked.items() if (leaks := told(said(ask)))} == {}


#: Values that Django's validation refuses, and reports.
INVALID: tuple[Any, ...] = (
    "swordfish",
    "swordfish" * 100,
    "2071-05-06T99:99",
    "13:37:42x",
    ["swordfish", object()],
    814281,
)


@pytest.mark.parametrize("name", VALUES)
def test_validation_does_not_tell_secret(safe: Safe, name: str) -> None:
    """The messages of ``full_clean()`` and their causes do not contain the value."""
    found = {
        repr(value): leaks
        for value in (VALUES[name], *INVALID)
        if (leaks := told(said(assigned(Safe.objects.get(pk="s1"), name, value).full_clean)))
    }

    assert found == {}


def test_validation_keeps_words_of_error(safe: Safe) -> None:
    safe.uuid, safe.slug, safe.parent_id = "swordfish", "sword fish", None

    with pytest.raises(ValidationError) as refused:
        safe.full_clean()

    assert refused.value.message_dict["uuid"] == ["“•••” is not a valid UUID."]
    assert refused.value.error_dict["slug"][0].code == "invalid"


def test_explain_masks_keys_of_secrets(safe: Safe) -> None:
    with assert_requests(0):
        text = Safe.objects.filter(text__startswith="swordfish").explain()

    assert "by_text (gs2)" in text
    assert "•••" in text
    assert told(text) == []


def test_explain_shows_what_is_no_secret(safe: Safe) -> None:
    text = Safe.objects.filter(name="Front", text="swordfish").explain()

    assert "name='Front', text=•••" in text
    assert "begins with 'Front#'" in text
