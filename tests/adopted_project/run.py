"""Lets the app write every kind of item, and prints the type and the table of each as JSON."""

import json
import os
import sys
import warnings
from datetime import timedelta
from typing import Any

import django
from django.core.cache import cache
from django.test import Client
from django.test.utils import setup_test_environment


def main() -> None:
    """Run the steps; a warning raises an error."""
    warnings.simplefilter("error")
    django.setup()
    setup_test_environment()
    from django.contrib.auth import get_user_model
    from django.core.management import call_command

    from dynamo_single import clock
    from dynamo_single.admin.batch_actions.models import AdminJob
    from dynamo_single.conf import aliases
    from dynamo_single.table import Request, capture_requests, get_table, schema

    for alias in aliases():
        schema.recreate(get_table(alias))
    with capture_requests() as sent:
        call_command("migrate", verbosity=0)
        call_command("dynamo_sample", verbosity=0)
        user = get_user_model()._default_manager.create_superuser("admin", "admin@example.com", "secret")
        client = Client()
        client.force_login(user)
        forms = ("TOTAL_FORMS", "INITIAL_FORMS")
        inlines = {f"{prefix}-{name}": "0" for prefix in ("person_set", "office_set") for name in forms}
        answer = client.post("/admin/directory/company/add/", {"name": "Acme", **inlines})
        AdminJob.objects.create(
            user_key="1", label="x", action="x", keys=[], expires_at=clock.now() + timedelta(hours=1)
        )
        cache.set("large", os.urandom(500_000))
        cache.clear()
        work_on_items(get_table())
    written = [(table, item_type) for each in sent for table, item_type in types_in(each.operation, each.params)]
    for table in map(get_table, aliases()):
        for page in table.pages(Request("Scan")):
            written += [(table.name, item["itemType"]["S"]) for item in page["Items"]]
    json.dump({"answer": answer.status_code, "written": sorted({*written})}, sys.stdout)


def work_on_items(table: Any) -> None:
    """Run a pass of a migration, which stores its progress."""
    from dynamo_single.evolution.backfill import Task, Work, run_work
    from dynamo_single.orm.requests.actions import type_condition

    run_work(Work("directory", "0001", 0, "none", "nothing", Task(type_condition("None"), lambda *_: ())), table)


def types_in(operation: str, params: Any) -> list[tuple[str, str]]:
    """The tables that a request writes to, each with the type of the item, or its key if the request names no type."""
    if operation == "TransactWriteItems":
        actions = [action for each in params["TransactItems"] for action in each.values()]
    elif operation == "BatchWriteItem":
        actions = [
            {"TableName": name, **action}
            for name, entries in params["RequestItems"].items()
            for each in entries
            for action in each.values()
        ]
    elif operation == "BatchExecuteStatement":
        return [(each["Statement"].split('"')[1], "statement") for each in params["Statements"]]
    elif operation in ("PutItem", "UpdateItem", "DeleteItem"):
        actions = [params]
    else:
        return []
    return [(each["TableName"], type_of(each)) for each in actions]


def type_of(action: Any) -> str:
    """The type that an action writes, or the beginning of its key if the item has no type."""
    if "itemType" in action.get("Item", {}):
        return str(action["Item"]["itemType"]["S"])
    placeholders = [mark for mark, name in action.get("ExpressionAttributeNames", {}).items() if name == "itemType"]
    values = action.get("ExpressionAttributeValues", {})
    found = [values[f":{mark[1:]}"]["S"] for mark in placeholders if f":{mark[1:]}" in values]
    return str(found[0]) if found else "key " + (action.get("Key") or action["Item"])["pk"]["S"].split("#")[0]


if __name__ == "__main__":
    main()
