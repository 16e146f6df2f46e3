"""Verify how many items went to the trash with an object, as far as an index lists them, and are still there."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext_noop as _

from dynamo_single.contrib.doctor.findings import Finding, Subject
from dynamo_single.orm.effects import trash_counts
from dynamo_single.orm.effects.counters import LAG
from dynamo_single.orm.items import decode
from dynamo_single.orm.requests.actions import Update, as_read
from dynamo_single.orm.write import trash
from dynamo_single.table import names
from dynamo_single.table.flow import pause, run
from dynamo_single.table.table import Table
from dynamo_single.translated import sentence


def inquire(table: Table, subject: Subject) -> Iterator[Finding]:
    """Yield a finding if the number of items that went to the trash with an object is wrong.

    Counting sends a Query for each kind of children. If the number differs, they are counted again a second later, when
    the index shows all writes. The number is too high if something else has deleted items, and the object can then not
    be restored.
    """
    number = trash_counts.trash_count(subject.item)
    if number is None or names.DELETED_AT not in subject.item or not trash_counts.has_trash_count(subject.model):
        return
    obj = decode.instance(subject.model, {name: dict(value) for name, value in subject.item.items()})
    found = run(trash.count_batch(obj))
    if found == number:
        return
    run(pause(0.0 if table.settings.is_local else LAG))
    again = decode.reload(obj)
    if again._stored.get(names.DELETED_ALONG) != subject.item[names.DELETED_ALONG]:
        return
    if run(trash.count_batch(obj)) != found:
        return
    said = sentence(
        _("%(name)s is %(held)s, but the trash contains %(number)s items that were deleted with it."),
        name=names.DELETED_ALONG,
        held=number,
        number=found,
    )
    condition = as_read(subject.item, (names.DELETED_AT, names.DELETED_ALONG))
    repair = Update(subject.key, set={names.DELETED_ALONG: {"N": str(found)}}, condition=condition)
    yield Finding("counter", subject.key, said, repair=(repair,))
