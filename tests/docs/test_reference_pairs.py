"""The page of pairs is generated from the table of pairs."""

from __future__ import annotations

from tests.contract.pairs import page
from tests.docs.pages import ROOT


def test_page_of_pairs_is_up_to_date() -> None:
    assert (ROOT / "docs/reference" / "pairs.md").read_text() == page.text(), "Run python -m tests.contract.pairs.page."
