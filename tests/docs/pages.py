"""The documentation as data: its pages, and the fenced blocks of each with the line where they begin.

Three languages are known. ``python`` with a path in its first line is a file of a project, and other ``python`` is run;
``console`` is a shell session; ``text`` is not run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = ("python", "console", "text")

_FENCE = re.compile(r"(?P<indent>[ >]*)(?P<fence>`{3,}|~{3,})(?P<language>.*)")
_PATH = re.compile(r"# (?P<path>[\w/-]+\.py)(?P<add> \(add\))?")
_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")


class PageError(Exception):
    """A page that cannot be read: an open fence, or an unknown language."""


@dataclass(frozen=True, slots=True)
class Block:
    """The inside of one fence; ``line`` is its first line's number in the page."""

    page: Path
    line: int
    language: str
    text: str

    @property
    def where(self) -> str:
        """Page and line, as editors take them."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def path(self) -> str:
        """The file of the project that the block is, or nothing."""
        found = self._first_line()
        return found["path"] if found else ""

    @property
    def adds(self) -> bool:
        """Return whether the block is appended to its file instead of replacing it."""
        found = self._first_line()
        return bool(found and found["add"])

    def _first_line(self) -> re.Match[str] | None:
        return _PATH.fullmatch(self.text.partition("\n")[0]) if self.language == "python" else None


def pages() -> list[Path]:
    """README and everything under ``docs``."""
    found = sorted((ROOT / "docs").rglob("*.md"))
    readme = ROOT / "README.md"
    return [readme, *found] if readme.is_file() else found


def blocks(page: Path) -> list[Block]:
    """The page's fenced blocks, in order."""
    return list(_blocks(page, page.read_text().splitlines()))


def _blocks(page: Path, lines: list[str]) -> Iterator[Block]:
    opened: re.Match[str] | None = None
    start = 0
    for number, line in enumerate(lines, start=1):
        found = _FENCE.fullmatch(line)
        if opened is None:
            if found is None:
                continue
            if found["indent"] or found["language"] not in LANGUAGES:
                raise PageError(
                    f"{page.relative_to(ROOT)}:{number}: a block is {', '.join(LANGUAGES)} and not indented, "
                    f"not {line!r}."
                )
            opened, start = found, number
        elif found is not None and found["fence"] == opened["fence"] and not found["language"]:
            yield Block(page, start + 1, opened["language"], "\n".join(lines[start : number - 1]))
            opened = None
    if opened is not None:
        raise PageError(f"{page.relative_to(ROOT)}:{start}: the block is not closed.")


def links(page: Path) -> list[str]:
    """The targets of the page's links to other files of the repository."""
    prose = re.sub(r"^(`{3,}).*?^\1$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    targets = (found["target"].partition("#")[0] for found in _LINK.finditer(prose))
    return [target for target in targets if target and "://" not in target]


def table(page: Path, heading: str) -> list[list[str]]:
    """The rows of the first table below a heading, cell by cell, without its head."""
    lines = page.read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if line.lstrip("#").strip() == heading and line[0] == "#")
    rows: list[list[str]] = []
    for line in lines[start + 1 :]:
        if line.startswith("|"):
            rows.append([cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
        elif rows or line.startswith("#"):
            break
    return rows[2:]


def code(cell: str) -> list[str]:
    """Return the code in a cell."""
    return re.findall(r"`([^`]+)`", cell)
