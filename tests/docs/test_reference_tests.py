"""The page about the tests lists their commands, and the additions of the long run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.pages import ROOT, code, table

PAGE = ROOT / "docs/reference/tests.md"


def test_the_commands_that_run_tests_are_listed() -> None:
    """These are the commands in the Makefile that begin with ``test``."""
    targets = re.findall(r"^(test[a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    listed = [name for row in table(PAGE, "The tests of this repository") for name in code(row[0])]
    assert listed == [f"make {target}" for target in targets]


def test_what_the_long_run_adds_is_listed() -> None:
    """The files that leave something to it, each with its numbers of examples in both runs."""
    using = {path: numbers(path) for path in (ROOT / "tests").rglob("*.py") if uses_deep(path)}
    rows = {
        ROOT / "tests" / name: row[1:]
        for row in table(PAGE, "Additional tests of `make test-deep`")
        for name in code(row[0])
    }
    assert rows.keys() == using.keys()
    for path, (normal, deep) in rows.items():
        for few, many in using[path]:
            assert str(few) in re.findall(r"\d+", normal), path
            assert str(many) in re.findall(r"\d+", deep), path


def uses_deep(path: Path) -> bool:
    """Return whether a file marks tests as deep, numbers examples, or has a deep part."""
    text = path.read_text()
    tree = ast.parse(text) if "tests.deep" in text or "import deep" in text else ast.Module([], [])
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = {f"{node.module}.{name.name}".removeprefix("tests.deep.") for node in imports for name in node.names}
    return not names.isdisjoint({"tests.deep", "IS_DEEP", "deep", "examples"}) and path.parent != ROOT / "tests"


def numbers(path: Path) -> Iterator[tuple[int, int]]:
    """Return the numbers of examples in the normal and the deep run, if both are literals."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "examples":
            normal, deep, *_ = node.args
            if isinstance(deep, ast.Constant):
                yield ast.literal_eval(normal), ast.literal_eval(deep)
