"""What a computed attribute is given out of a document: a function of values that a migration file can name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dynamo_single.exceptions import ConfigurationError
from dynamo_single.item_migrations.stored import Written
from dynamo_single.orm.schema.attributes.extracted import steps_into, value_at


@dataclass(frozen=True)
class Extract(Written):
    """What lies at a place of a document, for ``AddAttribute(compute=Extract("data__publisher"))``.

    The path is as ``ExtractedAttribute`` takes it. What has no such place is left without the attribute; a value of
    another kind than the attribute's is a failure of its item. The document stays as it is.
    """

    path: str

    def __post_init__(self) -> None:
        first, *steps = self.path.split("__")
        if not first or not steps or "" in steps:
            raise ConfigurationError(
                f'Extract({self.path!r}) names no place inside a document: write "data__publisher", for example.'
            )

    def __call__(self, values: Mapping[str, object]) -> Any:
        """The value of an item, by the values of its attributes."""
        first, *steps = self.path.split("__")
        document = values.get(first)
        return value_at(document, steps_into("L" if isinstance(document, list) else "M", steps))
