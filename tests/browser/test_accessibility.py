"""Accessibility: axe-core finds no violations on any page, in four modes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings
from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "node_modules/axe-core/axe.min.js"
#: The rules for pages: WCAG 2.2 at AA, and axe's own advice.
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
#: For each mode: the color scheme, the width in pixels, and the language.
MODES: Mapping[str, tuple[Any, int, str]] = {
    "light": ("light", 1280, "en"),
    "dark": ("dark", 1280, "en"),
    "360 px": ("light", 360, "en"),
    "right to left": ("light", 1280, "ar"),
}
#: Parts of Django's pages that our templates cannot correct: rules, with parts of their elements' selectors.
DJANGO = {
    "aria-prohibited-attr": (".help-tooltip",),  # the script of the two lists of a many-to-many relation
    "aria-input-field-name": ("select2",),  # the script of autocompletion
    "empty-table-header": ("_set-heading",),  # the template of tabular inlines, and of their inputs
    "label": ("_set-",),
    "select-name": ("_set-",),
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
    page.add_init_script(path=AXE)
    with override_settings(LANGUAGE_CODE=language, DYNAMO_SINGLE_COSTS={"ADMIN_PANEL": True}):
        yield


def violations(page: Page, addresses: Iterable[str]) -> dict[str, list[str]]:
    """Return the rules and elements by which pages violate them, each with the addresses."""
    found: dict[str, list[str]] = {}
    for address in addresses:
        page.goto(address)
        result = page.evaluate(
            "tags => axe.run(document, {resultTypes: ['violations'], runOnly: {type: 'tag', values: tags}})", RULES
        )
        for each in result["violations"]:
            for node in each["nodes"]:
                target = node["target"][0]
                if not any(part in target for part in DJANGO.get(each["id"], ())):
                    found.setdefault(f"{each['id']}: {target}: {node['failureSummary']}", []).append(address)
    return found


@pytest.mark.parametrize("mode", MODES)
def test_pages_of_the_admin_violate_no_rule(signed_in: Page, paths: list[str], mode: str) -> None:
    """Django's pages and ours, with something on them."""
    with shown_in(signed_in, mode):
        assert violations(signed_in, (f"/admin/{path}" for path in paths)) == {}


@pytest.mark.parametrize("mode", MODES)
def test_pages_of_the_demo_violate_no_rule(signed_in: Page, mode: str) -> None:
    """The pages of the accounts, and the public ones."""
    with shown_in(signed_in, mode):
        assert violations(signed_in, (f"/{path}" for path in PUBLIC)) == {}
