"""What a queryset reads after its own items, and what all of it costs when it is really evaluated.

For ``explain()``: what it prints about plans is ``explain``'s subject.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from dynamo_single.costs import Cost, Costs, counted
from dynamo_single.orm.results import related as collections
from dynamo_single.table.limits import MAX_BATCH_KEYS
from dynamo_single.table.table import SentRequest, listening

#: How many requests are told one by one before the rest is only counted.
SHOWN = 20


def announce_related(queryset: Any) -> Iterator[tuple[str, str]]:
    """What will be read along with the objects of a queryset, afterwards."""
    references = collections.related_names(queryset)
    if references:
        shown = ", ".join(map(repr, references))
        yield "then", f"select_related({shown}): one request for each {MAX_BATCH_KEYS} objects of each reference"
    if queryset._prefetch_related_lookups:
        shown = ", ".join(repr(getattr(each, "prefetch_to", each)) for each in queryset._prefetch_related_lookups)
        yield "then", f"prefetch_related({shown}): depends on the objects; explain(execute=True) tells its requests"


def execute(queryset: Any) -> Iterator[tuple[str, str]]:
    """Evaluate a queryset as ``list()`` would, and tell what each request cost; the results are thrown away."""
    clone = queryset._chain()
    total = Costs()
    own, related = _Costly(total), _Costly(total)
    with listening(own):
        results = clone._iterable_class(clone)
        found = list(results) if clone._reads_related() else sum(1 for _ in results)
    if isinstance(found, list):
        with listening(related):
            clone._read_related(found)
        found = len(found)
    yield from (("sent", text) for text in own.lines())
    yield from (("along", text) for text in related.lines())
    yield "total", f"{total}: {counted(found, 'result')}"


class _Costly:
    """Listens to requests, of several threads too; keeps the cost of the first ones, and adds up all."""

    def __init__(self, total: Costs) -> None:
        self.total = total
        self.first: list[Cost] = []
        self.number = 0
        self._lock = threading.Lock()

    def __call__(self, sent: SentRequest) -> None:
        cost = Cost.of(sent)
        self.total.add(cost)
        with self._lock:
            self.number += 1
            if len(self.first) < SHOWN:
                self.first.append(cost)

    def lines(self) -> Iterator[str]:
        """A line for each of the first requests, and their number beyond."""
        yield from map(str, self.first)
        if self.number > len(self.first):
            yield f"… and {self.number - len(self.first)} more"
