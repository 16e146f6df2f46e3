"""Several processes write at once: DynamoDB's conditions decide, and what is left is consistent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from dynamo_single.query import Request
from dynamo_single.table import Table
from tests.catalog.models import Member

ROOT = Path(__file__).resolve().parents[2]
WRITERS = 4
ADDRESSES = 25

# Each writer takes the same addresses in the same order, and says which of them it got.
WRITER = f"""
import django, json, sys
django.setup()
from dynamo_single.exceptions import TransactionCancelled, UniqueViolation
from tests.catalog.models import Member
sys.stdin.readline()
won = []
for number in range({ADDRESSES}):
    try:
        Member.objects.create(email=f"{{number}}@example.org")
    except (UniqueViolation, TransactionCancelled):
        continue
    won.append(number)
print(json.dumps(won))
"""


def test_a_unique_value_is_created_once_whoever_is_first(table: Table) -> None:
    """Each address has exactly one holder, and each claim belongs to a stored object."""
    url = str(table.settings.endpoint_url).replace("http://", "dynamodb://")
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "DYNAMO_TEST_URL": f"{url}/{table.name}?region=us-east-1",
    }
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(WRITERS)
    ]
    outputs = [writer.communicate("go\n", timeout=120)[0] for writer in writers]
    won = [number for output in outputs for number in json.loads(output)]
    members = list(Member.objects.all())
    assert sorted(won) == sorted(int(member.email.split("@")[0]) for member in members) == list(range(ADDRESSES))
    claims = {item["pk"]["S"]: item["ownerPk"]["S"] for item in items(table) if item["pk"]["S"].startswith("UNIQUE#")}
    assert claims == {f"UNIQUE#Member#email#{m.email}": m.partition_key for m in members}


def items(table: Table) -> list[dict[str, dict[str, str]]]:
    """Every item of the table."""
    found: list[dict[str, dict[str, str]]] = table.send(Request("Scan"))["Items"]
    return found
