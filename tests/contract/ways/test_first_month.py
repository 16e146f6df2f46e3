"""Every query of a shop's first month gives SQLite's result, as it is written, in memory or by a way out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.ways.collected import KINDS, made
from tests.contract.ways.month import IN_MEMORY, QUERIES, REFUSED, Asked
from tests.contract.ways.shop import Shop
from tests.contract.ways.test_ways_followed import ROWS


@pytest.mark.parametrize("name", [name for name in QUERIES if name not in REFUSED])
def test_query_of_the_first_month_gives_djangos_result(shops: tuple[Shop, Shop], name: str) -> None:
    ours, theirs = shops
    ask = QUERIES[name]
    if name in IN_MEMORY:
        with pytest.raises(KINDS, match=r"\.allow_in_memory\(limit=1000\)"):
            ask(Asked(ours, in_memory=False))
    assert ask(Asked(ours, in_memory=name in IN_MEMORY)) == ask(Asked(theirs, in_memory=False))


@pytest.mark.parametrize("name", REFUSED)
def test_refusal_of_the_first_month_has_a_followed_way_out(shops: tuple[Shop, Shop], name: str) -> None:
    """Its message comes from the same place as that of a row, and has the same words for the way out."""
    ours, _ = shops
    row = ROWS[REFUSED[name]]

    def refused(ask: Any) -> str:
        with pytest.raises(KINDS) as error:
            ask()
        return str(error.value)

    with made() as places:
        message = refused(lambda: QUERIES[name](Asked(ours, in_memory=True)))
    with made() as known:
        refused(lambda: row.ask(ours))
    assert places & known, message
