"""Every place in the code that raises a refusal, read from the source, and the places that a block reached."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from msgspec import Struct

import dynamo_single
from dynamo_single import exceptions

ROOT = Path(dynamo_single.__file__).parent
#: Errors for queries and writes that Django supports.
KINDS: tuple[type[Exception], ...] = (exceptions.NotSupported, exceptions.UnknownField, exceptions.PendingWrite)


class Place(Struct, frozen=True, order=True):
    """One call that makes an error: ``name`` is the file, the function and, of several, which of them."""

    name: str
    file: str
    first: int
    last: int


def _names(kind: type[Exception]) -> Iterator[str]:
    yield kind.__name__
    for each in kind.__subclasses__():
        yield from _names(each)


class _Visitor(ast.NodeVisitor):
    def __init__(self, file: str, kinds: frozenset[str]) -> None:
        self.file, self.kinds = file, kinds
        self.within: list[str] = []
        self.found: list[tuple[str, ast.Call]] = []

    def visit_within(self, node: Any) -> None:
        self.within.append(node.name)
        self.generic_visit(node)
        self.within.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_within

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if called in self.kinds:
            self.found.append((".".join(self.within), node))
        self.generic_visit(node)


@cache
def places() -> tuple[Place, ...]:
    """All of them, in the order of their files and lines."""
    kinds = frozenset(name for kind in KINDS for name in _names(kind))
    made: list[Place] = []
    for path in sorted(ROOT.rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        text = path.read_text()
        if not any(kind in text for kind in kinds):
            continue
        visitor = _Visitor(file, kinds)
        visitor.visit(ast.parse(text))
        functions = [function for function, _ in visitor.found]
        for number, (function, node) in enumerate(visitor.found):
            which = f" {functions[: number + 1].count(function)}" if functions.count(function) > 1 else ""
            made.append(Place(f"{file}: {function}{which}", file, node.lineno, node.end_lineno or node.lineno))
    return tuple(made)


@contextmanager
def made() -> Iterator[set[str]]:
    """Give the names of the places that make refusals while the block runs."""
    found: set[str] = set()
    base = exceptions.DynamoSingleError

    def note(self: Exception, *args: object, **kwargs: object) -> None:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_name == "__init__":
            frame = frame.f_back
        if frame is not None and isinstance(self, KINDS):
            file = frame.f_code.co_filename
            found.update(
                each.name
                for each in places()
                if file == str(ROOT / each.file) and each.first <= frame.f_lineno <= each.last
            )
        Exception.__init__(self, *args, **kwargs)

    base.__init__ = note  # type: ignore[method-assign,assignment]
    try:
        yield found
    finally:
        del base.__init__
