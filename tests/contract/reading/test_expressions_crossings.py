"""Expressions in memory keep the rules of every query: the trash, expiry and secrets."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db.models import Exists, OuterRef, Q, Subquery, Value, Window
from django.db.models.functions import Concat, Lower, Rank, Upper

from dynamo_single.exceptions import DisallowedLookup
from dynamo_single.testing import assert_requests
from tests.catalog.models import Member, Ticket
from tests.catalog.safes import Safe

pytestmark = pytest.mark.usefixtures("table")


def test_expressions_leave_out_the_trash() -> None:
    kept, deleted = (Member.objects.create(email=f"{name}@x.org", name=name) for name in ("kept", "gone"))
    deleted.delete()
    computed = Member.objects.filter(pk__in=[kept.pk, deleted.pk]).allow_in_memory().annotate(x=Upper("name"))
    assert [each.x for each in computed.filter(x__regex=".")] == ["KEPT"]


def test_expressions_leave_out_expired_objects() -> None:
    now = datetime.now(UTC)
    for code, hours in (("old", -1), ("new", 1)):
        Ticket.objects.create(code=code, expires_at=now + timedelta(hours=hours))
    found = Ticket.objects.allow_in_memory().annotate(x=Upper("code")).filter(x__endswith="W")
    assert [each.x for each in found] == ["NEW"]
    assert found.count() == 1
    assert Ticket.objects.allow_in_memory().filter(code__endswith="d").count() == 0


SECRETS: list[Callable[[Any], Any]] = [
    lambda found: found.annotate(x=Lower("text")),
    lambda found: found.alias(x=Concat("name", Value("-"), "text")),
    lambda found: found.values(x=Upper("text")),
    lambda found: found.values_list(Upper("text")),
    lambda found: found.order_by(Lower("text").desc()),
    lambda found: found.annotate(x=Window(Rank(), order_by="text")),
    lambda found: found.filter(Exists(Safe.objects.filter(text="x"))),
    lambda found: found.filter(Q(name="x") | Q(Exists(Safe.objects.filter(name=OuterRef("text"))))),
    lambda found: found.filter(name=Subquery(Safe.objects.values("text")[:1])),
    lambda found: found.annotate(x=Subquery(Safe.objects.order_by("text").values("name")[:1])),
    lambda found: found.order_by(Subquery(Safe.objects.annotate(x=Lower("text")).values("x")[:1])),
]


@pytest.mark.parametrize("ask", SECRETS)
def test_expressions_name_no_secret_from_an_address(ask: Callable[[Any], Any]) -> None:
    with assert_requests([]), pytest.raises(DisallowedLookup):
        ask(Safe.objects.without_secrets().allow_in_memory())
