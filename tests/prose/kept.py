"""Keep what was found in each file, so that a run reads only the files that have changed.

A file is the same if its name, its text, the linter and Python are the same. The results are in ``var/``; without them
all files are read.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.prose.budget import Count

FOLDER = Path(__file__).parent


@dataclass
class Found:
    """The lines about words of one file, and its counts by kind of text: of types that JSON has."""

    words: list[str]
    counts: dict[str, Count]


def read(root: Path, paths: Iterable[Path], count: Callable[[Path], Found]) -> list[tuple[Path, Found]]:
    """Return what is in each file, from the last run if the file is the same."""
    file = root / "var/prose.json"
    before: dict[str, Any] = {}
    with suppress(OSError, ValueError):
        before = json.loads(file.read_text())
    linter = sha256(sys.version.encode() + b"".join(each.read_bytes() for each in sorted(FOLDER.glob("*.py"))))
    found: list[tuple[Path, Found]] = []
    now: dict[str, Found] = {}
    for path in paths:
        same = linter.copy()
        same.update(f"{path}\0".encode() + (root / path).read_bytes())
        key = same.hexdigest()
        each = _loaded(before[key]) if key in before else count(path)
        now[key] = each
        found.append((path, each))
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(now, default=vars))
    return found


def _loaded(value: dict[str, Any]) -> Found:
    counts = {kind: Count(**each | {"patterns": Counter(each["patterns"])}) for kind, each in value["counts"].items()}
    return Found(value["words"], counts)
