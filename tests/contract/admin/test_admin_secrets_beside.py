"""Secrets outside a model's pages: the panel of requests, the log of costs, and choices of references."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from django.contrib.admin.sites import all_sites
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from django.urls import clear_url_caches, path

from dynamo_single import models
from dynamo_single.admin import DynamoAdminSite, DynamoModelAdmin
from dynamo_single.middleware import RequestCostMiddleware
from dynamo_single.table import Table
from tests.catalog.safes import FOLLOWING, INSIDE, VALUES, Lock, Safe, told
from tests.contract.conftest import Pages
from tests.contract.contrib.table_admin.test_admin_costs import panel_of
from tests.deep import IS_DEEP
from tests.unit.declaring import declare, forgotten

SAFES = "catalog/safe/"
LOCKS = "catalog/lock/"
SECRETS = [*(name for name in VALUES if name != "parent_id"), "parent", *FOLLOWING]
#: For each of three pages: a normal run opens one of them for each secret.
THIRDS = [SECRETS if IS_DEEP else SECRETS[first::3] for first in range(3)]


@pytest.fixture
def safe(table: Table) -> Safe:
    """A safe with every secret, and a lock with two."""
    found: Safe = Safe.objects.create(safe_id="s1", name="Front", **VALUES, **INSIDE)
    Lock.objects.create(safe=found, lock_id="l1", brand="Best", code="swordfish-code")
    Safe.objects.create(safe_id="s2", name="Back")
    return found


@pytest.fixture
def both(pages: Pages, safe: Safe, settings: Any) -> Iterator[Callable[..., Pages]]:
    """Registers safes and locks, or models of a test, on one site, with options of each, and gives the pages."""

    def register(*registered: tuple[Any, dict[str, Any]]) -> Pages:
        site = DynamoAdminSite()
        all_sites.discard(site)  # the checks look at all of them
        for model, options in registered:
            site.register(model, type("OwnAdmin", (DynamoModelAdmin,), options))
        urls: Any = ModuleType("urls")
        urls.urlpatterns = [path("admin/", site.urls)]
        settings.ROOT_URLCONF = urls
        return pages

    yield register
    clear_url_caches()


@pytest.fixture
def vault(table: Table) -> Iterator[Any]:
    """Return a model with a secret in its key, and an object."""
    with forgotten():
        model = declare(
            "Vault",
            ("VAULT#{code}", "#METADATA"),
            {"by_name": models.IndexKey("gs1", "VAULT", "{name}#{code}")},
            code=models.UnicodeAttribute(secret=True),
            name=models.UnicodeAttribute(),
            badge=models.UnicodeAttribute(secret=True, unique=True, null=True),
        )
        model.objects.create(code="swordfish", name="Main", badge="swordfish-badge")
        yield model


# the panel of requests


@pytest.fixture
def panel(settings: Any) -> None:
    """The settings have the panel on, until the fixture of the settings takes back all that a test has set."""
    settings.DYNAMO_SINGLE_COSTS = {"ADMIN_PANEL": True}


@pytest.mark.parametrize("address", ["", "swordfish/change/", "swordfish/delete/"])
@pytest.mark.usefixtures("panel")
def test_panel_masks_keys_of_secrets(both: Callable[..., Pages], vault: Any, address: str) -> None:
    shown = panel_of(both((vault, {})).get(f"catalog/vault/{address}"))

    assert "VAULT" in shown
    assert told(shown) == []


@pytest.mark.usefixtures("panel")
def test_panel_masks_claim_on_secret(both: Callable[..., Pages], vault: Any) -> None:
    """An invalid form has read the claim."""
    sent = {"code": "swordfish-other", "name": "Other", "badge": "swordfish-badge"}
    shown = panel_of(both((vault, {})).post("catalog/vault/add/", sent))

    assert "UNIQUE#" in shown
    assert told(shown) == []


@pytest.mark.parametrize("name", THIRDS[0])
@pytest.mark.usefixtures("panel")
def test_panel_of_list_has_no_secret(both: Callable[..., Pages], name: str) -> None:
    """This includes columns, searches, filters and orders with any parameters."""
    options = {"list_display": ("name", name), "search_fields": (name, "name"), "ordering": (name,)}
    shown = panel_of(both((Safe, options)).get(f"{SAFES}?q=Front"))

    assert "SAFE" in shown
    assert [leak for leak in told(shown) if name != "parent"] == []


# the log of costs


@pytest.fixture
def log_of(caplog: pytest.LogCaptureFixture, settings: Any) -> Callable[[Callable[[], Any]], str]:
    """Return the log of the middleware for a view that repeats a call three times."""
    settings.DYNAMO_SINGLE_COSTS = {"WARN_REPEATED": 2, "WARN_SINGLE_READS": 2, "WARN_REQUESTS": 1}

    def log(do: Callable[[], Any]) -> str:
        def view(request: HttpRequest) -> HttpResponse:
            for _ in range(3):
                do()
            return HttpResponse()

        caplog.set_level(logging.DEBUG)
        RequestCostMiddleware(view)(RequestFactory().get("/safes/"))
        return "\n".join(record.getMessage() for record in caplog.records)

    return log


def test_log_masks_key_of_secret(log_of: Callable[..., str], vault: Any) -> None:
    logged = log_of(lambda: vault.objects.get(pk="swordfish"))

    assert "pk='VAULT#•••'" in logged
    assert told(logged) == []


def test_log_masks_claim_on_secret(log_of: Callable[..., str], vault: Any) -> None:
    logged = log_of(lambda: vault.objects.get(badge="swordfish-badge"))

    assert "the same GetItem was sent more than once" in logged
    assert told(logged) == []


@pytest.mark.parametrize("name", VALUES)
def test_log_has_no_secret(log_of: Callable[..., str], safe: Safe, name: str) -> None:
    logged = log_of(lambda: (list(Safe.objects.filter(name="Front", **{name: VALUES[name]})), safe.refresh_from_db()))

    assert "pk='SAFE#s1'" in logged
    assert told(logged) == []


# popups of references


@pytest.mark.parametrize("name", THIRDS[1])
def test_autocomplete_does_not_search_secret(both: Callable[..., Pages], name: str) -> None:
    pages = both((Safe, {"search_fields": (name, "name")}), (Lock, {"autocomplete_fields": ("safe",)}))
    asked = "autocomplete/?app_label=catalog&model_name=lock&field_name=safe&term="
    value = VALUES.get(name, "swordfish")
    found = pages.get(f"{asked}Front").content.decode()

    assert [each["text"] for each in json.loads(found)["results"]] == ["Front"]
    assert told(found) == []
    assert pages.get(f"{asked}{value}").json()["results"] == []


@pytest.mark.parametrize("name", THIRDS[2])
def test_popup_of_raw_id_does_not_tell_secret(both: Callable[..., Pages], name: str) -> None:
    """The list in a popup cannot return another attribute, or compare with a secret."""
    pages = both((Safe, {"list_display": ("name", name)}), (Lock, {"raw_id_fields": ("safe",)}))
    shown = pages.get(f"{SAFES}?_popup=1&_to_field=safe_id")

    assert shown.status_code == 200
    assert told(shown.content.decode()) == []
    assert pages.get(f"{SAFES}?_popup=1&_to_field={name}").status_code == 400
    assert pages.get(f"{SAFES}?_popup=1&_to_field=safe_id&{name}__gte=a").status_code == 400


@pytest.mark.parametrize("option", ["raw_id_fields", "autocomplete_fields", "radio_fields"])
def test_field_of_reference_has_no_secret(both: Callable[..., Pages], option: str) -> None:
    """The field has the safe's name, or its key."""
    named: Any = {"safe": 1} if option == "radio_fields" else ("safe",)
    pages = both(
        (Safe, {"search_fields": ("name",)}),
        (Lock, {option: named, "fields": ("safe", "lock_id", "brand")}),
    )
    page = pages.get(f"{LOCKS}add/").content.decode()

    assert 'name="safe"' in page
    assert told(page) == []
