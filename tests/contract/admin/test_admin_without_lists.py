"""If no key lists a model, a save or a deletion redirects to a useful page."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.utils import quote

from project.directory.models import Company
from tests.catalog.models import Product
from tests.catalog.servers import GameMember, GamePlayer, GameServer
from tests.contract.admin.test_admin_merging import form_of
from tests.contract.conftest import Pages, Registering, text_of

LIST = "/admin/catalog/gamemember/"


@pytest.fixture
def served(registered: Registering) -> Pages:
    """Return an admin of members, which only a server or a player can list."""
    GameServer.objects.create(server_id="1", name="Gaming")
    GamePlayer.objects.create(player_id="2", username="Ada")
    return registered(GameMember, fields=("server", "player", "role"))


@pytest.fixture
def member(served: Pages) -> str:
    """The address of a member's page."""
    member = GameMember.objects.create(server_id="1", player_id="2")
    return f"catalog/gamemember/{quote(member.pk)}"


def test_who_has_added_an_object_is_on_its_page(served: Pages) -> None:
    """With the message of success."""
    page = served.client.post(f"{LIST}add/", {"server": "1", "player": "2", "role": "owner"}, follow=True)
    assert page.redirect_chain == [(f"{LIST}1~~2/change/", 302)]
    assert "was added successfully" in text_of(page)


def test_who_has_saved_an_object_is_on_its_page(served: Pages, member: str) -> None:
    """The page shows the success message, without further requests."""
    sent = {**form_of(served.get(f"{member}/change/")), "role": "owner"}
    answer = served.post(f"{member}/change/", sent, sends=["GetItem", "TransactWriteItems"])
    assert answer.url == f"/admin/{member}/change/"
    assert "was changed successfully" in text_of(served.client.get(answer.url))


def test_who_has_deleted_an_object_is_on_the_page_of_its_app(served: Pages, member: str) -> None:
    """With the message of success."""
    page = served.client.post(f"/admin/{member}/delete/", {"post": "yes"}, follow=True)
    assert page.redirect_chain == [("/admin/catalog/", 302)]
    assert "was deleted successfully" in text_of(page)


def test_what_went_to_the_trash_is_shown_there(registered: Registering) -> None:
    """The object's own page offers the restoration; a permanent deletion leads to the app's page."""
    Product.objects.create(product_id="p")
    pages = registered(Product)
    shown = pages.client.post("/admin/catalog/product/p/delete/", {"post": "yes"}, follow=True)
    assert shown.redirect_chain == [("/admin/catalog/product/p/change/", 302)]
    assert "was moved to the trash" in text_of(shown)
    gone = pages.client.post("/admin/catalog/product/p/delete/", {"post": "yes"}, follow=True)
    assert gone.redirect_chain == [("/admin/catalog/", 302)]


def test_a_list_by_a_filter_is_led_back_to(served: Pages, member: str) -> None:
    """A server's members, whence one came."""
    came_from = "_changelist_filters=server__exact%3D1"
    sent = form_of(served.get(f"{member}/change/?{came_from}"))
    answer = served.post(f"{member}/change/?{came_from}", sent)
    assert answer.url == f"{LIST}?server__exact=1"


def test_a_popup_is_answered_as_ever(served: Pages, member: str) -> None:
    """The popup closes itself."""
    page = served.post(f"{member}/delete/", {"post": "yes", "_popup": "1"})
    assert page.status_code == 200


@pytest.mark.parametrize("options", [{}, {"ordering": ("founded",)}])
def test_a_model_with_a_list_leads_to_it(registered: Registering, options: dict[str, Any]) -> None:
    """The order of the list does not matter."""
    Company.objects.create(company_id="acme", name="Acme")
    pages = registered(Company, fields=("name",), **options)
    sent = form_of(pages.get("directory/company/acme/change/"))
    assert pages.post("directory/company/acme/change/", sent).url == "/admin/directory/company/"
