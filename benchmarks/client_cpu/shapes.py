"""What does one operation cost the client's CPU on a table with custom names, compared with the app's default names?

``python -m benchmarks.client_cpu.shapes [--rounds N] [--engine]`` starts a local engine in memory with five tables: two
with the app's default names, one with other names, one with other names and no type, and one with attributes as keys,
including a number. The control is the second table with default names, which has its own model and items.

Each operation sends one request. By default, all calls get the engine's first response, because the noise of sockets
exceeds the differences. With ``--engine``, the engine responds to each call.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from statistics import median
from typing import Any
from unittest.mock import patch

from django.conf import settings
from django.test import override_settings

from benchmarks.harness.rounds import median_difference, median_ratio, settle, single_calls
from dynamo_single import models
from dynamo_single.table import get_table, schema
from dynamo_single.table.http.connections import Pool
from dynamo_single.testing import capture_requests, local_engine

OWN, CONTROL = "own", "control"
INDEX = {"gs1": {"name": "GSI1", "partition": "GSI1PK", "sort": "GSI1SK"}}
NAMED: dict[str, Any] = {"PARTITION_KEY": "PK", "SORT_KEY": "SK", "TYPE_ATTRIBUTE": "_type", "INDEXES": INDEX}
TABLES: dict[str, dict[str, Any]] = {
    OWN: {},
    "named": NAMED,
    "untyped": {**NAMED, "TYPE_ATTRIBUTE": None, "RAW_KEYS": True},
    "number": {"PARTITION_KEY": "owner", "SORT_KEY": "number:N", "TYPE_ATTRIBUTE": None, "RAW_KEYS": True},
    CONTROL: {},
}
LISTED = 1000
#: The operations, each with the number of objects that a call makes, and a divisor of the number of rounds.
OPERATIONS = {"get": (1, 1), "save of one attribute": (1, 1), "list, per object": (LISTED, 40)}
#: If the control differs by more microseconds, the machine was too busy.
QUIET = 1.0


def model_of(alias: str) -> Any:
    """Return the model of a table; all models have the same attributes."""
    key = ("{owner}", "{number}") if alias == "number" else ("OWNER#{owner}", "NUMBER#{number}")
    namespace: dict[str, Any] = {
        "__module__": __name__,
        "__qualname__": alias.title(),
        "Keys": type("Keys", (), {"primary": models.Key(*key)}),
        "Meta": type("Meta", (), {"app_label": "catalog", "table": alias}),
        "owner": models.UnicodeAttribute(),
        "number": models.IntegerAttribute(),
        "title": models.UnicodeAttribute(),
        "done": models.BooleanAttribute(default=False),
    }
    return type(models.Model)(alias.title(), (models.Model,), namespace)


def cases_of(model: Any) -> dict[str, Callable[[], Any]]:
    """Create the objects of one owner, and return the operations on them."""
    model.objects.bulk_create(model(owner="o", number=number, title="x" * 60) for number in range(LISTED))
    held = model.objects.get(owner="o", number=LISTED // 2)

    def save() -> None:
        held.title = f"{'y' * 50}{os.urandom(4).hex()}"
        held.save()

    operations = (lambda: model.objects.get(pk=held.pk), save, lambda: list(model.objects.filter(owner="o")))
    for operation in operations:
        with capture_requests() as sent:
            operation()
        if len(sent) != 1:
            raise AssertionError(f"An operation sent {len(sent)} requests instead of one.")
    return dict(zip(OPERATIONS, operations, strict=True))


@contextmanager
def replayed(cases: dict[str, Callable[[], Any]]) -> Iterator[dict[str, Callable[[], Any]]]:
    """Return the cases with the first response to each for all its calls."""
    sent, held, asked = Pool.exchange, {}, ""

    async def exchange(pool: Any, *args: Any, **kwargs: Any) -> Any:
        if asked not in held:
            held[asked] = await sent(pool, *args, **kwargs)
        return held[asked]

    def of(name: str, case: Callable[[], Any]) -> Callable[[], Any]:
        def call() -> None:
            nonlocal asked
            asked = name
            case()

        return call

    with patch.object(Pool, "exchange", exchange):
        yield {name: of(name, case) for name, case in cases.items()}


def print_rows(name: str, cases: dict[str, Callable[[], Any]], count: int) -> None:
    """Measure and print one operation on all tables."""
    objects, share = OPERATIONS[name]
    for case in cases.values():
        case()
    taken = single_calls(cases, count=count // share)
    unit = 1e6 / objects
    quiet = "" if abs(median_difference(taken[CONTROL], taken[OWN])) * unit <= QUIET else "  inconclusive"
    for case, seconds in taken.items():
        more = median_difference(seconds, taken[OWN]) * unit
        least = (fastest(seconds) - fastest(taken[OWN])) * unit
        ratio = median_ratio(seconds, taken[OWN])
        row = f"{name:<24}{case:<12}{median(seconds) * unit:>12.2f}"
        print(f"{row}{more:>12.2f}{least:>14.2f}{ratio:>8.3f}{quiet}")


def fastest(seconds: list[float]) -> float:
    """Return the 5 % quantile: calls that no other process disturbed."""
    return sorted(seconds)[len(seconds) // 20]


def main() -> None:
    """Measure and print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=4000, help="how many")
    parser.add_argument("--engine", action="store_true", help="let the engine respond to each call")
    options = parser.parse_args()
    with local_engine() as table:
        place = {"REGION": table.settings.region, "ENDPOINT_URL": table.settings.endpoint_url, "MIGRATIONS": "trust"}
        shaped = {
            alias: {**place, "TABLE_NAME": f"table-{number}", **TABLES[alias]} for number, alias in enumerate(TABLES)
        }
        with override_settings(DYNAMO_SINGLE={**settings.DYNAMO_SINGLE, **shaped}):
            operations = {}
            for alias in TABLES:
                schema.recreate(get_table(alias))
                operations[alias] = cases_of(model_of(alias))
            settle()
            print(f"{'operation':<24}{'table':<12}{'median, µs':>12}{'more, µs':>12}{'fastest 5 %':>14}{'ratio':>8}")
            for name in OPERATIONS:
                cases = {alias: each[name] for alias, each in operations.items()}
                with nullcontext(cases) if options.engine else replayed(cases) as called:
                    print_rows(name, called, options.rounds)


if __name__ == "__main__":
    main()
