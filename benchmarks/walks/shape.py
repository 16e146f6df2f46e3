"""The sizes of a package's modules and functions, read without an import."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from benchmarks.walks.trace import module_name

LONG_MODULE = 400
LONG_FUNCTION = 60


@dataclass(frozen=True, slots=True)
class Shape:
    """The lines of each module, and of each function by its module and name."""

    modules: dict[str, int]
    functions: dict[str, int]

    @property
    def long_modules(self) -> int:
        """The number of modules with more than 400 lines."""
        return sum(lines > LONG_MODULE for lines in self.modules.values())

    @property
    def long_functions(self) -> int:
        """The number of functions with more than 60 lines."""
        return sum(lines > LONG_FUNCTION for lines in self.functions.values())


def shape_of(package: Path) -> Shape:
    """Measure every module below a package; a function's lines go from its ``def`` to its end, decorators aside."""
    modules, functions = {}, {}
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        name = module_name(path, package)
        modules[name] = len(text.splitlines())
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                last = node.lineno if node.end_lineno is None else node.end_lineno
                functions[f"{name}.{node.name}, line {node.lineno}"] = last - node.lineno + 1
    return Shape(modules, functions)
