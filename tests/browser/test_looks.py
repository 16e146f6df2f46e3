"""The looks of some pages, compared with small stored images, which ``make screenshots`` updates.

A picture is so small that a letter is less than a pixel of it: other fonts and other dates pass, and another layout or
another colour does not.
"""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import override_settings
from PIL import Image, ImageChops, ImageFilter
from playwright.sync_api import Page

from tests.browser.conftest import SCREENSHOTS

LOOKS = Path(__file__).parent / "looks"
#: The pixels of a stored picture, each the mean of 8 by 8 of the page.
SIZE = (160, 112)
#: A pixel differs by more than this many of 255 steps; so may this share of all.
STEPS = 24
SHARE = 0.03

PAGES = {
    "index": ("", "light", "en"),
    "list": ("directory/company/", "light", "en"),
    "list-dark": ("directory/company/", "dark", "en"),
    "list-right-to-left": ("directory/company/", "light", "ar"),
    "form": ("directory/company/acme/change/", "light", "en"),
    "question": ("directory/company/acme/delete/", "light", "en"),
    "partition": ("dynamodb/table/?pk=COMPANY%23acme", "light", "en"),
}


def small(page: Page) -> Image.Image:
    """Return a small grayscale image of a page."""
    image = Image.open(BytesIO(page.screenshot())).convert("L")
    return image.resize(SIZE, Image.Resampling.BOX).filter(ImageFilter.BoxBlur(1))


def difference(one: Image.Image, other: Image.Image) -> float:
    """Return the share of the pixels that differ."""
    counts = ImageChops.difference(one, other).histogram()
    return sum(counts[STEPS:]) / sum(counts)


@pytest.fixture
def look(signed_in: Page, acme: object) -> Callable[[str], Image.Image]:
    """Take a small picture of one of the pages."""
    signed_in.set_viewport_size({"width": 8 * SIZE[0], "height": 8 * SIZE[1]})

    def taken(name: str) -> Image.Image:
        path, scheme, language = PAGES[name]
        given: Any = scheme
        signed_in.emulate_media(color_scheme=given)
        with override_settings(LANGUAGE_CODE=language):
            signed_in.goto(f"/admin/{path}")
            return small(signed_in)

    return taken


@pytest.mark.parametrize("name", PAGES)
def test_page_looks_as_it_did(name: str, look: Callable[[str], Image.Image]) -> None:
    """Within the tolerance."""
    image = look(name)
    if SCREENSHOTS:
        image.save(LOOKS / f"{name}.png", optimize=True)
    assert difference(image, Image.open(LOOKS / f"{name}.png")) <= SHARE


@pytest.mark.parametrize("change", ["#header { display: none }", "#nav-sidebar { display: none }"])
def test_another_layout_is_seen(change: str, look: Callable[[str], Image.Image], signed_in: Page) -> None:
    """Otherwise the tolerance would be too large."""
    look("list")
    signed_in.add_style_tag(content=change)
    assert difference(small(signed_in), Image.open(LOOKS / "list.png")) > SHARE


def test_numbers_in_pictures_come_before_their_units_in_arabic(signed_in: Page, acme: object) -> None:
    """The first character of a text is at its right end."""
    call_command("dynamo_sample", verbosity=0)
    with override_settings(LANGUAGE_CODE="ar"):
        signed_in.goto("/admin/dynamodb/pictures/")
        texts = signed_in.locator(".dynamo-picture text", has_text="4 ")
        first, last = texts.last.evaluate(
            "text => [0, text.getNumberOfChars() - 1].map(n => text.getStartPositionOfChar(n).x)"
        )
    assert first > last
