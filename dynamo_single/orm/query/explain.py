"""The parts of ``explain()`` after the plan: the reads of related objects, and the total cost.

``orm.requests.explain`` describes the plan. This module must not create or change plans.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from dynamo_single.costs import Cost, Costs, counted
from dynamo_single.exceptions import NoAccessPattern
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.conditions.terms import Condition, join
from dynamo_single.orm.plan.plan import Plan
from dynamo_single.orm.query.state import state_of
from dynamo_single.orm.requests.compiler import compile_plan
from dynamo_single.orm.requests.explain import describe, reads_text
from dynamo_single.orm.results import objects, one_query, prefetch, related, rows
from dynamo_single.orm.results.state import DEFAULT_LIMIT, QueryState, RelatedReads
from dynamo_single.orm.schema.references import references
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table.flow import run
from dynamo_single.table.redirects import SentRequest, listening
from dynamo_single.table.request import MAX_BATCH_KEYS

if TYPE_CHECKING:
    from dynamo_single.orm.expressions import interpreter, subqueries
    from dynamo_single.orm.relations import joining
else:
    interpreter = LazyModule("dynamo_single.orm.expressions.interpreter")
    joining = LazyModule("dynamo_single.orm.relations.joining")
    subqueries = LazyModule("dynamo_single.orm.expressions.subqueries")

#: How many requests are reported one by one before the rest is only counted.
SHOWN = 20


def steps_before(state: QueryState) -> Iterator[str]:
    """Yield the description of each step over relations, which was read before the query itself."""
    for queryset, found in state.asked.steps.read if state.asked.steps is not None else ():
        step = state_of(queryset)
        plan = rows.plan(step) if step.interpretation is None else interpreter.plan(step)
        requests = compile_plan(plan, table_name=step.table.name, limit=objects.first_limit(step, plan))
        yield describe(plan, requests, afterwards=[("found", counted(found, "key"))])


def announce_related(state: QueryState, plan: Plan, together: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the reads of related objects; ``together`` names those included in the objects' own request."""
    related_reads = state.related_reads
    if related_reads.references:
        shown = ", ".join(map(repr, related_reads.references))
        yield "then", f"select_related({shown}): one request for each {MAX_BATCH_KEYS} objects of each reference"
    others, listed = [], {}
    for each in related_reads.prefetch_related:
        if each in together:
            continue
        queryset = related.listing_of(state, each)
        if queryset is None:
            others.append(repr(getattr(each, "prefetch_to", each)))
        else:
            listed[str(each)] = state_of(queryset)
    for adjacent in one_query.adjacent_querysets(listed):
        shown = ", ".join(map(repr, adjacent))
        cost = "by itself, a Query" if plan.kind == "get" else "1 + N, a Query for each object"
        yield "then", f"prefetch_related({shown}): {cost}"
    if others:
        shown = ", ".join(others)
        yield "then", f"prefetch_related({shown}): depends on the objects; explain(execute=True) lists its requests"


def computed_steps(state: QueryState) -> Iterator[tuple[str, str]]:
    """Yield the reads of referenced objects, joins and subqueries, and the limits that all steps share."""
    asked = state.asked
    if asked.columns is not None and asked.columns.paths:
        shown = ", ".join(map(repr, asked.columns.names))
        yield "then", f"values({shown}): one request for each {MAX_BATCH_KEYS} objects of each reference"
    if state.interpretation is None:
        return
    reads = [*joining.reads_of(state), *subqueries.reads_of(state)]
    for each in reads:
        yield "then", f"{each.words}: {_read_text(each.queryset, each.where)}"
    if reads:
        held = f"{asked.in_memory or DEFAULT_LIMIT} items and {asked.in_memory_bytes} bytes"
        yield "limit", f"the matches and all further steps together hold at most {held}"


def _read_text(queryset: Any, where: Condition) -> str:
    """Return how the objects of a step are read, whatever their values are."""
    step = state_of(queryset).unordered()
    if step.is_empty:
        return "nothing"
    try:
        return reads_text(objects.plan_of_matches(replace(step, where=join([step.where, where]))))
    except NoAccessPattern:
        return "no key supports it, so that all objects are read"


def deletion_lines(model: type[DynamoModel], plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield a note for each reference by which a deletion finds these objects on an index that may be late."""
    if plan.index is None or plan.key is None:
        return
    for field in references(model):
        if field.attname in plan.key.partition.variables:
            target, on_delete = field.related_model._meta.label, field.remote_field.on_delete.__name__
            yield (
                "deletion",
                f"the deletion of a {target} sends the same query twice for {field.name}'s "
                f"on_delete={on_delete}: an index may not contain the latest writes",
            )


def execute(results: Iterable[object], related_reads: RelatedReads) -> Iterator[tuple[str, str]]:
    """Read all results and their related objects, and yield the cost of each request. Discard the results."""
    total = Costs()
    own, others = _CostListener(total), _CostListener(total)
    with listening(own):
        found = list(results) if related_reads else sum(1 for _ in results)
    if isinstance(found, list):
        with listening(others):
            run(prefetch.read_related(found, related_reads))
        found = len(found)
    yield from (("sent", text) for text in own.lines())
    yield from (("along", text) for text in others.lines())
    yield "total", f"{total}: {counted(found, 'result')}"


class _CostListener:
    """A listener for requests, also from several threads. It keeps the first costs and the total."""

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
        """Yield a line for each of the first requests, and the number of the others."""
        yield from map(str, self.first)
        if self.number > len(self.first):
            yield f"… and {self.number - len(self.first)} more"
