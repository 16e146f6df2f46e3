"""Accessibility: axe-core finds no violations on any page, in four modes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings
from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "node_modules/axe-core/axe.min.js"
#: The rules that pages are held to: WCAG 2.2 at AA, and axe's own advice.
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
#: For each mode: the color scheme, the width in pixels, and the language.
MODES: Mapping[str, tuple[Any, int, str]] = {
    "light": ("light", 1280, "en"),
    "dark": ("dark", 1280, "en"),
    "360 px": ("light", 360, "en"),
    "right to left": ("light", 1280, "ar"),
}
PUBLIC = (
    "",
    "companies/",
    "books/",
    "users/",
    "servers/",
    *(
        f"accounts/{path}"
        for path in (
            "login/",
            "sign_up/",
            "password_reset/",
            "",
            "email_add/",
            "email_change/",
            "phone/",
            "password_change/",
        )
    ),
)


@contextmanager
def shown_in(page: Page, mode: str) -> Iterator[None]:
    """Show the pages of the server in a mode, each with the panel of its costs."""
    scheme, width, language = MODES[mode]
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    with override_settings(LANGUAGE_CODE=language, DYNAMO_SINGLE_COSTS={"ADMIN_PANEL": True}):
        yield


def violations(page: Page) -> dict[str, list[str]]:
    """Return the rules that a page violates, each with the elements that do."""
    page.evaluate(AXE.read_text())
    found = page.evaluate(
        "tags => axe.run(document, {resultTypes: ['violations'], runOnly: {type: 'tag', values: tags}})", RULES
    )
    return {
        each["id"]: [f"{' '.join(map(str, node['target']))}: {node['failureSummary']}" for node in each["nodes"]]
        for each in found["violations"]
    }


@pytest.mark.parametrize("mode", MODES)
def test_no_page_of_the_admin_violates_a_rule(signed_in: Page, paths: list[str], mode: str) -> None:
    """Django's pages and ours, with something on them."""
    found = {}
    with shown_in(signed_in, mode):
        for path in paths:
            signed_in.goto(f"/admin/{path}")
            found[path] = violations(signed_in)
    assert {path: rules for path, rules in found.items() if rules} == {}


@pytest.mark.parametrize("mode", MODES)
def test_no_page_of_the_accounts_violates_a_rule(signed_in: Page, mode: str) -> None:
    """The demo's pages for its users."""
    found = {}
    with shown_in(signed_in, mode):
        for path in PUBLIC:
            signed_in.goto(f"/{path}")
            found[path] = violations(signed_in)
    assert {path: rules for path, rules in found.items() if rules} == {}
