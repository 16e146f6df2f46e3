"""The panel with the cost of a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings

from dynamo_single import models
from dynamo_single.admin.log import LogEntry
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Person
from tests.contract.conftest import Pages, Registering, text_of
from tests.unit.declaring import declare, forgotten

COSTS = "dynamo_single.view_costs"


@pytest.fixture(autouse=True)
def panel() -> Iterator[None]:
    """The settings have the panel on."""
    with override_settings(DYNAMO_SINGLE_COSTS={"ADMIN_PANEL": True}):
        yield


def panel_of(response: Any) -> str:
    """The panel of a page."""
    found = re.search(r'<details class="dynamo-panel".*</details>', response.content.decode(), flags=re.DOTALL)
    return found[0] if found else ""


def test_a_page_lists_its_requests(pages: Pages) -> None:
    """With the session's and the user's, and the index that a list reads."""
    shown = panel_of(pages.get("directory/company/"))
    assert re.findall(r"<tr><td>(\w+)</td><td>(gs1)?", shown) == [("GetItem", ""), ("GetItem", ""), ("Query", "gs1")]
    assert "gs1pk = &#x27;COMPANY&#x27;" in shown


def test_the_panel_sends_nothing_itself(pages: Pages) -> None:
    """A page costs what it costs without."""
    with assert_requests(["GetItem", "GetItem", "Query"]):
        pages.client.get("/admin/directory/company/")


def test_the_page_stays_whole(pages: Pages) -> None:
    """The panel is at its end."""
    content = pages.get("directory/company/").content.decode()
    assert content.rstrip().endswith("</html>")
    assert content.count("</body>") == 1


def test_session_keys_are_masked(pages: Pages) -> None:
    """A session's key grants access."""
    content = pages.get("").content.decode()
    assert "SESSIONHASH#•••" in content
    assert str(pages.client.session.session_key) not in content


@pytest.fixture
def vault() -> Iterator[Any]:
    """A model whose primary key contains a secret."""
    with forgotten():
        yield declare("Vault", ("VAULT#{token}", "#METADATA"), token=models.UnicodeAttribute())


def test_key_of_log_masks_secret_pk(registered: Registering, vault: Any) -> None:
    """The history of an object reads the partition that contains its ``pk``."""
    vault.objects.create(token="open-sesame")
    shown = panel_of(registered(vault).get("catalog/vault/open-sesame/history/"))
    assert "LOG#OBJECT#catalog.vault#•••" in shown
    assert "sesame" not in shown


@pytest.mark.parametrize(("label", "hides"), [("catalog.vault", True), ("directory.company", False), ("gone.x", True)])
def test_log_is_not_searched_by_secret_pk(pages: Pages, vault: Any, label: str, hides: bool) -> None:
    """A search by its beginning would reveal the rest letter by letter."""
    key = f"LOG#OBJECT#{label}#open".replace("#", "%23")
    assert [pages.get(f"dynamodb/table/?{asked}={key}").status_code == 400 for asked in ("begins", "pk")] == [hides] * 2
    assert pages.get(f"dynamodb/table/?begins=LOG%23OBJECT%23{label}%23").status_code == 200
    text = LogEntry.objects.filter(object_type=label, object_id="open").explain()
    assert (f"LOG#OBJECT#{label}#•••" in text) == hides


def test_keys_are_left_out_where_the_settings_say_so(pages: Pages) -> None:
    """They may hold personal data."""
    Company.objects.create(company_id="acme", name="Acme")
    with override_settings(DYNAMO_SINGLE_COSTS={"ADMIN_PANEL": True, "SHOW_KEYS": False}):
        shown = panel_of(pages.get("directory/company/acme/change/"))
    assert "GetItem" in shown
    assert "acme" not in shown


def test_keys_are_shown(pages: Pages) -> None:
    """The panel shows the keys that the page has read."""
    company = Company.objects.create(company_id="acme", name="Acme")
    Person.objects.create(company=company, person_id="anna", name="Anna")
    assert "COMPANY#acme" in panel_of(pages.get("directory/company/acme/change/"))


@pytest.mark.parametrize("permissions", [("directory.view_company",), (COSTS, "directory.view_company")])
def test_the_panel_has_a_permission_of_its_own(staff: Any, permissions: tuple[str, ...]) -> None:
    """A user with a list's view permission cannot see its plan."""
    shown = panel_of(staff(*permissions).get("directory/company/"))
    assert bool(shown) is (COSTS in permissions)


def test_the_panel_is_off_by_default(pages: Pages) -> None:
    """For everybody."""
    with override_settings(DYNAMO_SINGLE_COSTS={}):
        assert not panel_of(pages.get("directory/company/"))


def test_a_page_of_nobody_has_no_panel(pages: Pages) -> None:
    """The login page, for instance."""
    pages.client.logout()
    assert not panel_of(pages.client.get("/admin/login/"))
    assert "Log in" in text_of(pages.client.get("/admin/login/"))
