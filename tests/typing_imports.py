"""Holds imports for typing alone to the import contracts: ``python -m tests.typing_imports``, a part of ``make check``.

The contracts in ``pyproject.toml`` say what may be imported when the app runs, and leave imports for typing out. Here
they are checked once more with these, apart from the ones that ``tool.typing-imports`` lists there.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LINTER = Path(sys.executable).with_name("lint-imports")
SETTINGS: Any = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
UPWARDS: list[str] = SETTINGS["typing-imports"]["upwards"]


def mistakes(upwards: Sequence[str]) -> list[str]:
    """What is wrong if these imports for typing, and no other ones, may run upwards."""
    if found := broken(tuple(upwards)):
        return [found]
    needless = [each for each in upwards if not broken(tuple(other for other in upwards if other != each))]
    return [f"{each} breaks no contract: it need not be in tool.typing-imports." for each in needless]


@cache
def broken(ignored: tuple[str, ...]) -> str:
    """What import-linter says of the contracts with imports for typing; nothing if they are kept."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "contracts.toml"
        path.write_text(contracts(ignored))
        command = [str(LINTER), "--no-cache", "--no-logo", "--config", str(path)]
        child = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - our own
    return child.stdout + child.stderr if child.returncode else ""


def contracts(ignored: Sequence[str]) -> str:
    """The contracts as a file for import-linter; one that an ignored import is not found for is broken."""
    options = {**SETTINGS["importlinter"], "exclude_type_checking_imports": False}
    tables = ["[tool.importlinter]", *_lines({name: each for name, each in options.items() if name != "contracts"})]
    for contract in options["contracts"]:
        ignore = [*contract.get("ignore_imports", ()), *ignored]
        alert = {"ignore_imports": ignore, "unmatched_ignore_imports_alerting": "error"}
        tables += ["[[tool.importlinter.contracts]]", *_lines({**contract, **alert})]
    return "\n".join(tables)


def _lines(options: dict[str, Any]) -> list[str]:
    # Texts, numbers, booleans and lists of them are written in TOML as in JSON.
    return [f"{name} = {json.dumps(each)}" for name, each in options.items()]


if __name__ == "__main__":
    found = mistakes(UPWARDS)
    print("\n".join(found), end="\n" if found else "")
    sys.exit(bool(found))
