"""Time and memory to write a new index key into every item and to load a fixture, compared with PynamoDB's batch write.

``python -m benchmarks.backfill.run [ITEMS ...]`` fills a table of a local engine in memory for each number of items
and each side, and runs the change in a separate process. The sides that load begin with an empty table. Times depend on
the machine; compare them by ratio in one run.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import django
from django.core import serializers
from django.core.management import call_command

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django.setup()

from benchmarks.orders import item, values, wire  # noqa: E402 - after Django is set up
from benchmarks.sides.pynamodb_model import model_of  # noqa: E402
from dynamo_single.evolution.backfill import Options, Work, run_work  # noqa: E402
from dynamo_single.evolution.backfill.rewrite import rewrite_index_keys  # noqa: E402
from dynamo_single.evolution.snapshots import Snapshot  # noqa: E402
from dynamo_single.table import Request, Table, get_table  # noqa: E402
from dynamo_single.testing import local_engine, setup_table  # noqa: E402
from tests.catalog.models import Order  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
FIXTURE = ROOT / "var" / "benchmarks" / "orders.json"
NUMBERS = (10_000, 200_000)
CUSTOMERS = 1000
LOAD_THEIRS, LOAD_OURS = "pynamodb, load", "ours, loaddata"
#: The number of segments that ours reads in parallel. PynamoDB reads and writes sequentially.
SIDES = {"pynamodb": 0, "ours, 1 segment": 1, "ours, 4 segments": 4, LOAD_THEIRS: 0, LOAD_OURS: 0}
COLUMNS = "{:>8}  {:<18}{:>9}{:>10}{:>10}{:>9}{:>9}"


def fill(table: Table, count: int) -> None:
    """Write orders of a thousand customers, without the new key."""
    for start in range(0, count, 25):
        items = (wire(f"c{number % CUSTOMERS}", number) for number in range(start, min(start + 25, count)))
        puts = [{"PutRequest": {"Item": {n: v for n, v in item.items() if not n.startswith("gs2")}}} for item in items]
        table.send(Request("BatchWriteItem", {"RequestItems": {table.name: puts}}))


def ours(table: Table, segments: int) -> int:
    """Backfill the key with the current model's snapshot, as a migration does; return the number of changes."""
    task = rewrite_index_keys(Snapshot.of(Order), ["gs2"])
    work = Work("catalog", "0002_order_by_coupon", 0, "open", "Add key by_coupon to Order", task)
    return run_work(work, table, Options(segments=segments)).changed


def pynamodb(table: Table) -> int:
    """Read every item as an object and write it whole, in batches. Concurrent changes are overwritten."""
    model = model_of(table.settings.endpoint_url, "us-east-1", table.name)
    changed = 0
    with model.batch_write() as batch:
        for order in model.scan(model.item_type == "Order"):
            order.gs2pk = f"COUPON#{order.coupon}"
            order.gs2sk = f"{order.customer}#{order.pk}"
            batch.save(order)
            changed += 1
    return changed


def write_fixture(count: int) -> None:
    """Write a fixture of all orders, as ``dumpdata`` does."""
    orders = (Order(**values(f"c{number % CUSTOMERS}", number)) for number in range(count))
    FIXTURE.parent.mkdir(parents=True, exist_ok=True)
    with FIXTURE.open("w") as stream:
        serializers.serialize("json", orders, stream=stream)


def load_ours() -> int:
    """Load the fixture with ``loaddata``, which does not overwrite concurrent changes."""
    call_command("loaddata", str(FIXTURE), verbosity=0)
    return len(json.loads(FIXTURE.read_text()))


def load_theirs(table: Table) -> int:
    """Write every row as a whole object, in batches. Existing items are overwritten."""
    model = model_of(table.settings.endpoint_url, "us-east-1", table.name)
    rows = json.loads(FIXTURE.read_text())
    with model.batch_write() as batch:
        for row in rows:
            said = row["fields"]
            key = item(said["customer"], said["number"])
            given = {name: key[name] for name in ("gs1pk", "gs1sk", "gs2pk", "gs2sk")}
            moment, total = datetime.fromisoformat(said["placed_at"]), Decimal(said["total"])
            batch.save(
                model(key["pk"], key["sk"], item_type="Order", **{**given, **said, "placed_at": moment, "total": total})
            )
    return len(rows)


def carried_out(side: str) -> dict[str, Any]:
    """Run a side in this process; return its seconds, its processor time, and the process's peak memory."""
    segments = SIDES[side]
    table = get_table()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started, cpu = time.perf_counter(), time.process_time()
    if side in (LOAD_THEIRS, LOAD_OURS):
        changed = load_ours() if side == LOAD_OURS else load_theirs(table)
    else:
        changed = ours(table, segments) if segments else pynamodb(table)
    seconds, used = time.perf_counter() - started, time.process_time() - cpu
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"changed": changed, "seconds": seconds, "cpu": used, "before": before, "held": held}


def in_a_process(table: Table, side: str) -> dict[str, Any]:
    """Run a side in another process; return its results."""
    url = str(table.settings.endpoint_url).replace("http://", "dynamodb://")
    environment = {**os.environ, "DYNAMO_TEST_URL": f"{url}/{table.name}?region=us-east-1"}
    command = (sys.executable, "-m", "benchmarks.backfill.run", "--side", side)
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main(numbers: tuple[int, ...]) -> None:
    """Fill a table, run the change and print a row, for each number of items and each side."""
    print(COLUMNS.format("items", "side", "seconds", "items/s", "CPU us", "MiB", "MiB more"))
    with local_engine():
        for count in numbers:
            write_fixture(count)
            for side in SIDES:
                table = setup_table()
                if side not in (LOAD_THEIRS, LOAD_OURS):
                    fill(table, count)
                found = in_a_process(table, side)
                if found["changed"] != count:
                    raise RuntimeError(f"{side} has changed {found['changed']} of {count} items.")
                seconds, held = found["seconds"], found["held"] / 1024
                row = (f"{seconds:.1f}", f"{count / seconds:,.0f}", f"{found['cpu'] / count * 1e6:.0f}")
                print(
                    COLUMNS.format(count, side, *row, f"{held:.0f}", f"{held - found['before'] / 1024:.0f}"), flush=True
                )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--side"]:
        print(json.dumps(carried_out(sys.argv[2])))
    else:
        main(tuple(map(int, sys.argv[1:])) or NUMBERS)
