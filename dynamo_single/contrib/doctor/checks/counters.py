"""Counters of children: each equals the number of stored live children."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext_noop as _

from dynamo_single.contrib.doctor.findings import Finding, Recount, Subject
from dynamo_single.orm.effects import counters as effects_counters
from dynamo_single.orm.items import decode
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table.flow import pause, run
from dynamo_single.table.table import Table
from dynamo_single.translated import sentence


def inquire(table: Table, subject: Subject) -> Iterator[Finding]:
    """Yield the wrong counters of an item: a COUNT Query for each counter.

    If the number differs, the check reads the children twice, and the item after each of these reads. If an index
    serves the children, it waits a second between the two reads. If the results differ, another process is writing, and
    the check does not report an error. The check does not write, so it can miss a child that another process creates
    and deletes in between. The repair counts again with a marker.
    """
    counters = effects_counters.own_counters(subject.model)
    if not counters:
        return
    obj = decode.instance(subject.model, {name: dict(value) for name, value in subject.item.items()})
    for each in counters:
        name = each.name
        if run(each.count(obj.pk)) == _stored_number(obj, name):
            continue
        before = run(each.snapshot(obj.pk))
        held = _stored_number(decode.reload(obj), name)
        run(pause(each.index_lag()))
        number = before.number
        if number == held or run(each.snapshot(obj.pk)) != before:
            continue
        if _stored_number(decode.reload(obj), name) != held:
            continue
        recount = Recount(each, obj.pk)
        attribute = next((one for one in registry.counters_of(subject.model) if one.attr_name == name), None)
        if attribute is None:
            said = sentence(
                _("%(name)s is %(held)s, but %(number)s objects refer to it."),
                name=name,
                held=held,
                number=number,
            )
        else:
            said = sentence(
                _("%(name)s is %(held)s, but there are %(number)s %(children)s."),
                name=attribute.name,
                held=held,
                number=number,
                children=attribute.children,
            )
        yield Finding("counter", subject.key, said, recount=recount)


def _stored_number(obj: DynamoModel, name: str) -> int:
    return int(obj._stored.get(name, {"N": "0"})["N"])
