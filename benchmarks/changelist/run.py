"""What does a page of the admin's list cost, beside the same on SQLite?

``python -m benchmarks.changelist.run [--size SIZE] [--json FILE]`` asks for the list of 100 companies, as the
demo's admin shows it and as Django's own does on SQLite in memory. CPU of the server's process.
"""

from __future__ import annotations

from benchmarks.harness.pages import row_of
from benchmarks.harness.report import Report, Size, main


def measure(size: Size) -> Report:
    """One page."""
    row = row_of("list of 100 companies", "benchmarks.changelist.page", repeat=20, size=size)
    return Report("Server CPU of the admin's list, as a multiple of Django on SQLite", "seconds", [row])


if __name__ == "__main__":
    main(__doc__, measure)
