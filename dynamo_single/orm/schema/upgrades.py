"""Schema versions, which an earlier release had: ``Meta.schema_version``, and functions that upgraded items in reads.

A migration upgrades the items of earlier versions instead (``UpgradeItems``). This module does not send requests.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from msgspec import Struct

#: The version of an item without one.
FIRST: Final = 1


class Upgrade:
    """A function from one schema version to the next, in ``Meta.upgrades`` of an earlier release. Deprecated.

    It is no longer called. The check ``E023`` prints the operation that replaces it.
    """

    __slots__ = ("changes", "function")

    def __init__(self, function: Callable[[dict[str, Any]], Mapping[str, Any]], *, changes: Collection[str]) -> None:
        self.function = function
        self.changes = changes


class FormerOptions(Struct, frozen=True):
    """``Meta.schema_version`` and ``Meta.upgrades`` of a model that still declares them."""

    version: object
    upgrades: object

    @classmethod
    def of(cls, meta: object) -> FormerOptions | None:
        """Return the options of a ``class Meta``; ``None`` if it declares neither."""
        found = cls(getattr(meta, "schema_version", None), getattr(meta, "upgrades", None))
        return None if found.version is None and not found.upgrades else found

    def way_out(self, app_label: str, name: str) -> str:
        """Return the sentences that describe the replacement."""
        if self.version in (None, FIRST) and not self.upgrades:
            return "Delete it from class Meta."
        operation = operation_text(name, self.version, self.upgrades)
        return (
            "Delete schema_version and upgrades from class Meta. Move the functions into a migration (manage.py "
            f"makemigrations --empty {app_label}) with the operation {operation}. Run migrate "
            "before you deploy this code."
        )


def operation_text(name: str, version: object, upgrades: object = None) -> str:
    """Return the operation that upgrades the items of earlier versions, as a migration file contains it."""
    functions = upgrades.items() if isinstance(upgrades, Mapping) else ()
    given = ", ".join(f"{start}: {_name(each)}" for start, each in functions) or "1: function, ..."
    return f'migrations.UpgradeItems("{name}", to={version}, upgrades={{{given}}})'


def _name(upgrade: object) -> str:
    function = getattr(upgrade, "function", upgrade)
    return str(getattr(function, "__name__", "function"))
