"""If all keys of a model need a tenant, its list prompts for the tenant first, and stores the choice."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.catalog.models import Coupon
from tests.catalog.servers import GameMember, GamePlayer, GameServer
from tests.contract.conftest import Pages, Registering, shown, text_of

LIST = "catalog/gamemember/"


@pytest.fixture
def members(registered: Registering) -> Pages:
    """Two servers with a member each."""
    for key in "12":
        GameServer.objects.create(server_id=key, name=f"Server {key}")
        GamePlayer.objects.create(player_id=key, username=f"p{key}")
        GameMember.objects.create(server_id=key, player_id=key, role=f"role {key}")
    return registered(GameMember, list_display=("role",))


def test_list_asks_for_tenant(members: Pages) -> None:
    """A page with the choices instead of an error, and a form that leads to the list."""
    page = members.get(LIST)
    assert page.status_code == 200
    assert "Choose: server" in text_of(page)
    assert 'name="server__server_id__exact"' in page.content.decode()


def test_chosen_tenant_is_listed_by_its_key(members: Pages) -> None:
    """The list reads one partition, and has a link to choose another tenant."""
    page = members.get(f"{LIST}?server__server_id__exact=1")
    assert shown(page, "role") == ["role 1"]
    assert "Choose another: server" in text_of(page)


def test_chosen_tenant_is_remembered(members: Pages) -> None:
    """The next visit shows the same list, and keeps the other parameters."""
    members.get(f"{LIST}?server__server_id__exact=2")
    assert members.get(LIST, sends=[]).headers["Location"] == f"/admin/{LIST}?server__server_id__exact=2"
    address = members.get(f"{LIST}?q=x").headers["Location"]
    assert address == f"/admin/{LIST}?q=x&server__server_id__exact=2"


def test_same_tenant_writes_no_session(members: Pages) -> None:
    """Only another tenant does."""
    members.get(f"{LIST}?server__server_id__exact=2")
    members.get(f"{LIST}?server__server_id__exact=2", sends=["Query"])


def test_another_tenant_is_chosen(members: Pages) -> None:
    """The page to choose shows the stored tenant as chosen."""
    members.get(f"{LIST}?server__server_id__exact=2")
    page = members.get(f"{LIST}?_choose=1")
    assert page.status_code == 200
    assert 'value="2"' in page.content.decode()


def test_chooser_keeps_other_filters(members: Pages) -> None:
    """Hidden inputs of its form contain them."""
    page = members.get(f"{LIST}?role__exact=x").content.decode()
    assert re.search(r'<input type="hidden" name="role__exact" value="x">', page)


def test_chooser_requires_permission(members: Pages, staff: Any) -> None:
    """The list requires the same permission."""
    assert staff("directory.view_company").get(f"{LIST}?_choose=1").status_code in (302, 403, 404)


def test_list_of_single_objects_has_no_tenant(registered: Registering) -> None:
    """A key of one object is no tenant."""
    assert registered(Coupon).get("catalog/coupon/").status_code == 400


def test_tenant_of_many_choices_is_typed(members: Pages, registered: Registering) -> None:
    """A select does not contain more objects than the limit of the list."""
    pages = registered(GameMember, list_max_in_memory=1)
    page = pages.get(LIST).content.decode()
    assert re.search(r'<input type="text" id="id_tenant" name="server__server_id__exact"', page)
