"""A process that carries a case out, all phases or one, and names each request before it; to be killed by a test."""

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

#: How many items are read at once.
PAGE = int(os.environ.get("MIGRATION_PAGE", "10"))


def main(name: str, *phases: str) -> None:
    """Begin, or go on where another process was killed."""

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
