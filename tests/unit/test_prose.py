"""The words that ``tests/prose.py`` looks for: what it finds, what it leaves, and that there are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import prose
from tests.deep import by_make_check


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("The page behind this one.", "after"),
        ("What cannot be\n mended is refused.", "repair"),
        ("Claims that it gives free.", "release"),
        ("As is said below.", "stated"),
        ("A wrong name is told before anything is sent.", "reported"),
        ("The write is begun anew.", "again"),
    ],
)
def test_a_listed_word_is_found(text: str, instead: str) -> None:
    """Also across the end of a line."""
    assert [found[2] for found in prose.found(prose.Text(1, text))] == [instead]


@pytest.mark.parametrize(
    "text",
    [
        "A claim was left behind.",
        "An index lags behind the table.",
        "Behind a proxy that is the proxy's.",
        "It was changed behind the app's back.",
        "An object that was behind follows.",
        "The caller is told how many there are.",
        "amended, recommended",
    ],
)
def test_a_word_is_left_where_it_is_right(text: str) -> None:
    """English has uses of its own for some of them."""
    assert list(prose.found(prose.Text(1, text))) == []


def test_comments_and_texts_of_a_module_are_read_and_its_names_are_not(tmp_path: Path) -> None:
    """A docstring, a comment and a message, each with its line; code in an f-string is code."""
    module = tmp_path / "module.py"
    module.write_text('"""One.\n\nMended."""\nmended = behind = 1  # anew\nsaid = f"{mended}, given free"\n')
    found = [line for text in prose.texts(module) for line, _, _ in prose.found(text)]
    assert found == [3, 4, 5]


@by_make_check
def test_no_module_and_no_page_has_a_listed_word() -> None:
    """What ``make lint`` asks, so that who runs the tests alone hears of it as well."""
    assert prose.mistakes(prose.tracked()) == []
