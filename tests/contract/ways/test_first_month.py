"""Every query of a shop's first month has SQLite's result, as written or in memory."""

from __future__ import annotations

import pytest

from tests.contract.ways.collected import KINDS
from tests.contract.ways.month import IN_MEMORY, QUERIES, Asked
from tests.contract.ways.shop import Shop


@pytest.mark.parametrize("name", QUERIES)
def test_query_of_the_first_month_gives_djangos_result(shops: tuple[Shop, Shop], name: str) -> None:
    ours, theirs = shops
    ask = QUERIES[name]
    if name in IN_MEMORY:
        with pytest.raises(KINDS, match=r"\.allow_in_memory\(limit=1000\)"):
            ask(Asked(ours, in_memory=False))
    assert ask(Asked(ours, in_memory=name in IN_MEMORY)) == ask(Asked(theirs, in_memory=False))
