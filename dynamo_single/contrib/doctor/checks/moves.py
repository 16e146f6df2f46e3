"""Interrupted moves: objects with the marker of a move. Others may still refer to their former identity."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext_noop as _

from dynamo_single.contrib.doctor.findings import Finding, Subject
from dynamo_single.table import names
from dynamo_single.table.table import Table
from dynamo_single.translated import sentence


def due(table: Table, subject: Subject) -> Iterator[Finding]:
    """Yield a finding for an object whose ``move_tree()`` was interrupted."""
    if subject.model is not None and names.MOVED_FROM in subject.item:
        text = _("Some references to it still use its old key. Call its move_tree(), or run manage.py dynamo_rebuild.")
        yield Finding("move due", subject.key, sentence(text))
