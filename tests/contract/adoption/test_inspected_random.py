"""Random tables: what ``dynamo_inspect`` writes passes ``check``, and its models list every item."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from dynamo_single.table import Table
from tests.contract.adoption.inspected_project import InspectedProject
from tests.contract.adoption.other_programs import ALL, other_table
from tests.deep import examples
from tests.unit.inspection.tables import item

LABELS = ("USER", "Order", "item", "ORG_UNIT", "ZQX", "blorb", "METADATA", "people")
VALUES = ("jane", "JANE", "PROFILE", "2024-01-01", "{x}", "a b", "7", "0012", "é", "12.5", "a-b", "x_y")
ATTRIBUTES = ("orderId", "name", "created at", "class", "total", "owner_id", "data", "sk2")


def random_items(seed: int) -> list[dict[str, Any]]:
    """Return the items of up to four kinds, with keys of labels, attributes and other values."""
    chosen = random.Random(seed)
    separator = chosen.choice(("#", "|", "_", "::"))
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for _ in range(chosen.randint(1, 4)):
        names = chosen.sample(ATTRIBUTES, 3)
        templates = [
            [chosen.choice((chosen.choice(LABELS), 0, 1, None)) for _ in range(chosen.randint(1, 3))] for _ in "ps"
        ]
        for number in range(chosen.randint(1, 8)):
            values: dict[str, Any] = {name: chosen.choice((*VALUES, f"v{number}")) for name in names}
            values[names[2]] = chosen.choice((number, 1_700_000_000 + number, {"a": number}, [1, "x"], None, True))
            keys = [
                separator.join(
                    str(part)
                    if isinstance(part, str)
                    else str(values[names[part]])
                    if part is not None
                    else f"k{number}"
                    for part in template
                )
                for template in templates
            ]
            indexed = {"GSI1PK": keys[1], "GSI1SK": f"{number}"} if chosen.random() < 0.7 else {}
            found[keys[0], keys[1]] = item(PK=keys[0], SK=keys[1], **indexed, **values)
    return [*found.values()]


@pytest.fixture(scope="module")
def listed(engine: Table, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[tuple[int, int, Any, Any]]]:
    """Return for each table its items, those that a comment counts, the child's list, and the check's messages."""
    project = InspectedProject(tmp_path_factory.mktemp("random"), str(engine.settings.endpoint_url))
    counts = []
    with ExitStack() as stack:
        for seed in range(examples(5, 120)):
            items = random_items(seed)
            index = [("GSI1", ("GSI1PK", "GSI1SK"), ALL)]
            table = stack.enter_context(other_table(engine, f"random-{seed}", ("PK", "SK"), indexes=index))
            table.put(*items)
            source = project.add(table)
            reported = re.search(r"# (\d+) items? ha(?:s|ve) no model\.", source)
            counts.append((len(items), int(reported[1]) if reported else 0))
        result = project.run()
    yield [
        (items, left, result["found"][f"random_{seed}"], result["messages"].get(f"adopted_random_{seed}", []))
        for seed, (items, left) in enumerate(counts)
    ]


def test_check_accepts_the_models(listed: list[tuple[int, int, Any, Any]]) -> None:
    """No message concerns one of the models."""
    assert {seed: messages for seed, (*_, messages) in enumerate(listed) if messages} == {}


def test_all_items_are_listed(listed: list[tuple[int, int, Any, Any]]) -> None:
    """The models list all items except those that a comment counts."""
    wrong = {
        seed: (items, left, found)
        for seed, (items, left, found, _) in enumerate(listed)
        if found["failed"] or sum(found["listed"].values()) != items - left
    }
    assert wrong == {}
