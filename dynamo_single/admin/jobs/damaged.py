"""Leave damaged jobs out, so that they stop no page; the log names each."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Final

from dynamo_single.admin.jobs.models import AdminJob
from dynamo_single.exceptions import UnexpectedItem, UnreadableItem
from dynamo_single.orm.items import hydration
from dynamo_single.orm.requests.actions import key_of
from dynamo_single.orm.schema import registry
from dynamo_single.table import names
from dynamo_single.table.request import Request
from dynamo_single.table.table import get_table

logger = logging.getLogger("dynamo_single.admin")

#: What reading an item raises that does not hold what a job has.
DAMAGED: Final = (UnexpectedItem, UnreadableItem)


def tell(user_key: str, job_id: str) -> None:
    """Log that a job is damaged, and what can be done."""
    logger.error(
        "The job pk='ADMINJOB#%s', sk=%r is damaged and cannot be resumed. Choose the objects again that are left, and "
        "delete the item.",
        user_key,
        job_id,
    )


def without(jobs: Iterable[AdminJob]) -> list[AdminJob]:
    """Return the jobs that are not damaged."""
    found = []
    for job in jobs:
        if job.is_damaged:
            tell(*_key(job))
        else:
            found.append(job)
    return found


def readable(user_key: str, most: int) -> list[AdminJob]:
    """Return the newest jobs of a user that can be read, up to ``most``: one Query of up to a megabyte."""
    partition = registry.layout_of(AdminJob).primary.partition.render({"user_key": user_key})
    params: dict[str, Any] = {
        "KeyConditionExpression": "#p = :p",
        "ExpressionAttributeNames": {"#p": names.PARTITION_KEY},
        "ExpressionAttributeValues": {":p": {"S": partition}},
        "ScanIndexForward": False,
        "Limit": most,
    }
    found = []
    for item in get_table(AdminJob._options.alias).send(Request("Query", params))["Items"]:
        try:
            job = hydration.instance(AdminJob, item)
        except DAMAGED:
            tell(user_key, key_of(item)[1])
        else:
            found += without([job] if hydration.is_live(AdminJob, item) else [])
    return found


def _key(job: AdminJob) -> tuple[str, str]:
    """The user and the job, by the key of the item: the attributes may be what is damaged."""
    partition, sort = key_of(job._stored or {})
    return partition.partition("#")[2], sort
