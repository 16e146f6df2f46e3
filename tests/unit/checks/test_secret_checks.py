"""Checks of contradictions to a secret: options of an admin, and copies that declare otherwise."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.sites import AdminSite, all_sites

from dynamo_single import models
from dynamo_single.admin import DynamoModelAdmin
from dynamo_single.checks.secrets import check_admins, check_copies
from tests.catalog.safes import Safe
from tests.unit.declaring import declare, forgotten


def warnings_of(model: Any, **options: Any) -> list[str]:
    """Return the warnings about such an admin."""
    site = AdminSite("checked")
    site.register(model, type("Checked", (DynamoModelAdmin,), options))
    try:
        found = [each for each in check_admins() if each.obj is type(site.get_model_admin(model))]
    finally:
        all_sites.discard(site)
    assert {each.id for each in found} <= {"dynamo_single.W916"}
    return [each.msg for each in found]


@pytest.mark.parametrize(
    "options",
    [
        {"list_display": ("name", "text")},
        {"list_display": ("name", "parent__text")},
        {"list_display": ("name", "text"), "list_editable": ("text",)},
        {"list_filter": ("pin",)},
        {"list_filter": ("papers__apiKey",)},
        {"search_fields": ("^text",)},
        {"search_fields": ("text__exact",)},
        {"ordering": ("-integer",)},
        {"ordering": ("folded",)},
        {"date_hierarchy": "day"},
    ],
)
def test_option_with_secret_is_reported(options: dict[str, Any]) -> None:
    (message,) = warnings_of(Safe, **options)

    assert all(f"{option}: " in message for option in options if option != "list_display" or len(options) == 1)


def test_other_options_are_not_reported() -> None:
    options = {"list_display": ("name", "pin_text"), "list_filter": ("name",), "search_fields": ("name", "safe_id")}

    assert warnings_of(Safe, ordering=("name",), pin_text=lambda self, safe: "", **options) == []


def test_key_of_secret_is_reported() -> None:
    with forgotten():
        model = declare("Chest", ("CHEST#{code}", "#METADATA"), code=models.UnicodeAttribute(secret=True))
        (message,) = warnings_of(model)

    assert message.startswith("The primary key of catalog.Chest contains a secret")


def test_project_has_no_warnings() -> None:
    assert check_admins() == check_copies() == []


@pytest.mark.parametrize(
    "copy",
    [
        lambda: models.CanonicalAttribute(source="code", secret=False),
        lambda: models.ExtractedAttribute("papers__token", secret=False),
    ],
)
def test_copy_that_is_declared_no_secret_is_reported(copy: Any) -> None:
    with forgotten():
        declare(
            "Copying",
            ("COPYING#{copying_id}", "#METADATA"),
            copying_id=models.UnicodeAttribute(),
            code=models.UnicodeAttribute(secret=True),
            papers=models.MapAttribute(),
            again=copy(),
        )
        (warning,) = check_copies()

    assert warning.id == "dynamo_single.W917"
    assert warning.msg.startswith("catalog.Copying.again is declared with secret=False, and repeats ")
