"""The admin of many-to-many relations with generated edges: two lists with a search, and autocomplete."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

import pytest
from django.contrib.admin.sites import all_sites
from django.db.models import Q
from django.urls import path

from dynamo_single.admin import DynamoAdminSite, DynamoModelAdmin, DynamoTabularInline, references
from tests.catalog.servers import GameMember, GamePlayer, GameServer, GameTag
from tests.contract.conftest import Pages

site = DynamoAdminSite()


class MemberInline(DynamoTabularInline):
    """The declared edges of a server."""

    model = GameMember
    extra = 1
    fields = ("player", "role")


class ServerAdmin(DynamoModelAdmin):
    """An admin with two lists for tags, and a search for links."""

    fields = ("name", "tags", "links")
    filter_horizontal = ("tags",)
    autocomplete_fields = ("links",)
    search_fields = ("name",)
    inlines = (MemberInline,)


class PlayerAdmin(DynamoModelAdmin):
    """An admin for the references of inlines."""

    search_fields = ("username",)


site.register(GameServer, ServerAdmin)
site.register(GamePlayer, PlayerAdmin)
site.register(GameTag, type("TagAdmin", (DynamoModelAdmin,), {}))
all_sites.discard(site)  # the checks look at all of them
urlpatterns = [path("admin/", site.urls)]

INLINES = {
    "gamemember_set-TOTAL_FORMS": "1",
    "gamemember_set-INITIAL_FORMS": "0",
    "gamemember_set-0-server": "1",
    "gamemember_set-0-player": "1",
    "gamemember_set-0-role": "admin",
}


@pytest.fixture
def served(catalog: Pages) -> Pages:
    """The admin with a server, a player and three tags."""
    GameServer.objects.create(server_id="1", name="Gaming")
    GameServer.objects.create(server_id="2", name="Chess")
    GamePlayer.objects.create(player_id="1", username="John")
    for word in ("fun", "new", "old"):
        GameTag.objects.create(word=word)
    return catalog


def test_the_checks_of_the_admin_find_nothing_wrong() -> None:
    assert [message for each in site._registry.values() for message in each.check()] == []


def test_the_edges_that_are_made_are_called_as_by_django() -> None:
    """Inlines show them by their verbose name instead of the class name."""
    options = GameServer.tags.through._meta
    assert str(options.verbose_name_plural) == "gameserver-gametag relationships"


def test_the_page_has_both_lists_and_the_search(served: Pages) -> None:
    server = GameServer.objects.get(pk="1")
    server.tags.add("fun")
    page = served.get("catalog/gameserver/1/change/").content.decode()
    assert "selectfilter" in page
    assert '<option value="fun" selected>fun</option>' in page
    assert '<option value="old">old</option>' in page
    assert "admin-autocomplete" in page


def test_what_is_chosen_is_saved(served: Pages) -> None:
    data: dict[str, Any] = {"name": "Games", "tags": ["fun", "old"], "links": ["2"], **INLINES}
    response = served.post("catalog/gameserver/1/change/", data)
    assert response.status_code == 302, response.content.decode()
    server = GameServer.objects.get(pk="1")
    assert {tag.word for tag in server.tags.all()} == {"fun", "old"}
    assert [str(each) for each in server.links.all()] == ["Chess"]
    assert [(member.username, member.role) for member in GameMember.objects.filter(server="1")] == [("John", "admin")]
    served.post(
        "catalog/gameserver/1/change/", {**data, "tags": ["new"], "links": [], "gamemember_set-TOTAL_FORMS": "0"}
    )
    assert {tag.word for tag in server.tags.all()} == {"new"}
    assert not server.links.exists()


def test_the_search_finds_by_what_a_key_has(served: Pages) -> None:
    answer = served.get("autocomplete/?term=Che&app_label=catalog&model_name=gameserver&field_name=links")
    assert answer.json()["results"] == [{"id": "2", "text": "Chess"}]


@pytest.mark.parametrize("limit", [{"word__startswith": "f"}, lambda: Q(word="fun"), Q(word__in=["fun", "far"])])
def test_limited_choices_are_offered_and_taken_and_no_others(
    served: Pages, monkeypatch: pytest.MonkeyPatch, limit: Any
) -> None:
    """``limit_choices_to`` is a filter, or a function that returns one for each form."""
    monkeypatch.setattr(GameServer._meta.get_field("tags").remote_field, "limit_choices_to", limit)
    page = served.get("catalog/gameserver/1/change/").content.decode()
    assert [word for word in ("fun", "new", "old") if f'<option value="{word}"' in page] == ["fun"]
    sent = {"name": "Games", "links": [], **INLINES}
    refused = served.post("catalog/gameserver/1/change/", {**sent, "tags": ["old"]})
    assert "tags" in refused.context_data["adminform"].form.errors
    assert served.post("catalog/gameserver/1/change/", {**sent, "tags": ["fun"]}).status_code == 302
    assert [tag.word for tag in GameServer.objects.get(pk="1").tags.all()] == ["fun"]


def _serve(settings: Any, **options: Any) -> None:
    """Serve a page of servers that links to others, by an admin of these options."""
    own = DynamoAdminSite()
    all_sites.discard(own)
    own.register(GameServer, type("Servers", (DynamoModelAdmin,), {"fields": ("name", "links"), **options}))
    urls: Any = ModuleType("urls")
    urls.urlpatterns = [path("admin/", own.urls)]
    settings.ROOT_URLCONF = urls


def test_an_order_that_no_key_serves_is_left_out_of_the_choices(served: Pages, settings: Any) -> None:
    """The admin of the chosen objects has this order for its own list."""
    _serve(settings, ordering=("-server_id",))
    page = served.get("catalog/gameserver/1/change/").content.decode()
    assert re.findall(r'<option value="(\w+)"', page) == ["2", "1"]


def test_where_no_key_lists_what_to_choose_from_the_keys_are_typed(
    served: Pages, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The form accepts keys with commas between them, and reads the objects on submission."""
    monkeypatch.setattr(references, "is_served_by_keys", lambda queryset: False)
    _serve(settings)
    GameServer.objects.get(pk="1").links.add("1", "2")
    page = served.get("catalog/gameserver/1/change/").content.decode()
    assert re.findall(r'name="links" value="([^"]*)"', page) == ["1,2"]
    refused = served.post("catalog/gameserver/1/change/", {"name": "Games", "links": "2,nothing"})
    assert "links" in refused.context_data["adminform"].form.errors
    assert served.post("catalog/gameserver/1/change/", {"name": "Games", "links": "2"}).status_code == 302
    assert [server.pk for server in GameServer.objects.get(pk="1").links.all()] == ["2"]


@pytest.mark.parametrize("options", [{}, {"filter_horizontal": ("links",)}])
def test_of_more_than_a_select_offers_the_keys_are_typed(
    served: Pages, settings: Any, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    """The form does not read a million objects."""
    monkeypatch.setattr(references, "MAX_CHOICES", 1)
    _serve(settings, **options)
    GameServer.objects.get(pk="1").links.add("1", "2")
    page = served.get("catalog/gameserver/1/change/").content.decode()
    assert "<option" not in page
    assert re.findall(r'name="links_keys" value="([^"]*)"', page) == ["1,2"]
    assert served.post("catalog/gameserver/1/change/", {"name": "Games", "links_keys": "2"}).status_code == 302
    assert [server.pk for server in GameServer.objects.get(pk="1").links.all()] == ["2"]
