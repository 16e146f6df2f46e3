"""Who may do what in an inline: the child model's own permissions decide, and no other model's."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib import admin
from django.test import RequestFactory

from dynamo_single import models
from dynamo_single.admin import DynamoStackedInline, DynamoTabularInline
from project.directory.models import Company, Person
from tests.unit.declaring import declare, forgotten


@pytest.fixture
def visit() -> Iterator[Any]:
    """A child of a company that refers to a person too."""
    with forgotten():
        yield declare(
            "Viewing",
            ("COMPANY#{company_id}", "VISIT#{visit_id}"),
            visit_id=models.IdAttribute(),
            guest=models.ReferenceAttribute(Person),
            company=models.ReferenceAttribute(Company),
        )


@pytest.mark.parametrize("base", [DynamoTabularInline, DynamoStackedInline])
@pytest.mark.parametrize(
    ("permission", "allowed"),
    [
        ("catalog.view_viewing", {"view"}),
        ("catalog.add_viewing", {"add"}),
        ("catalog.change_viewing", {"change", "view"}),
        ("catalog.delete_viewing", {"delete"}),
        ("directory.change_person", set()),
        ("directory.change_company", set()),
    ],
)
def test_the_childs_own_permissions_decide(visit: Any, base: Any, permission: str, allowed: set[str]) -> None:
    """Django would take the child for a many-to-many table, and ask about the model on its other side."""
    inline = type("VisitInline", (base,), {"model": visit, "fk_name": "company"})(Company, admin.site)
    request = RequestFactory().get("/")
    request.user = SimpleNamespace(has_perm=lambda asked: asked == permission)  # type: ignore[assignment]  # all it takes
    asked = ("add", "change", "delete", "view")
    assert {each for each in asked if getattr(inline, f"has_{each}_permission")(request, None)} == allowed
