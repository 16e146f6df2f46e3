"""What does a page of the admin's changelist cost, compared with SQLite?

``python -m benchmarks.changelist.run [--size SIZE] [--json FILE]`` requests the list of 100 companies from the
demo's admin, and from Django's admin on SQLite in memory. It measures the CPU of the server's process.
"""

from __future__ import annotations

from benchmarks.harness.pages import row_of
from benchmarks.harness.report import Report, Size, main


def measure(size: Size) -> Report:
    """Measure one page."""
    row = row_of("list of 100 companies", "benchmarks.changelist.page", repeat=20, size=size)
    return Report("Server CPU of the admin's list, as a multiple of Django on SQLite", "seconds", [row])


if __name__ == "__main__":
    main(__doc__, measure)
