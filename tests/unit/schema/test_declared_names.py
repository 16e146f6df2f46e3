"""Reads and writes take an attribute's stored name from the layout: during a rename the declared name may be another.

Code may read an attribute by its declared name only if the attribute cannot be renamed: ``is_served()`` tells which.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import dynamo_single

PACKAGE = Path(dynamo_single.__file__).parent
#: The number of reads by declared name in each module, and their attributes, which cannot be renamed.
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
    """All other code uses the layout."""
    found: Counter[str] = Counter()
    for path in modules():
        nodes = ast.walk(ast.parse(path.read_text()))
        found[path.relative_to(PACKAGE).as_posix()] += sum(
            isinstance(node, ast.Attribute) and node.attr == "attr_name" for node in nodes
        )
    assert +found == {path: number for path, (number, _) in READ.items()}
