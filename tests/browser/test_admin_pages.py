"""All pages of the admin that are ours, on a small screen."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page


def test_no_page_is_wider_than_a_small_screen(
    signed_in: Page, paths: list[str], picture: Callable[[str], None]
) -> None:
    """Long content does not require horizontal scrolling."""
    signed_in.set_viewport_size({"width": 360, "height": 800})
    signed_in.emulate_media(color_scheme="dark")
    wide = []
    for number, path in enumerate(paths):
        signed_in.goto(f"/admin/{path}")
        picture(f"admin-phone-{number:02}")
        if signed_in.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
            wide.append(path)
    assert wide == []
