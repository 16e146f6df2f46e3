"""One operation, followed call by call through the Python code of one package.

The rules, so that figures of different days can be compared:

- A *call* is an event ``call`` of ``sys.setprofile`` in a frame whose code lies in the package. That is every function
  called, every resumption of a generator or coroutine (a generator expression over three values makes four), and every
  frame of a comprehension. From Python 3.12 on, list, dict and set comprehensions have no frame of their own; those
  that have one are counted in ``comprehensions`` too, so that ``calls - comprehensions`` means the same everywhere.
- A *module* is entered by a call into its file, whatever called it.
- A *move* is a call into another module than that of the call before it. Returns are not counted: going into a module
  and coming back to call something there makes two moves, and the last way home none.

Code outside the package (Django, botocore, the standard library, the methods that ``dataclass`` writes) is not seen; a
call that comes through it counts as any other. Threads that the operation starts are not followed, and the garbage
collector waits.
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
    """What one operation called, in order: a module's name and a function's for each call."""

    steps: tuple[tuple[str, str], ...]

    @property
    def calls(self) -> int:
        """How many calls there were."""
        return len(self.steps)

    @property
    def comprehensions(self) -> int:
        """How many of the calls are frames of comprehensions."""
        return sum(function in COMPREHENSIONS for _, function in self.steps)

    @property
    def modules(self) -> Counter[str]:
        """The modules entered, with the calls into each."""
        return Counter(module for module, _ in self.steps)

    @property
    def moves(self) -> int:
        """How often a call was in another module than the one before it."""
        return sum(before != after for (before, _), (after, _) in pairwise(self.steps))


def follow(operation: Callable[[], Any], package: Path) -> Walk:
    """Carry the operation out and say which calls it made into the package."""
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
    """A file's module, from the package's root: ``orm.query.manager``, and ``table`` for ``table/__init__.py``."""
    parts = path.relative_to(package).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or package.name
