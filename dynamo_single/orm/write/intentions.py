"""What a caller wants of one object, as a value."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.orm.conditions.terms import EVERYTHING
from dynamo_single.orm.effects.terms import NO_TERMS, Terms
from dynamo_single.orm.requests.changes import Change, with_names
from dynamo_single.orm.schema.layout import Twin


class Save(Struct, frozen=True):
    """Write what a stored object's attributes are by now.

    ``only`` names the attributes to look at, which are written also if they did not change; ``None`` is all of them, of
    which those are written that changed. Automatic times always follow, and one that is named is written by itself,
    with its value if it is ``given``. A document that is ``given`` is written whole. ``changes`` are made besides those
    that attributes are set to. ``raw`` (fixtures) writes values as they are given. ``force`` names all attributes, and
    computes every key, which fills an index that is younger than the item. Without ``repeat`` what is named is written
    if it differs: the object was read just now.
    """

    only: frozenset[str] | None = None
    changes: tuple[Change, ...] = ()
    given: frozenset[str] = frozenset()
    terms: Terms = NO_TERMS
    raw: bool = False
    force: bool = False
    repeat: bool = True

    def by(self, twins: Sequence[Twin]) -> Save:
        """The same of what is being renamed: it may be older than what is known of the names in use."""
        names = {twin.other: twin.used for twin in twins}
        return replace(self, terms=self.terms.by(twins), changes=with_names(self.changes, names))

    @property
    def looks_for_changes(self) -> bool:
        """Whether there is something to do only if an attribute was set since the object was read."""
        asked = self.only is not None or self.force or self.changes or self.terms.demanded != EVERYTHING
        return not asked


SAVE = Save()
