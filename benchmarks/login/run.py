"""What does a login cost, beside the same on SQLite?

``python -m benchmarks.login.run [--size SIZE] [--json FILE]`` posts the login page, with the lockout and the
session that the demo has, and with Django's own user and session on SQLite in memory. CPU of the server's process.
"""

from __future__ import annotations

from benchmarks.harness.pages import row_of
from benchmarks.harness.report import Report, Size, main


def measure(size: Size) -> Report:
    """One login."""
    row = row_of("login", "benchmarks.login.page", repeat=40, size=size)
    return Report("Server CPU of a login, as a multiple of Django on SQLite", "seconds", [row])


if __name__ == "__main__":
    main(__doc__, measure)
