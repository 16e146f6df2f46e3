"""Lists of the admin that need all their rows: facets, a date hierarchy, sortable columns."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin import ShowFacets
from django.contrib.auth import get_user_model
from django.test import RequestFactory

from dynamo_single.admin import DynamoModelAdmin
from dynamo_single.testing import assert_requests
from project.directory.models import Company
from tests.contract.conftest import text_of


class BoundedAdmin(DynamoModelAdmin):
    """A list of few rows, declared as such."""

    list_display = ("name", "public", "created_at")
    list_filter = ("public",)
    date_hierarchy = "created_at"
    show_facets = ShowFacets.ALWAYS

    def get_queryset(self, request: Any) -> Any:
        """At most ten rows in memory."""
        return super().get_queryset(request).allow_in_memory(10)


@pytest.fixture
def companies(table: Any) -> None:
    """Three companies, one in the trash."""
    for name, public in [("Acme", True), ("Beta", False), ("Core", True)]:
        Company.objects.create(company_id=name.lower(), name=name, public=public)
    Company.objects.get(pk="core").delete()


def page(query: str, requests: list[str]) -> Any:
    """The list page, rendered; which requests it sends."""
    request = RequestFactory().get(f"/admin/directory/company/{query}")
    request.user = get_user_model()(username="admin", is_active=True, is_superuser=True, is_staff=True)
    with assert_requests(requests):
        return BoundedAdmin(Company, admin.site).changelist_view(request).render()


@pytest.mark.usefixtures("companies")
def test_facets_and_dates_are_counted_where_that_is_allowed() -> None:
    """Each facet has its number, from one reading of the rows and one count of the trash."""
    said = text_of(page("", ["Query"] * 2))
    assert "Yes (1) No (1)" in said
    assert "In the trash (1)" in said
    assert "2 companies" in said


@pytest.mark.usefixtures("companies")
def test_every_column_sorts_where_that_is_allowed() -> None:
    """The page sorts a column that no key supports in memory."""
    response = page("?o=-2", ["Query"] * 2)
    assert [row.name for row in response.context_data["cl"].result_list] == ["Acme", "Beta"]
    response = page("?o=2", ["Query"] * 2)
    assert [row.name for row in response.context_data["cl"].result_list] == ["Beta", "Acme"]


@pytest.mark.usefixtures("companies")
def test_more_rows_than_allowed_are_no_list() -> None:
    """The page warns that too many rows match, and does not show some of them."""
    for number in range(10):
        Company.objects.create(name=f"Company {number}")
    request = RequestFactory().get("/admin/directory/company/?o=2")
    request.user = get_user_model()(username="admin", is_active=True, is_superuser=True, is_staff=True)
    response: Any = BoundedAdmin(Company, admin.site).changelist_view(request)
    assert response.status_code == 400
    assert "more than 10 objects match" in text_of(response.render())
