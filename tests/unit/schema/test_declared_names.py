"""Reads and writes take an attribute's stored name from the layout: during a rename the declared name may be another.

Attributes that cannot be renamed while code runs may be read by their declared names: ``is_served()`` says which.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import dynamo_single

PACKAGE = Path(dynamo_single.__file__).parent
#: How often each module reads a declared name, and the attributes that it reads it of: none is renamed while code runs.
READ = {
    "orm/effects/copies.py": (7, "copies, their sources and their references"),
    "orm/effects/copy_updates.py": (5, "copies and their sources"),
    "orm/effects/counters.py": (4, "counters and references"),
    "orm/effects/derived.py": (2, "what derived items follow from"),
    "orm/effects/trash_counts.py": (1, "references"),
    "orm/effects/unique_claims.py": (1, "unique attributes"),
    "orm/items/unique_rules.py": (8, "unique attributes"),
    "orm/write/assignments.py": (1, "folded copies and extracted values"),
    "orm/write/cascade.py": (1, "references"),
    "orm/write/delete.py": (1, "counters"),
    "orm/write/move_references.py": (2, "counters"),
}


def modules() -> Iterator[Path]:
    """Return the modules that read and write items."""
    yield PACKAGE / "counters.py"
    for folder in ("items", "write", "effects"):
        yield from sorted((PACKAGE / "orm" / folder).rglob("*.py"))


def test_declared_names_are_read_where_none_is_renamed() -> None:
    """Anything else asks the layout."""
    found: Counter[str] = Counter()
    for path in modules():
        nodes = ast.walk(ast.parse(path.read_text()))
        found[path.relative_to(PACKAGE).as_posix()] += sum(
            isinstance(node, ast.Attribute) and node.attr == "attr_name" for node in nodes
        )
    assert +found == {path: number for path, (number, _) in READ.items()}
