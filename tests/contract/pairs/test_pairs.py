"""Every pair of the table: random writes of a model that has both, with indexes that are behind, against plain Python.

``TEST_SEED`` repeats a run, and chooses which pairs `make test` tries; a failure prints it with the history.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from dynamo_single.exceptions import ConfigurationError
from dynamo_single.table import Table
from tests.contract.pairs.runner import declared, run
from tests.contract.pairs.table import (
    CAPABILITIES,
    REFUSED,
    Pair,
    Refusal,
    pairs,
    readers_of,
    written,
)
from tests.contract.pairs.writers import WRITERS
from tests.deep import IS_DEEP, SEED, deep, examples
from tests.ready import table_ready

#: How many pairs of each kind `make test` tries.
CHOSEN = 8
#: How many histories each pair has, from this run's seed on.
SEEDS = examples(1, 3)
#: How many ways to write a history of two capabilities has.
WAYS = 4


def cases(every: Iterator[Pair]) -> list[Any]:
    """Return the pairs as parameters; the deep run includes those that the seed does not choose."""
    found = sorted(every)
    chosen = {*random.Random(SEED).sample(found, CHOSEN)}
    return [pytest.param(pair, id="-".join(pair), marks=[] if pair in chosen else deep) for pair in found]


def tried(names: Sequence[str], ways: Sequence[str] | None = None, seeds: int = SEEDS) -> None:
    """Run histories of models with these capabilities."""
    for seed in range(SEED, SEED + seeds):
        table_ready()
        chosen = ways or ["save", *random.Random(seed).sample([*WRITERS], WAYS)]
        run(seed, [CAPABILITIES[name]() for name in names], chosen, readers_of(tuple(names)))


@pytest.mark.parametrize("pair", cases(pairs()))
def test_two_capabilities_of_one_model(table: Table, pair: Pair) -> None:
    tried(pair)


@pytest.mark.parametrize("pair", cases(written()))
def test_capability_by_one_way_to_write(table: Table, pair: Pair) -> None:
    """`save()` does the operations that the way to write does not support."""
    name, way = pair
    tried([name], ["save", way])


def names_of(refusal: Any) -> str:
    """Return the name of a case."""
    return f"{refusal.first}-{refusal.second}"


@pytest.mark.parametrize("refusal", REFUSED, ids=names_of)
def test_pair_is_refused_with_its_message(refusal: Refusal) -> None:
    both = [CAPABILITIES[refusal.first](), CAPABILITIES[refusal.second]()]
    try:
        with declared(SEED, both) as (_, messages):
            said = {f"{message.id}".partition(".")[2]: f"{message.msg} {message.hint}" for message in messages}
    except ConfigurationError as error:
        said = {type(error).__name__: str(error)}
    assert refusal.message in said[refusal.by]


@pytest.mark.parametrize(
    "refusal", [pytest.param(each, id=names_of(each), marks=[] if IS_DEEP else deep) for each in REFUSED]
)
def test_fix_of_a_refused_pair_works(table: Table, refusal: Refusal) -> None:
    tried(refusal.instead)
