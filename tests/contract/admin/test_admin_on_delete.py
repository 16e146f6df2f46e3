"""The admin's delete page for objects with ``on_delete`` references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from django.contrib.admin.sites import all_sites
from django.contrib.auth import get_user_model
from django.contrib.messages import get_messages
from django.test import Client, override_settings
from django.urls import path

from dynamo_single.admin import DynamoAdminSite, DynamoModelAdmin
from dynamo_single.table import Table
from dynamo_single.testing import intercept
from tests.catalog.studios import Artist, Frame, Gallery, Loan, Painting, Sketch
from tests.contract.conftest import text_of

site = DynamoAdminSite()
for _model in (Artist, Frame, Gallery, Loan, Painting, Sketch):
    site.register(_model, type("StudioAdmin", (DynamoModelAdmin,), {}))

all_sites.discard(site)  # the checks look at all of them
urlpatterns = [path("admin/", site.urls)]


@pytest.fixture
def client(table: Table) -> Any:
    """The site as a superuser sees it."""
    found = Client()
    found.force_login(get_user_model()._default_manager.create_superuser("admin", "admin@example.com", "secret"))
    with override_settings(ROOT_URLCONF=__name__):
        yield found


def test_the_page_lists_what_goes_along(client: Client) -> None:
    ann = Artist.objects.create(artist_id="ann")
    Sketch.objects.create(artist=ann, sketch_id="s1")
    page = text_of(client.get("/admin/catalog/artist/ann/delete/"))
    assert "Sketch: Sketch object (ann~~s1)" in page
    assert "Sketchs: 1" in page
    assert client.post("/admin/catalog/artist/ann/delete/", {"post": "yes"}).status_code == 302
    assert not Sketch.objects.filter(artist="ann").exists()


def test_the_page_names_what_protects_and_deletes_nothing(client: Client) -> None:
    ann = Artist.objects.create(artist_id="ann")
    Frame.objects.create(frame_id="f1", sketch_id="x~~y", maker=ann)
    page = text_of(client.get("/admin/catalog/artist/ann/delete/"))
    assert "would require deleting the following protected related objects: Frame: Frame object (f1)" in page
    client.post("/admin/catalog/artist/ann/delete/", {"post": "yes"})
    assert Artist.objects.filter(pk="ann").exists()


def test_an_action_names_what_protects(client: Client) -> None:
    """The page has no confirmation, because the deletion is impossible."""
    gallery = Gallery.objects.create(gallery_id="g")
    Loan.objects.create(loan_id="l", gallery=gallery)
    data = {"action": "delete_selected", "_selected_action": [gallery.pk]}
    page = text_of(client.post("/admin/catalog/gallery/", data))
    assert "would require deleting the following protected related objects: Loan: Loan object (l)" in page


@pytest.mark.filterwarnings("ignore::dynamo_single.exceptions.NotRolledBackWarning")  # the other writer's
def test_what_comes_to_protect_after_the_page_was_shown_is_a_message(client: Client) -> None:
    Gallery.objects.create(gallery_id="g")
    asked = []

    def lend(operation: str, params: Mapping[str, Any]) -> None:
        asked.extend([params] if operation == "Query" and "LOANS#g" in str(params) else [])
        if len(asked) == 2 and len(lent) == 0:  # the page itself has already counted them
            lent.append(True)
            Loan.objects.create(loan_id="l", gallery_id="g")

    lent: list[bool] = []
    with intercept(lend):
        response = client.post("/admin/catalog/gallery/g/delete/", {"post": "yes"})
    assert [str(message) for message in get_messages(response.wsgi_request)] == [
        "Other objects refer to it. Delete them or change their references first. For developers: "
        "Cannot delete catalog.Gallery with pk 'g': catalog.Loan objects refer to it by gallery, for example "
        "pk 'l'. Nothing was written. Delete these objects or change their references first."
    ]
    assert Gallery.objects.filter(pk="g").exists()
