"""How many items the next page of a query reads, where a filter left too few of the last one. It sends nothing."""

from __future__ import annotations

from dynamo_single.table.limits import MAX_PAGE_ITEMS

#: A page that a filter may empty grows by this factor each time, so that a rare match costs few requests.
PAGE_GROWTH = 4


def next_limit(limit: int) -> int:
    """How many items the next page reads, where the last one held too few matches: at most what a page can hold."""
    return min(limit * PAGE_GROWTH, MAX_PAGE_ITEMS)
