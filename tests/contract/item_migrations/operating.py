"""A process that runs one or all phases of a case, and prints each request before it, until a test kills it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import django

django.setup()

from dynamo_single.evolution.backfill import Options, run_work  # noqa: E402
from dynamo_single.table import get_table  # noqa: E402
from dynamo_single.testing import intercept  # noqa: E402
from tests.contract.item_migrations.cases import CASES  # noqa: E402
from tests.contract.item_migrations.test_operations import works  # noqa: E402

#: The number of items per read.
PAGE = int(os.environ.get("MIGRATION_PAGE", "10"))


def main(name: str, *phases: str) -> None:
    """Start, or continue after a killed process."""

    def tell(operation: str, params: Mapping[str, Any]) -> None:
        print(operation, flush=True)

    case = CASES[name]()
    with intercept(tell):
        for number in map(int, phases or range(len(case.phases))):
            for work in works(case, number):
                run_work(work, get_table(), Options(segments=4, page=PAGE, lease=0.01))
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
