"""The page of access patterns, its picture, and the command."""

from __future__ import annotations

from io import StringIO
from typing import Any
from xml.etree import ElementTree

import pytest
from django.core.management import call_command

from tests.contract.conftest import Pages, text_of

PATTERNS = "dynamo_single.view_access_patterns"
SVG = "{http://www.w3.org/2000/svg}"


def parsed(text: str) -> ElementTree.Element:
    """A picture as XML; it is our own."""
    return ElementTree.fromstring(text)  # noqa: S314


def test_the_page_lists_what_each_key_answers(pages: Pages) -> None:
    """Without a request."""
    shown = text_of(pages.get("dynamodb/patterns/", sends=[]))
    assert "COMPANY#{company_id}" in shown
    assert 'objects.all().order_by("name")' in shown


def test_the_picture_has_each_key_in_its_index(pages: Pages) -> None:
    """A box for the table and each index."""
    drawn = parsed(pages.get("dynamodb/patterns.svg", sends=[]).content.decode())
    boxes = {group.findall(f"{SVG}text")[0].text: group for group in drawn.findall(f"{SVG}g")}
    assert {"the table itself", "gs1", "gs2"} <= boxes.keys()
    assert any(text.text == "COMPANY" for text in boxes["gs1"].findall(f"{SVG}text"))


def test_the_picture_needs_nothing_that_a_content_security_policy_refuses(pages: Pages) -> None:
    """No style, no script, no address."""
    drawn = pages.get("dynamodb/patterns.svg").content.decode()
    assert not any(word in drawn for word in ("style", "script", "href", "url("))


@pytest.mark.parametrize("path", ["dynamodb/patterns/", "dynamodb/patterns.svg"])
def test_the_pages_have_a_permission_of_their_own(staff: Any, path: str) -> None:
    """403 without it."""
    assert staff("dynamo_single.view_table").get(path).status_code == 403


def test_the_permission_opens_the_page(staff: Any) -> None:
    """And the index leads to it."""
    pages = staff(PATTERNS)
    assert pages.get("dynamodb/patterns/").status_code == 200
    assert b"/admin/dynamodb/patterns/" in pages.get("").content


@pytest.mark.parametrize("path", ["dynamodb/patterns/", "dynamodb/patterns.svg"])
def test_an_alias_that_is_not_declared_is_refused(pages: Pages, path: str) -> None:
    """400."""
    assert pages.get(f"{path}?alias=other").status_code == 400


def test_the_command_prints_a_table_in_markdown(table: object) -> None:
    """Each key has one row."""
    out = StringIO()
    call_command("dynamo_patterns", stdout=out)
    (row,) = (line for line in out.getvalue().splitlines() if line.startswith("| directory.Company | primary "))
    assert row == (
        "| directory.Company | primary |  | `COMPANY#{company_id}` | `#METADATA` | `objects.get(company_id=…)` |"
    )


def test_the_command_draws_the_picture() -> None:
    """The command draws the same picture as the page."""
    out = StringIO()
    call_command("dynamo_patterns", "--svg", stdout=out)
    assert parsed(out.getvalue()).tag == f"{SVG}svg"
