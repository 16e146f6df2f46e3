"""The demo's data in the admin: each list, each kind of page, and the objects that a deletion includes."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.contrib import admin
from django.urls import reverse

from project.chat.models import Member, Server
from tests.contract.conftest import Pages, text_of

pytestmark = pytest.mark.urls("project.urls")

APPS = ("directory", "records", "service", "chat")


@pytest.mark.usefixtures("demo_data")
def test_every_list_and_every_kind_of_page_can_be_opened(pages: Pages) -> None:
    """No page reports an unsupported query or too many reads."""
    models = [
        model for label in APPS for model in apps.get_app_config(label).get_models() if admin.site.is_registered(model)
    ]
    assert len(models) == 11
    for model in models:
        place = f"{model._meta.app_label}/{model._meta.model_name}"
        listed = pages.get(f"{place}/")
        assert listed.status_code == 200, place
        assert "No key supports" not in text_of(listed), place
        assert listed.context["cl"].result_list, place
        obj = listed.context["cl"].result_list[0]
        change = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_change", args=[obj.pk])
        assert pages.get(change.removeprefix("/admin/")).status_code == 200, place
        assert pages.get(f"{place}/add/").status_code == 200, place


def test_a_server_is_deleted_with_its_members(pages: Pages) -> None:
    server = Server.objects.create(server_id="chess", name="Chess")
    server.users.create(username="Ann")
    asked = pages.get("chat/server/chess/delete/")
    assert "Members: 1" in text_of(asked)
    pages.post("chat/server/chess/delete/", {"post": "yes"})
    assert not Member.objects.filter(server_id="chess").exists()
