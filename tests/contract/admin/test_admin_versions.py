"""``check_version``: the admin rejects the second of two tabs."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.urls import path

from dynamo_single.admin import DynamoAdminSite, DynamoModelAdmin
from dynamo_single.exceptions import ConfigurationError
from project.directory.models import Company
from tests.catalog.library import Ledgered
from tests.contract.conftest import Pages, text_of

CHANGE = "catalog/ledgered/1/change/"
SEEN = re.compile('name="read_version" value="([^"]*)"')


class LedgeredAdmin(DynamoModelAdmin):
    """With fields of its own, among which the hidden one is not."""

    fieldsets = ((None, {"fields": ("number",)}), ("More", {"fields": ("title", "loans")}))
    check_version = True


site = DynamoAdminSite()
site.register(Ledgered, LedgeredAdmin)
urlpatterns = [path("admin/", site.urls)]


@pytest.fixture
def ledger(catalog: Pages) -> Pages:
    """The admin of a model that has a version, with an object in it."""
    Ledgered.objects.create(number=1, title="a")
    return catalog


def test_the_second_of_two_tabs_is_refused(ledger: Pages) -> None:
    """The form keeps the input, and can be saved after it is opened again."""
    (seen,) = SEEN.findall(ledger.get(CHANGE).content.decode())
    first, second = ({"title": title, "loans": "0", "read_version": seen} for title in ("first", "second"))
    assert ledger.post(CHANGE, first).status_code == 302
    for _ in range(2):
        response = ledger.post(CHANGE, second)
        assert response.status_code == 200
        assert "This ledgered was changed by someone else" in text_of(response)
        assert 'value="second"' in response.content.decode()
    assert Ledgered.objects.get(pk=1).title == "first"
    (seen,) = SEEN.findall(ledger.get(CHANGE).content.decode())
    assert ledger.post(CHANGE, {**second, "read_version": seen}).status_code == 302
    assert Ledgered.objects.get(pk=1).title == "second"


def test_objects_are_added_as_without(ledger: Pages) -> None:
    assert ledger.get("catalog/ledgered/add/").status_code == 200
    assert ledger.post("catalog/ledgered/add/", {"number": "2", "title": "b", "loans": "0"}).status_code == 302
    assert Ledgered.objects.get(pk=2).version == 1


def test_who_may_only_look_sees_no_version(ledger: Pages, staff: Any) -> None:
    response = staff("catalog.view_ledgered").get(CHANGE)
    assert response.status_code == 200
    assert "read_version" not in response.content.decode()


def test_a_model_without_a_version_cannot_be_registered_so() -> None:
    with pytest.raises(ConfigurationError, match=r"directory\.Company has no version"):
        DynamoAdminSite().register(Company, type("CompanyAdmin", (DynamoModelAdmin,), {"check_version": True}))
