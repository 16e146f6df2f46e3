"""The app's style sheets: they work from right to left, and under themes without Django's variables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SHEETS = sorted(Path("dynamo_single").resolve().glob("**/static/**/*.css"))
each_sheet = pytest.mark.parametrize("path", SHEETS, ids=lambda path: f"{path.parent.name}/{path.name}")


@each_sheet
def test_style_sheet_names_no_side(path: Path) -> None:
    """``inline-start`` and ``inline-end`` are mirrored in Arabic, unlike ``left`` and ``right``."""
    assert (
        re.findall(r"[\w-]*\b(?:left|right)\b(?!-)[^;}]*", re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)) == []
    )


@each_sheet
def test_variables_of_django_have_another_value(path: Path) -> None:
    """A theme may not define them, and the sheet defines its own."""
    text = path.read_text()
    own = set(re.findall(r"(--[\w-]+):", text))
    assert set(re.findall(r"var\((--[\w-]+)\)", text)) - own == set()
