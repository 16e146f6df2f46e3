"""A record in the admin: its document in a text area, its extracted values, and schema errors."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.sites import all_sites
from django.test import modify_settings
from django.urls import path

from dynamo_single.admin import DynamoAdminSite, DynamoModelAdmin
from tests.catalog.records import Bundle, Treatise
from tests.contract.conftest import Pages, text_of

TREATISE = "catalog/treatise/"
BUNDLE = "catalog/bundle/"

site = DynamoAdminSite()
site.register(
    Treatise,
    type("TreatiseAdmin", (DynamoModelAdmin,), {"list_display": ("id", "author", "price"), "list_filter": ("author",)}),
)
site.register(Bundle, type("BundleAdmin", (DynamoModelAdmin,), {}))
all_sites.discard(site)  # checks inspect all models, and report an error for this one
urlpatterns = [path("admin/", site.urls)]


@pytest.fixture
def treatise(table: Any) -> Any:
    """Return a stored treatise."""
    return Treatise.objects.create(data={"title": "T", "author": {"lastname": "Old"}, "price": 2})


def test_a_list_shows_filters_and_sorts_by_what_is_extracted(catalog: Pages, treatise: Any) -> None:
    Treatise.objects.create(data={"author": {"lastname": "Else"}, "price": 1})
    page = catalog.get(TREATISE)
    assert page.status_code == 200
    assert '<td class="field-author">Old</td>' in page.content.decode()
    filtered = catalog.get(f"{TREATISE}?author=Old").content.decode()
    assert "Else</td>" not in filtered
    assert "Old</td>" in filtered
    ordered = catalog.get(f"{TREATISE}?o=3").content.decode()
    assert ordered.index("Else</td>") < ordered.index("Old</td>")


def test_the_form_shows_it_and_does_not_ask_for_it(catalog: Pages, treatise: Any) -> None:
    page = catalog.get(f"{TREATISE}{treatise.pk}/change/")
    content = page.content.decode()
    assert 'name="data"' in content
    assert 'name="author"' not in content
    assert "Author: Old" in text_of(page)


def test_saving_the_document_lets_it_follow_and_what_is_posted_for_it_is_not_heard(
    catalog: Pages, treatise: Any
) -> None:
    sent = {"data": '{"title": "U", "author": {"lastname": "New"}, "price": 2.50}', "author": "Mallory"}
    assert catalog.post(f"{TREATISE}{treatise.pk}/change/", sent).status_code == 302
    found = Treatise.objects.get(author="New")
    assert (found.pk, found.data["title"]) == (treatise.pk, "U")


@modify_settings(MIDDLEWARE={"append": "dynamo_single.authorship.CurrentUserMiddleware"})
def test_a_record_is_added_with_its_author_and_identifier(catalog: Pages) -> None:
    assert catalog.post(f"{TREATISE}add/", {"data": '{"author": {"lastname": "New"}}'}).status_code == 302
    found = Treatise.objects.get()
    assert found.id.startswith("treatise-")
    assert (found.author, found.created_by_id) == ("New", catalog.user.pk)


@pytest.mark.parametrize(
    ("page", "data", "message"),
    [
        (TREATISE, '{"price": "dear"}', "data__price: This must be a decimal number."),
        (BUNDLE, '{"title": "T"}', "data__receiver__name: This field must have a value."),
        (BUNDLE, '{"title": 5, "receiver": {"name": "A"}}', "data__title: This must be a string (str)."),
        (BUNDLE, '{"title": "T", "receiver": {"name": "A"}, "kind": "huge"}', "is not a valid choice"),
    ],
)
def test_what_the_document_may_not_hold_is_an_error_of_the_form(
    catalog: Pages, page: str, data: str, message: str
) -> None:
    answer = catalog.post(f"{page}add/", {"data": data})
    assert answer.status_code == 200
    assert message in text_of(answer)


def test_a_record_goes_to_the_trash_and_comes_back(catalog: Pages, treatise: Any) -> None:
    assert catalog.post(f"{TREATISE}{treatise.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not Treatise.objects.filter(author="Old").exists()
    Treatise.deleted_objects.get().restore()
    assert Treatise.objects.filter(author="Old").exists()
