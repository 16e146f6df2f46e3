"""How far does an operation walk through the app's code? Calls, entered modules with their sizes, and moves.

``python -m benchmarks.walks.run [--modules N|all] [--json|--readme]`` starts a local engine in memory, runs each
operation twice, and traces the third run. ``trace`` defines calls, modules and moves. With
``DJANGO_SETTINGS_MODULE=project.settings``, only the demo's models are installed, and the tests' operations are left
out. Finally the command prints the package's largest module and longest function. ``--readme`` writes the counts, which
a test compares, into ``benchmarks/README.md``.
"""

from __future__ import annotations

import argparse
import json
import platform
from pathlib import Path
from typing import Any

import django
from django.conf import settings

import dynamo_single
from benchmarks.walks.operations import Operation, operations
from benchmarks.walks.shape import LONG_FUNCTION, LONG_MODULE, Shape, shape_of
from benchmarks.walks.trace import follow
from dynamo_single.orm.rollout import knowledge
from dynamo_single.testing import capture_requests, local_engine

PACKAGE = Path(dynamo_single.__file__).resolve().parent
README = PACKAGE.parent / "benchmarks" / "README.md"


def measure(operation: Operation, shape: Shape) -> dict[str, Any]:
    """Run an operation until it is warm, count its requests, and trace it once."""
    operation.prepare()()
    warm = operation.prepare()
    with capture_requests() as sent:
        warm()
    walk = follow(operation.prepare(), PACKAGE)
    largest = sorted(walk.modules.items(), key=lambda entered: (-shape.modules[entered[0]], entered[0]))
    return {
        "name": operation.name,
        "requests": len(sent),
        "calls": walk.calls,
        "comprehensions": walk.comprehensions,
        "moves": walk.moves,
        "modules": [{"name": name, "lines": shape.modules[name], "calls": calls} for name, calls in largest],
    }


def print_walk(walk: dict[str, Any], shown: int | None) -> None:
    """Print one row, and below it the entered modules, the largest first."""
    modules = walk["modules"]
    lines = sum(module["lines"] for module in modules)
    print(
        f"{walk['name']:<42} {walk['requests']:>8} {walk['calls']:>6} {walk['comprehensions']:>6} "
        f"{len(modules):>8} {walk['moves']:>6} {lines:>7}"
    )
    for module in modules[:shown]:
        print(f"    {module['name']:<38} {module['lines']:>5} lines {module['calls']:>6} calls")


def counts(walks: list[dict[str, Any]]) -> str:
    """Return the counts that depend only on the operations' code, as a Markdown table."""
    rows = ["| operation | requests | calls | modules | moves |", "|---|---|---|---|---|"]
    for walk in walks:
        figures = (walk["requests"], walk["calls"], len(walk["modules"]), walk["moves"])
        rows.append(f"| {walk['name']} | {' | '.join(f'{figure:,}' for figure in figures)} |")
    return "\n".join(rows)


def write_counts(table: str) -> None:
    """Replace the table of counts in ``benchmarks/README.md``."""
    before, begin, rest = README.read_text(encoding="utf-8").partition(table.partition("\n")[0])
    after = rest[rest.index("\n\n") :]
    if not begin:
        raise ValueError(f"{README} has no table of counts.")
    README.write_text(before + table + after, encoding="utf-8")


def print_shape(shape: Shape) -> None:
    """Print the largest module and the longest function."""
    module = max(shape.modules, key=lambda name: shape.modules[name])
    function = max(shape.functions, key=lambda name: shape.functions[name])
    print(
        f"\n{len(shape.modules)} modules, the largest {module} with {shape.modules[module]} lines; "
        f"{shape.long_modules} above {LONG_MODULE}\n"
        f"{len(shape.functions)} functions, the longest {function} with {shape.functions[function]} lines; "
        f"{shape.long_functions} above {LONG_FUNCTION}"
    )


def main() -> None:
    """Measure and print all operations."""
    # The state of the table is read once: at a local engine a process reads it each second.
    knowledge.LOCAL_LEASE = 3600.0  # type: ignore[misc]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", default="3", help="how many of the entered modules to print: a number, or 'all'")
    parser.add_argument("--json", action="store_true", help="print everything as one JSON document")
    parser.add_argument("--readme", action="store_true", help="write the counts into benchmarks/README.md")
    options = parser.parse_args()
    shape = shape_of(PACKAGE)
    with local_engine():
        walks = [measure(operation, shape) for operation in operations()]
    where = {"python": platform.python_version(), "django": django.__version__, "settings": settings.SETTINGS_MODULE}
    if options.json:
        found = {"walks": walks, "counts": counts(walks), "modules": shape.modules, "functions": shape.functions}
        print(json.dumps({**where, **found}, indent=1))
        return
    if options.readme:
        write_counts(counts(walks))
    print(f"Python {where['python']}, Django {where['django']}, {where['settings']}\n")
    print(f"{'operation':<42} {'requests':>8} {'calls':>6} {'compr.':>6} {'modules':>8} {'moves':>6} {'lines':>7}")
    for walk in walks:
        print_walk(walk, None if options.modules == "all" else int(options.modules))
    print_shape(shape)


if __name__ == "__main__":
    main()
