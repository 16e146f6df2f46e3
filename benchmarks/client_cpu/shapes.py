"""What does one operation cost the client's CPU on a table with custom names, compared with the app's default names?

``python -m benchmarks.client_cpu.shapes [--rounds N]`` starts a local engine in memory with four tables: with the app's
default names, with other names, with other names and no type, and with attributes as keys, including a number. The
control repeats the table with default names.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.test import override_settings

from benchmarks.harness.rounds import is_quiet, median_ratio, rounds, settle
from dynamo_single import models
from dynamo_single.table import get_table, schema
from dynamo_single.testing import local_engine

OWN, CONTROL = "own", "own again"
INDEX = {"gs1": {"name": "GSI1", "partition": "GSI1PK", "sort": "GSI1SK"}}
NAMED: dict[str, Any] = {"PARTITION_KEY": "PK", "SORT_KEY": "SK", "TYPE_ATTRIBUTE": "_type", "INDEXES": INDEX}
TABLES: dict[str, dict[str, Any]] = {
    OWN: {},
    "named": NAMED,
    "untyped": {**NAMED, "TYPE_ATTRIBUTE": None, "RAW_KEYS": True},
    "number": {"PARTITION_KEY": "owner", "SORT_KEY": "number:N", "TYPE_ATTRIBUTE": None, "RAW_KEYS": True},
}
LISTED = 1000
#: The number of calls of an operation in one measurement.
REPEAT = {"get": 200, "save of one attribute": 100, f"list of {LISTED}": 4}


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
    return dict(zip(REPEAT, operations, strict=True))


def main() -> None:
    """Measure and print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="how many")
    count = parser.parse_args().rounds
    with local_engine() as table:
        place = {"REGION": table.settings.region, "ENDPOINT_URL": table.settings.endpoint_url, "MIGRATIONS": "trust"}
        shaped = {alias: {**place, "TABLE_NAME": f"table-{alias}", **shape} for alias, shape in TABLES.items()}
        with override_settings(DYNAMO_SINGLE={**settings.DYNAMO_SINGLE, **shaped}):
            operations = {}
            for alias in TABLES:
                schema.recreate(get_table(alias))
                operations[alias] = cases_of(model_of(alias))
            operations[CONTROL] = operations[OWN]
            settle()
            print(f"{'operation':<24}{'table':<12}{'least, µs':>12}{'more, µs':>12}{'ratio':>8}")
            for name, repeat in REPEAT.items():
                taken = rounds({case: each[name] for case, each in operations.items()}, count=count, repeat=repeat)
                quiet = "" if is_quiet(median_ratio(taken[CONTROL], taken[OWN])) else "  inconclusive"
                for case, seconds in taken.items():
                    more = min(seconds) - min(taken[OWN])
                    row = f"{name:<24}{case:<12}{min(seconds) * 1e6:>12.1f}{more * 1e6:>12.1f}"
                    print(f"{row}{median_ratio(seconds, taken[OWN]):>8.2f}{quiet}")


if __name__ == "__main__":
    main()
