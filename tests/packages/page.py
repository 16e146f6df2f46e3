"""The page of packages, made of the cases: ``python -m tests.packages.page`` writes docs/reference/packages.md."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

CASES = Path(__file__).parent / "cases"
PAGE = Path(__file__).resolve().parents[2] / "docs/reference/packages.md"
#: For each result, the title of its table and the title of the third column.
TITLES = {
    "unchanged": ("Packages that work unchanged", ""),
    "with lines": ("Packages that work with these lines", "lines"),
    "refused": ("Packages that do not work", "reason"),
}


@dataclass(frozen=True, slots=True)
class Case:
    """One package: its name on PyPI, its result, the tested features, and the lines or the reason."""

    path: Path
    package: str
    result: str
    tested: str
    note: str


def cases() -> list[Case]:
    """All cases, by the names of their packages."""
    found = []
    for path in CASES.glob("*.py"):
        tree = ast.parse(path.read_text())
        values = {
            each.targets[0].id: ast.literal_eval(each.value)
            for each in tree.body
            if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name) and each.targets[0].id.isupper()
        }
        note = values.get("LINES", values.get("REASON", ""))
        found.append(Case(path, values["PACKAGE"], values["RESULT"], ast.get_docstring(tree) or "", note))
    return sorted(found, key=lambda case: case.package.lower())


def text() -> str:
    """The page."""
    parts = [
        "# Packages\n\n`make test-packages` tests these packages in projects without an SQL database. "
        "`python -m tests.packages.page` writes this page.\n"
    ]
    for result, (title, last) in TITLES.items():
        columns = {"unchanged": ("package", "tested"), "refused": ("package", last)}.get(
            result, ("package", "tested", last)
        )
        found = [
            {
                "package": f"{case.package} {metadata.version(case.package)}",
                "tested": case.tested.rstrip("."),
                last: case.note,
            }
            for case in cases()
            if case.result == result
        ]
        rows = [[each[name] for name in columns] for each in found]
        parts.append(f"\n## {title}\n\n{_row(columns)}|{'---|' * len(columns)}\n{''.join(map(_row, rows))}")
    return "".join(parts)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(' '.join(cell.split()) for cell in cells)} |\n"


if __name__ == "__main__":
    PAGE.write_text(text())
