"""The seed of this run: ``PAIRS_SEED``, which ``tests/conftest.py`` sets to the number of the day."""

from __future__ import annotations

import os

from tests.deep import examples

#: The seed of the first history of each pair.
SEED = int(os.environ.get("PAIRS_SEED", 1))
#: How many histories each pair has.
SEEDS = examples(1, 3)
