"""Every public name of a declaration is in a row of the table, or is listed here with a reason."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from dynamo_single import models
from dynamo_single.orm.model.metaclass import OWN_OPTIONS

#: Names without a row. An option that does not affect stored values or times has no combinations.
WITHOUT_ROW = {
    "Attribute": "the base of all of them",
    "Upgrade": "nothing calls it any more: `E023` reports it",
    "ContentTypeAttribute": "a `ReferenceAttribute` to `ContentType`, whose objects are computed",
    "Attribute.blank": "forms only",
    "Attribute.editable": "forms only",
    "Attribute.error_messages": "forms only",
    "Attribute.help_text": "forms only",
    "Attribute.max_length": "forms only",
    "Attribute.validators": "forms only",
    "Attribute.verbose_name": "forms only",
    "Key": "every model has one",
    "IndexKey": "every model has one",
    "Manager": "every model has one",
    "QuerySet": "every model has one",
    "Model": "the base of all of them",
    "FETCH_ONE": "how related objects are read",
    "FETCH_PEERS": "how related objects are read",
    "FETCH_RAISE": "how related objects are read",
    "Meta.item_type": "a name",
    "Meta.table": "pairs are of one table",
    "Meta.shared": "a check refuses what another program would break (tests/unit/checks/test_shared_checks.py)",
    "Attribute.in_key_only": "tables of other programs only (tests/contract/adoption)",
}


def public_names() -> Iterator[str]:
    """Return the classes and constants of ``models``, all options of attributes, and those of ``Meta``."""
    yield from models.__all__
    for name in inspect.signature(models.Attribute.__init__).parameters:
        if name != "self":
            yield f"Attribute.{name}"
    yield from (f"Meta.{name}" for name in sorted(OWN_OPTIONS))


def covered(rows: Any) -> set[str]:
    """The names that rows are about."""
    return {name for row in rows for name in row.covers}
