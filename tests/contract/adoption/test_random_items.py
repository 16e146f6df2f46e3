"""Random items of other programs, compared with a model of the table in Python."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from dynamo_single import models
from dynamo_single.table import Table
from tests.contract.adoption.foreign import ALIAS, foreign_table, stored
from tests.deep import examples
from tests.unit.declaring import declare, forgotten

ITEMS = examples(25, 1000)
CHARACTERS = "ab !\"$%&'()*+,-./:;<=>?@[]^_`{|}~AB09\tä€\U0001f600"
TEXT, NUMBER = models.UnicodeAttribute, models.IntegerAttribute


def text(chance: random.Random) -> str:
    """Draw a string without the separator."""
    return "".join(chance.choices(CHARACTERS, k=chance.randint(1, 6)))


def number(chance: random.Random) -> int:
    """A number of any size."""
    return chance.choice((-1, 1)) * chance.randint(0, 10 ** chance.choice((0, 1, 3, 12, 30)))


SHAPES: dict[str, tuple[dict[str, Any], tuple[str, str], Callable[[random.Random], Any]]] = {
    "composed": ({"PARTITION_KEY": "PK", "SORT_KEY": "SK"}, ("P#{part}", "S#{sort}"), text),
    "attributes": ({"PARTITION_KEY": "part", "SORT_KEY": "sort"}, ("{part}", "{sort}"), text),
    "numbers": ({"PARTITION_KEY": "part", "SORT_KEY": "sort:N"}, ("{part}", "{sort}"), number),
}


def as_key(value: Any) -> Any:
    """Return the value by which DynamoDB sorts a key."""
    return value.encode() if isinstance(value, str) else value


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("typed", [False, True], ids=["untyped", "typed"])
def test_random_items_are_read_as_a_model_in_python(engine: Table, name: str, typed: bool) -> None:
    shape, key, make = SHAPES[name]
    chance = random.Random(f"{name} {typed}")
    with foreign_table(RAW_KEYS=True, TYPE_ATTRIBUTE="kind" if typed else None, **shape) as table, forgotten():
        sort = NUMBER() if make is number else TEXT()
        model = declare("Thing", key, options={"table": ALIAS}, part=TEXT(), sort=sort, n=NUMBER(null=True))
        known: dict[tuple[str, Any], int | None] = {}
        parts = [text(chance) for _ in range(4)]
        for _ in range(ITEMS):
            place = chance.choice(parts), make(chance)
            known[place] = chance.choice((None, 0, 7))
            values = {"part": place[0], "sort": place[1]} | ({} if known[place] is None else {"n": known[place]})
            composed = {"PK": f"P#{place[0]}", "SK": f"S#{place[1]}"} if name == "composed" else {}
            table.put(stored(**values, **composed, **({"kind": "Thing"} if typed else {})))
        before = table.items()
        for part in parts:
            expected = sorted((one for p, one in known if p == part), key=as_key)
            of_part = model.objects.filter(part=part)
            assert [each.sort for each in of_part] == expected
            assert [each.sort for each in of_part.order_by("-sort")] == expected[::-1]
            assert [each.n for each in of_part] == [known[part, one] for one in expected]
            assert of_part.filter(n=7).count() == sum(known[part, one] == 7 for one in expected)
            for bound in chance.sample(expected, min(3, len(expected))):
                above = [one for one in expected if as_key(one) > as_key(bound)]
                below = [one for one in expected if as_key(one) <= as_key(bound)]
                assert [each.sort for each in of_part.filter(sort__gt=bound)] == above
                assert [each.sort for each in of_part.filter(sort__lte=bound)] == below
                found = model.objects.get(part=part, sort=bound)
                assert found.n == known[part, bound]
                found.save()
        assert table.items() == before
