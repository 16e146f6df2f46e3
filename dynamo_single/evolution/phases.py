"""The phases of each kind of change: the parts that code writes and reads, the passes, and the rejected code.

A *phase* is one revision of the table's state. The command moves a change by one phase (a *bump*), waits until no
process goes by the phase before, and runs the passes of the new phase. A change is reverted by the same phases in the
other direction. A run that finds a change in some phase begins with the passes of that phase for its own direction,
regardless of the direction of the former run: a revert of a stopped conversion first converts back.

A *part* of an item is one of these facets: *absent* (no code writes it), *written* (all code writes it, none reads it)
or *public* (all code may read it). A bump never moves a part from absent to public or back. ``tests/protocol`` checks
every history of these tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct, field

from dynamo_single.orm.rollout.states import PUBLIC, WRITTEN, Facet

#: The code that cannot use the model: none, the code before the migration, the code after it, or both.
Refused = Literal["nobody", "before", "after", "everybody"]
#: The work of a pass on each item: see the operations' ``tasks()``.
Pass = Literal["fill", "copy", "copy back", "drop old", "drop new", "drop", "convert", "convert back", "count"]


class Phase(Struct, frozen=True):
    """One revision of a change.

    ``parts`` has the facet of each part that is not absent. ``passes`` run after the wait when the change comes from
    the phase before, and ``back`` when it is reverted, from the phase after or from the same phase.
    """

    parts: Mapping[str, Facet] = field(default_factory=dict)
    passes: tuple[Pass, ...] = ()
    back: tuple[Pass, ...] = ()
    refused: Refused = "nobody"


Phases = tuple[Phase, ...]

#: No item is written otherwise: a new model, a renamed class, an attribute without values.
DECLARE: Final[Phases] = (Phase(), Phase())
#: ``ChangeItems`` without ``repeat``: one pass without an effect on code.
CHANGE_ONCE: Final[Phases] = (Phase(back=("convert back",)), Phase(passes=("fill",)))
ADD_KEY: Final[Phases] = (
    Phase(back=("drop new",)),
    Phase({"new key": WRITTEN}, passes=("fill",)),
    Phase({"new key": PUBLIC}),
)
#: One index has one key of an item, so that the old and the new one are never written together.
ALTER_KEY: Final[Phases] = (
    Phase({"old key": PUBLIC}),
    Phase({"old key": WRITTEN}, back=("copy back",)),
    Phase({"new key": WRITTEN}, passes=("fill",)),
    Phase({"new key": PUBLIC}),
)
REMOVE_KEY: Final[Phases] = (
    Phase({"old key": PUBLIC}),
    Phase({"old key": WRITTEN}, back=("copy back",)),
    Phase(passes=("drop old",)),
)
#: Code never reads the old name depending on whether an item has it, and only the last pass removes the name.
RENAME: Final[Phases] = (
    Phase({"old": PUBLIC}, back=("drop new",)),
    Phase({"old": PUBLIC, "new": WRITTEN}, passes=("copy",)),
    Phase({"old": WRITTEN, "new": PUBLIC}, back=("copy back",)),
    Phase({"new": PUBLIC}, passes=("drop old",)),
)
#: A value that every item has: a default, a computed or copied value, or the result of ``ChangeItems(repeat=True)``.
ADD_VALUE: Final[Phases] = (
    Phase({}, back=("drop new",)),
    Phase({"new": WRITTEN}, passes=("fill",), refused="before"),
    Phase({"new": PUBLIC}, refused="before"),
)
#: A stored value: code that lacks the attribute leaves it as it is.
REMOVE_VALUE: Final[Phases] = (
    Phase({"old": PUBLIC}),
    Phase(passes=("drop old",), refused="before"),
)
#: A computed or copied value: code that lacks the attribute would leave a wrong one, until no code reads it.
REMOVE_DERIVED: Final[Phases] = (
    Phase({"old": PUBLIC}, refused="after"),
    Phase({"old": WRITTEN}, back=("fill",), refused="after"),
    Phase(passes=("drop old",), refused="before"),
)
#: A number that code maintains: counters, and the counts of checked references.
ADD_NUMBER: Final[Phases] = (
    Phase(back=("drop new",)),
    Phase({"number": WRITTEN}, passes=("count",), refused="before"),
    Phase({"number": PUBLIC}, refused="before"),
)
REMOVE_NUMBER: Final[Phases] = (
    Phase({"number": PUBLIC}, refused="after"),
    Phase({"number": WRITTEN}, back=("count",), refused="after"),
    Phase(passes=("drop old",), refused="before"),
)
ADD_UNIQUE: Final[Phases] = (
    Phase(back=("drop new",)),
    Phase({"claims": WRITTEN}, passes=("drop", "fill"), refused="before"),
    Phase({"claims": PUBLIC}, refused="before"),
)
REMOVE_UNIQUE: Final[Phases] = (
    Phase({"claims": PUBLIC}, refused="after"),
    Phase({"claims": WRITTEN}, back=("drop", "copy back"), refused="after"),
    Phase(passes=("drop old",), refused="before"),
)
#: A conversion under one name, other primary keys, or a rename on which claims or other items depend.
PAUSE: Final[Phases] = (
    Phase({"old": PUBLIC}, refused="after"),
    Phase(passes=("convert",), back=("convert back",), refused="everybody"),
    Phase({"new": PUBLIC}, refused="before"),
)


def effect_on_code(table: Phases) -> str:
    """Return how a change affects running code until all of it has the migration."""
    if any(phase.refused == "everybody" for phase in table):
        return "unavailable to all code while items are converted, and to old code afterwards"
    if any(phase.refused == "before" for phase in table):
        return "unavailable to old code"
    if any(phase.parts.get("old key") == WRITTEN for phase in table):
        return "lists by this key are unavailable" + (" until then" if "new key" in table[-1].parts else " to old code")
    return "online"


#: All tables by their names, as ``tests/protocol`` checks them.
KINDS: Final[Mapping[str, Phases]] = {
    name: value for name, value in vars().copy().items() if name.isupper() and isinstance(value, tuple)
}
