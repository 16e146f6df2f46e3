"""Trace one operation, call by call, through the Python code of one package.

These rules make the numbers of different days comparable:

- A *call* is an event ``call`` of ``sys.setprofile`` in a frame whose code is in the package. These are all function
  calls, resumptions of a generator or coroutine (a generator expression over three values makes four), and frames of
  comprehensions. Starting with Python 3.12, list, dict and set comprehensions do not have a separate frame. Frames of
  comprehensions also count in ``comprehensions``, so ``calls - comprehensions`` means the same in every version.
- A *module* is entered by a call into its file from any code.
- A *move* is a call into another module than the previous call. Returns are not counted: entering a module and then
  calling a function of the first module makes two moves. The last return does not make a move.

Code outside the package (Django, botocore, the standard library, the methods that ``dataclass`` writes) is not
traced, but a call from this code counts like any other. Threads that the operation starts are not traced, and the
garbage collector is disabled.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

COMPREHENSIONS = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>"})


@dataclass(frozen=True, slots=True)
class Walk:
    """The calls of one operation in order, each with the names of its module and function."""

    steps: tuple[tuple[str, str], ...]

    @property
    def calls(self) -> int:
        """The number of calls."""
        return len(self.steps)

    @property
    def comprehensions(self) -> int:
        """The number of calls that are frames of comprehensions."""
        return sum(function in COMPREHENSIONS for _, function in self.steps)

    @property
    def modules(self) -> Counter[str]:
        """The entered modules, with the calls into each."""
        return Counter(module for module, _ in self.steps)

    @property
    def moves(self) -> int:
        """The number of calls into another module than the previous call."""
        return sum(before != after for (before, _), (after, _) in pairwise(self.steps))


def follow(operation: Callable[[], Any], package: Path) -> Walk:
    """Run the operation and return its calls into the package."""
    root = f"{package}/"
    codes: list[CodeType] = []

    def seen(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(root):
            codes.append(frame.f_code)

    gc.collect()
    gc.disable()
    sys.setprofile(seen)
    try:
        operation()
    finally:
        sys.setprofile(None)
        gc.enable()
    return Walk(tuple((module_name(Path(code.co_filename), package), code.co_name) for code in codes))


def module_name(path: Path, package: Path) -> str:
    """Return a file's module below the package root: ``orm.query.manager``, or ``table`` for ``table/__init__.py``."""
    parts = path.relative_to(package).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or package.name
