"""Holds imports for typing alone to the import contracts: ``python -m tests.typing_imports``, a part of ``make check``.

The contracts in ``pyproject.toml`` say what may be imported when the app runs, and leave imports for typing out. Here
they are checked once more with these, apart from the ones that ``tool.typing-imports`` lists there.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

from importlinter import configuration
from importlinter.application import use_cases
from importlinter.application.app_config import settings

ROOT = Path(__file__).resolve().parent.parent
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
        with redirect_stdout(io.StringIO()) as said:
            kept = use_cases.lint_imports(config_filename=str(path), cache_dir=None, no_logo=True)
    return "" if kept else said.getvalue()


class _Graph:
    """What imports what: looked for once, since no contract changes that. It took two thirds of a check."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        self._built: dict[str, Any] = {}

    def build(self, **asked: Any) -> Any:
        """The graph, as import-linter's own builder makes it."""
        options = json.dumps(asked, sort_keys=True)
        if options not in self._built:
            self._built[options] = self._builder.build(**asked)
        return self._built[options]


configuration.configure()
settings.configure(GRAPH_BUILDER=_Graph(settings.GRAPH_BUILDER))


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
