"""Choices of references are read once per page for all of its forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from django import forms
from django.contrib.admin.sites import all_sites
from django.test import RequestFactory
from django.urls import path

from dynamo_single.admin import DynamoAdminSite, DynamoModelAdmin, DynamoStackedInline, DynamoTabularInline, references
from dynamo_single.testing import assert_requests, intercept
from tests.catalog.models import Sample
from tests.catalog.servers import GameMember, GamePlayer, GameServer
from tests.contract.conftest import Pages

CHANGE = "catalog/gameserver/1/change/"
#: The server, its members, and the players to choose from.
ONCE = ["GetItem", "Query", "Query"]


class MemberInline(DynamoTabularInline):
    """Members of a server, each with its player; one empty row, and one for the page's script."""

    model = GameMember
    extra = 1
    fields = ("player", "role")


class MemberStack(DynamoStackedInline):
    """The same, one below the other."""

    model = GameMember
    fields = ("player", "role")


class ServerAdmin(DynamoModelAdmin):
    """A page of a server."""

    fields = ("name",)
    inlines = (MemberInline,)


class SampleAdmin(DynamoModelAdmin):
    """A list with an editable reference."""

    list_display = ("sample_id", "parent")
    list_editable = ("parent",)


site = DynamoAdminSite()
site.register(GameServer, ServerAdmin)
site.register(GamePlayer, type("PlayerAdmin", (DynamoModelAdmin,), {}))
site.register(Sample, SampleAdmin)
all_sites.discard(site)  # the checks look at all of them
urlpatterns = [path("admin/", site.urls)]


@pytest.fixture
def served(catalog: Pages) -> Pages:
    """The admin with a server of twelve members."""
    GameServer.objects.create(server_id="1", name="Gaming")
    for number in range(12):
        GamePlayer.objects.create(player_id=str(number), username=f"P{number:02}")
        GameMember.objects.create(server_id="1", player_id=str(number))
    return catalog


def options(page: Any, key: str) -> int:
    """Return the number of fields that offer an object."""
    return int(page.content.decode().count(f'<option value="{key}"'))


@pytest.mark.parametrize("inline", [MemberInline, MemberStack])
def test_rows_of_an_inline_share_their_choices(
    served: Pages, monkeypatch: pytest.MonkeyPatch, inline: type[Any]
) -> None:
    """A single Query serves all rows, including empty ones."""
    monkeypatch.setattr(ServerAdmin, "inlines", (inline,))
    page = served.get(CHANGE, sends=ONCE)
    assert options(page, "3") == 12 + inline.extra + 1
    assert page.content.decode().count(" selected>P03</option>") == 1


def test_a_form_that_comes_back_reads_its_choices_once(served: Pages) -> None:
    """With its errors, after the server and its members."""
    sent = {
        "name": "",
        "gamemember_set-TOTAL_FORMS": "2",
        "gamemember_set-INITIAL_FORMS": "0",
        "gamemember_set-0-role": "x",
        "gamemember_set-1-role": "y",
    }
    page = served.post(CHANGE, sent, sends=ONCE)
    assert options(page, "3") == 3


def test_two_inlines_share_what_both_offer(served: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """A single Query serves the whole page."""
    monkeypatch.setattr(ServerAdmin, "inlines", (MemberInline, MemberStack))
    assert options(served.get(CHANGE, sends=ONCE), "3") == 12 + 2 + 12 + 1


def test_the_next_page_reads_them_again(served: Pages) -> None:
    """The choices contain new objects and omit deleted ones."""
    served.get(CHANGE)
    GamePlayer.objects.create(player_id="new", username="New")
    GamePlayer.objects.get(player_id="3").delete()
    page = served.get(CHANGE, sends=ONCE)
    assert (options(page, "new"), options(page, "3")) == (13, 0)


def test_a_row_with_choices_of_its_own_shows_those(served: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forms with the same narrower choices share a separate read."""

    class OwnForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            if self.instance.player_id in ("3", "5"):
                field: Any = self.fields["player"]
                field.queryset = GamePlayer.objects.filter(username__startswith="P03")

    monkeypatch.setattr(MemberInline, "form", OwnForm)
    page = served.get(CHANGE, sends=[*ONCE, "Query"])
    assert (options(page, "3"), options(page, "4")) == (14, 12)


def test_of_too_many_objects_no_row_reads_past_the_bound(served: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row has a field for the key, after one Query for all."""
    monkeypatch.setattr(references, "MAX_CHOICES", 2)
    page = served.get(CHANGE, sends=ONCE).content.decode()
    assert "<option" not in page
    assert page.count('-player" value=') == 12


def test_rows_of_a_list_share_their_choices(served: Pages) -> None:
    """With ``list_editable``, the page reads the list, the referenced objects and the choices."""
    one = Sample.objects.create(text="one")
    for _ in range(4):
        Sample.objects.create(text="child", parent=one)
    page = served.get("catalog/sample/", sends=["Query", "GetItem", "Query"])
    assert options(page, one.pk) == 5


def test_what_could_not_be_read_is_read_again(served: Pages) -> None:
    """An error leaves nothing behind that would pass for all there is."""
    inline, request = MemberInline(GameServer, site), RequestFactory().get("/")
    field = inline.formfield_for_foreignkey(GameMember._meta.get_field("player"), request)

    def refuse(operation: str, params: Mapping[str, Any]) -> None:
        raise RuntimeError("refused")

    with intercept(refuse), pytest.raises(RuntimeError):
        sum(1 for _ in field.choices)
    with assert_requests(1):
        assert sum(1 for _ in field.choices) == sum(1 for _ in field.choices) == 13
