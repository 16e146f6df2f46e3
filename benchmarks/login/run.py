"""What does a login cost, compared with SQLite?

``python -m benchmarks.login.run [--size SIZE] [--json FILE]`` posts the login page with the demo's lockout and
session, and with Django's user and session on SQLite in memory. It measures the CPU of the server's process.
"""

from __future__ import annotations

from benchmarks.harness.pages import row_of
from benchmarks.harness.report import Report, Size, main


def measure(size: Size) -> Report:
    """Measure one login."""
    row = row_of("login", "benchmarks.login.page", repeat=40, size=size)
    return Report("Server CPU of a login, as a multiple of Django on SQLite", "seconds", [row])


if __name__ == "__main__":
    main(__doc__, measure)
