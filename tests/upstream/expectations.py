"""The list of upstream's tests that do not pass: ``expected_failures.txt``.

Each reason has a paragraph with its limit and its tests. There are three kinds of reasons: SQL itself and decisions,
each with the bold words of its line in docs/limitations.md, and failures that are not done yet. ``[5.2]`` before a test
means that it fails only on that release.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FILE = Path(__file__).with_name("expected_failures.txt")
LIMITATIONS = ROOT / "docs" / "limitations.md"
DECISIONS = ROOT / "docs" / "decisions"
#: The releases of Django that the list is about.
RELEASES = ("5.2", "6.1")
#: Features of SQL, or of an SQL database as such.
SQL = "SQL itself"
#: All other failures. These tests may pass one day; their number is the remaining work.
NOT_YET = "Not yet"

_HEADING = re.compile(r"== (?P<reason>.+) \((?P<allowed>\d+)\)")
#: A reason: SQL itself or a decision with its number, each with the words of the limitations, or not yet.
_REASON = re.compile(rf"(?:{SQL}|Decision (?P<decision>\d+)): (?P<line>.+)|{NOT_YET}")
_TEST = re.compile(r"(?:\[(?P<release>[\d.]+)\] )?(?P<name>\S+)")


@dataclass(slots=True)
class Expectations:
    """The failures as ``{test: reason}`` for each release, and the most tests that each reason may have."""

    tests: dict[str, dict[str, str]] = field(default_factory=lambda: {release: {} for release in RELEASES})
    allowed: dict[str, int] = field(default_factory=dict)

    def counts(self) -> dict[str, int]:
        """Return the number of tests for each reason, on any release."""
        found: dict[str, set[str]] = {}
        for tests in self.tests.values():
            for name, reason in tests.items():
                found.setdefault(reason, set()).add(name)
        return {reason: len(names) for reason, names in sorted(found.items())}

    def grown(self) -> list[str]:
        """The reasons that have more tests than they may."""
        return [
            f"{reason}: {count} tests, {self.allowed.get(reason, 0)} allowed"
            for reason, count in self.counts().items()
            if count > self.allowed.get(reason, 0)
        ]

    def update(self, release: str, apps: Iterable[str], failed: Mapping[str, str]) -> None:
        """Replace the failures of some apps on a release by ``failed``; listed tests keep their reasons."""
        listed = (each for tests in self.tests.values() for each in tests.items())
        known = {name: reason for name, reason in listed if reason != NOT_YET}
        kept = {name: reason for name, reason in self.tests[release].items() if app_of(name) not in set(apps)}
        self.tests[release] = kept | {name: known.get(name, reason) for name, reason in failed.items()}


def app_of(test: str) -> str:
    """The app that a test belongs to."""
    return test.partition(".")[0]


def read(text: str) -> Expectations:
    """The list as it is written; raises ``ValueError`` for a line that is neither heading nor test."""
    found, reason = Expectations(), None
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        if heading := _HEADING.fullmatch(line):
            reason = heading["reason"]
            found.allowed[reason] = int(heading["allowed"])
        elif (test := _TEST.fullmatch(line)) and reason is not None:
            for release in [test["release"]] if test["release"] else RELEASES:
                if test["name"] in found.tests[release]:
                    raise ValueError(f"{test['name']} is listed twice for Django {release}.")
                found.tests[release][test["name"]] = reason
        else:
            raise ValueError(f"This is neither a reason nor a test: {line!r}")
    return found


HEAD = """\
# Which of Django's own tests do not pass against our models, and why.
#
# A reason is one of three. "SQL itself" and "Decision" (docs/decisions) name the line of docs/limitations.md that
# begins with these words in bold; the rest is "Not yet". The number is how many tests each may have, and only falls.
# [5.2] or [6.1] before a test: it does not pass, or is there, on that release only.
# `python -m tests.upstream.run --write APP ...` rewrites the list, and keeps the reasons."""


def write(found: Expectations, allowed: Mapping[str, int]) -> str:
    """The list as text: reasons and tests in the order of their names."""
    lines = [HEAD]
    for reason in found.counts():
        lines += ["", f"== {reason} ({allowed[reason]})"]
        names = {name for tests in found.tests.values() for name, each in tests.items() if each == reason}
        for name in sorted(names):
            releases = [release for release in RELEASES if found.tests[release].get(name) == reason]
            lines += [name] if len(releases) == len(RELEASES) else [f"[{release}] {name}" for release in releases]
    return "\n".join(lines) + "\n"


def line_of(reason: str) -> str | None:
    """Return the words of the limitations that a reason names; ``None`` if it is not done yet or not a reason."""
    found = _REASON.fullmatch(reason)
    return found and found["line"]


def is_reason(reason: str) -> bool:
    """Return whether a reason is one of the three; a decision needs a file with its number."""
    found = _REASON.fullmatch(reason)
    number = found and found["decision"]
    return found is not None and (number is None or any(DECISIONS.glob(f"{int(number):04}-*.md")))


def lines_of_limitations(section: str = "") -> set[str]:
    """Return the bold words at the start of the lines of docs/limitations.md, or of one of its sections."""
    text = LIMITATIONS.read_text(encoding="utf-8")
    if section:
        text = text.partition(section)[2].partition("\n## ")[0]
    found = re.findall(r"^- \*\*(.+?)\*\*", text, flags=re.MULTILINE | re.DOTALL)
    return {" ".join(words.split()) for words in found}
