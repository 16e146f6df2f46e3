"""Expressions in memory keep the rules of every query: the trash, expiry and secrets."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db.models import Exists, F, OuterRef, Q, Subquery, Value, Window
from django.db.models.functions import Concat, Lower, Rank, Upper

from dynamo_single import models
from dynamo_single.exceptions import DisallowedLookup, InvalidValue, StaleObject
from dynamo_single.table import Request, Table
from dynamo_single.testing import assert_requests, intercept
from tests.catalog.models import Member, Ticket
from tests.catalog.safes import Safe
from tests.unit.declaring import declare, forgotten

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


def test_stale_update_names_no_secret(table: Table) -> None:
    """Another process changes the object each time that its new value was computed."""
    with forgotten():
        vaults: Any = declare(
            "Vault",
            ("VAULT#{code}", "#METADATA"),
            code=models.UnicodeAttribute(secret=True),
            weight=models.IntegerAttribute(),
        ).objects
        vaults.create(code="swordfish", weight=1)
        key = {"pk": {"S": "VAULT#swordfish"}, "sk": {"S": "#METADATA"}}

        def grow(operation: str, params: Any) -> None:
            if operation == "UpdateItem" and "ADD" not in params["UpdateExpression"]:
                values = {":one": {"N": "1"}}
                asked = {"Key": key, "UpdateExpression": "ADD weight :one", "ExpressionAttributeValues": values}
                table.send(Request("UpdateItem", asked))

        found = vaults.filter(pk="swordfish").allow_in_memory().annotate(x=F("weight") * 2)
        with intercept(grow), pytest.raises(StaleObject, match="with pk •••"):
            found.update(weight=F("x"))


@pytest.mark.parametrize("lookup", ["regex", "iregex"])
def test_wrong_regular_expression_is_an_invalid_value(lookup: str) -> None:
    """It may come from an address."""
    Member.objects.create(email="a@x.org", name="a")
    with pytest.raises(InvalidValue, match=f"The value of {lookup} is not a regular expression"):
        list(Member.objects.allow_in_memory().filter(**{f"name__{lookup}": "("}))
