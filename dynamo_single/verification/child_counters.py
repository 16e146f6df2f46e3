"""Counters of children: each is the number of live children that are stored."""

from __future__ import annotations

from collections.abc import Iterator

from dynamo_single.orm.effects import child_counters
from dynamo_single.orm.items import hydration
from dynamo_single.orm.requests.actions import Update, as_read
from dynamo_single.orm.schema import registry
from dynamo_single.table.table import Table
from dynamo_single.verification.findings import Finding, Subject


def inquire(table: Table, subject: Subject) -> Iterator[Finding]:
    """The counters of an item that are wrong: a COUNT Query for each counter, a second one where they differ.

    Children that are written between the two readings are no mistake; what is left of that is held to by the repair.
    """
    counters = registry.counters_of(subject.model)
    if not counters:
        return
    obj = hydration.instance(subject.model, {name: dict(value) for name, value in subject.item.items()})
    for counter in counters:
        if child_counters.count(subject.model, counter.name, obj.pk) == getattr(obj, counter.name):
            continue
        fresh = hydration.reload(obj)
        number = child_counters.count(subject.model, counter.name, obj.pk)
        held = getattr(fresh, counter.name)
        if number == held or getattr(hydration.reload(obj), counter.name) != held:
            continue
        condition = as_read(fresh._stored, (counter.attr_name,))
        repair = Update(subject.key, set={counter.attr_name: {"N": str(number)}}, condition=condition)
        text = f"{counter.name} is {held}, and there are {number} {counter.children}."
        yield Finding("counter", subject.key, text, (repair,))
