"""Which of Django's test apps are run, and what the managers of their models may do besides reading by keys."""

from __future__ import annotations

from dataclasses import dataclass

#: The indexes of the table.
INDEXES = tuple(f"gs{number}" for number in range(1, 10))

IN_MEMORY = ("allow_in_memory",)


@dataclass(frozen=True, slots=True)
class App:
    """One app: what every manager calls on its querysets, and whether it runs with ``make test`` too."""

    managers: tuple[str, ...] = ()
    fast: bool = False


APPS = {
    "basic": App(IN_MEMORY, fast=True),
    "get_or_create": App(IN_MEMORY, fast=True),
    "lookup": App(IN_MEMORY, fast=True),
    "ordering": App(IN_MEMORY, fast=True),
}
