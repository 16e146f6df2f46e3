"""The landmarks and labels that assistive technology needs on our own pages."""

from __future__ import annotations

import re

import pytest

from tests.contract.conftest import Pages

OWN = ("table/", "table/?pk=COMPANY%23a", "pictures/", "patterns/", "health/", "log/", "jobs/")


@pytest.mark.parametrize("path", OWN)
def test_own_pages_have_one_breadcrumb_landmark(pages: Pages, path: str) -> None:
    """Django's base template has it already."""
    assert pages.get(f"dynamodb/{path}").content.count(b'<nav aria-label="Breadcrumbs">') == 1


@pytest.mark.parametrize("path", OWN)
def test_own_tables_have_no_empty_headers(pages: Pages, path: str) -> None:
    found = re.findall(r"<th[^>]*>(.*?)</th>", pages.get(f"dynamodb/{path}").content.decode(), re.DOTALL)
    assert [text for text in found if not re.sub(r"<[^>]+>|\s", "", text)] == []


@pytest.mark.parametrize("path", OWN)
def test_own_inputs_have_labels(pages: Pages, path: str) -> None:
    """Each by its identifier, or by words of its own."""
    content = pages.get(f"dynamodb/{path}").content.decode()
    inputs = re.findall(r"<(?:input|select|textarea)\b[^>]*>", content[content.index('id="content"') :])
    labels = {*re.findall(r'<label for="([^"]+)"', content)}
    unnamed = [
        each
        for each in inputs
        if not re.search(r'type="(hidden|submit)"|aria-label=', each)
        and not labels & {*re.findall(r'\bid="([^"]+)"', each)}
    ]
    assert unnamed == []
