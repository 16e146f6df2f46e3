"""The table of pairs is complete."""

from __future__ import annotations

from tests.contract.pairs.coverage import WITHOUT_ROW, covered, public_names
from tests.contract.pairs.page import ELSEWHERE, PAGE
from tests.contract.pairs.table import CAPABILITIES


def test_every_public_name_has_a_row() -> None:
    """A new name joins the table, or is listed with a reason."""
    missing = {*public_names()} - covered(CAPABILITIES.values()) - WITHOUT_ROW.keys()
    assert missing == set()


def test_rows_name_what_is_there() -> None:
    public = {*public_names()}
    assert {name for name in WITHOUT_ROW if name not in public} == set()


def test_page_names_tests_that_are_there() -> None:
    root = PAGE.parents[2]
    assert [path for _, paths in ELSEWHERE for path in paths if not (root / path).is_file()] == []
