"""Computations on matches after reading: annotations, groups, distinct rows or dates.

A ``Computation`` is a value in the state of a queryset, and ``rows`` executes it. This module does not depend on plans,
or on the requests of aggregates.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator

from msgspec import Struct

from dynamo_single.orm.results.columns import Columns, Shape
from dynamo_single.orm.results.measures import Measure
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.where.arguments import leaves_of


class Dates(Struct, frozen=True):
    """The periods of one attribute's values: dates, or datetimes in a time zone."""

    attribute: str
    kind: str
    zone: datetime.tzinfo | None
    descending: bool


class Computation(Struct, frozen=True):
    """``measures`` of each group, or of each object without ``groups``; or ``dates``.

    ``output`` contains the names of a row, and ``shape`` makes it; without a shape there are objects.
    """

    measures: tuple[Measure, ...] = ()
    groups: Columns | None = None
    dates: Dates | None = None
    output: tuple[str, ...] = ()
    shape: Shape | None = None

    @property
    def aliases(self) -> tuple[str, ...]:
        """The names of the measures."""
        return tuple(measure.alias for measure in self.measures)

    @property
    def makes_rows(self) -> bool:
        """Whether a result represents several objects, so that a slice does not select objects."""
        return self.groups is not None or self.dates is not None

    def __str__(self) -> str:
        """Return the computation in words, for ``explain()``."""
        if self.dates is not None:
            return f"cut off to the {self.dates.kind} of {self.dates.attribute}"
        measures = ", ".join(map(str, self.measures))
        if self.groups is None:
            return f"annotated with {measures}"
        names = ", ".join(self.groups.names)
        return f"grouped by {names} with {measures}" if measures else f"distinct {names}"


def distinct_rows(model: type[DynamoModel], columns: Columns | None) -> Computation | None:
    """Return the computation of distinct rows; ``None`` if the columns contain the identity, which is unique."""
    if columns is None or _contains_identity(model, columns):
        return None
    groups = columns if columns.paths else columns.without_places(model)
    return Computation(groups=groups, output=columns.names, shape=columns.shape)


def repeats_rows(model: type[DynamoModel], computation: Computation, columns: Columns | None) -> bool:
    """Return whether rows of a computation can be equal, because they lack what they are computed for."""
    if computation.shape is None or computation.dates is not None:
        return False
    if computation.groups is not None:
        return not {*computation.groups.names} <= {*computation.output}
    return columns is None or not _contains_identity(model, columns)


def _contains_identity(model: type[DynamoModel], columns: Columns) -> bool:
    # A path begins at a reference, which may be a part of the identity.
    named = {name for number, name in enumerate(columns.attributes) if number not in columns.paths}
    return not named.isdisjoint(("pk", model._meta.pk.attname)) or named.issuperset(registry.layout_of(model).identity)


def names_computed(computation: Computation, conditions: Iterable[object]) -> bool:
    """Return whether conditions name computed values: SQL's HAVING."""
    return any(
        not isinstance(each, tuple) or str(each[0]).partition("__")[0] in computation.aliases
        for each in leaves_of(conditions)
    )


def explain_requests(computation: Computation | None) -> Iterator[tuple[str, str]]:
    """Yield the requests for each object that is returned, for ``explain()``."""
    for measure in computation.measures if computation is not None else ():
        if measure.children:
            yield "then", f"{measure}: one Query with Select=COUNT for each object"
