"""Read a bounded part of an existing table, whatever its keys are called.

``lines()`` shows some stored values to people, with masked secrets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from dynamo_single.contrib.inspection.grouping import Kind, Layout
from dynamo_single.contrib.inspection.keys import text_of
from dynamo_single.contrib.inspection.names import literal
from dynamo_single.contrib.inspection.proposal import ProposedModel
from dynamo_single.exceptions import AccessDenied, TableUnavailable
from dynamo_single.orm.schema import secrecy
from dynamo_single.orm.schema.keys.secret_values import MASK, hide_in, is_secret_name
from dynamo_single.table.request import Item, Request, StoredValue
from dynamo_single.table.table import Table, patience

#: The number of segments that the Scan reads in turn, so a large partition does not fill the sample.
SEGMENTS: Final = 8
#: The most items of one page.
PAGE: Final = 250
#: The most Scan requests. A page has at most 1 MB, so the sample has at most 64 MB and costs at most 8,192 read units:
#: half a unit for 4 KB (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html).
MAX_PAGES: Final = 64
#: The different values that are shown of one attribute, and their longest text.
VALUES: Final = 3
LONGEST: Final = 60
#: A shorter secret is not searched for in other values.
_SHORTEST: Final = 4


class Sample(Struct, frozen=True):
    """The description of a table and some of its items.

    ``ttl`` is the attribute of the time to live, or ``None``; ``knows_ttl`` is false if the role may not read it.
    ``failure`` is the message of an error that ended the Scan early. ``is_complete`` is true if the table has no
    other items.
    """

    description: Any
    items: list[Item]
    ttl: str | None = None
    knows_ttl: bool = True
    is_complete: bool = True
    requests: int = 0
    units: float = 0.0
    failure: str = ""


def read(table: Table, most: int) -> Sample:
    """Read the description, the time to live, and at most ``most`` items of a table.

    Sends DescribeTable, DescribeTimeToLive and up to ``MAX_PAGES`` eventually consistent Scan requests of ``PAGE``
    items, each of another segment than the last one. Nothing is written. Throttled requests are retried for about 20
    seconds. If a Scan fails after others succeeded, the sample contains what was read, and why it ended.
    """
    description = table.send_patiently(Request("DescribeTable"))["Table"]
    ttl, knows_ttl = None, True
    try:
        found = table.send_patiently(Request("DescribeTimeToLive"))["TimeToLiveDescription"]
        ttl = found.get("AttributeName") if found.get("TimeToLiveStatus") in ("ENABLED", "ENABLING") else None
    except AccessDenied:
        knows_ttl = False
    items: list[Item] = []
    starts: dict[int, Any] = dict.fromkeys(range(SEGMENTS))
    requests, units, failure = 0, 0.0, ""
    with patience():
        while starts and len(items) < most and requests < MAX_PAGES:
            segment = next(iter(starts))
            try:
                page = table.send_patiently(_scan(segment, starts.pop(segment), most - len(items), len(starts) + 1))
            except TableUnavailable as error:
                if not items:
                    raise
                starts[segment], failure = None, str(error)
                break
            requests, units = requests + 1, units + page.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0)
            items += page.get("Items", ())
            if "LastEvaluatedKey" in page:
                starts[segment] = page["LastEvaluatedKey"]
    return Sample(description, items, ttl, knows_ttl, not starts, requests, units, failure)


def _scan(segment: int, start: Any, wanted: int, segments: int) -> Request:
    """Return the next page of one segment, with an equal share of the items that are still wanted."""
    params: dict[str, Any] = {
        "Segment": segment,
        "TotalSegments": SEGMENTS,
        "Limit": max(1, min(PAGE, -(-wanted // segments))),
    }
    return Request("Scan", params if start is None else {**params, "ExclusiveStartKey": start})


def lines(model: ProposedModel, kind: Kind, layout: Layout) -> Iterator[str]:
    """Yield a line with up to ``VALUES`` different values for each attribute and key of a model's items."""
    secrets = [*_secrets(kind.items)]
    by_stored = {each.stored: each.name for each in model.attributes}
    stored = dict.fromkeys((*layout.key_names, *(each.stored for each in model.attributes)))
    for name in sorted(stored, key=lambda each: each not in layout.key_names):
        shown = dict.fromkeys(_shown(name, item[name], secrets) for item in kind.items if name in item)
        if shown:
            yield f"{model.name}.{by_stored.get(name, literal(name))}: {', '.join([*shown][:VALUES])}"


def _secrets(items: Sequence[Item]) -> Iterator[str]:
    """Yield the values of secret attributes, which keys may repeat."""
    for item in items:
        for name, value in item.items():
            if secrecy.is_secret(None, name) and len(text := text_of(value) or "") >= _SHORTEST:
                yield text


def _shown(name: str, value: StoredValue, secrets: Sequence[str]) -> str:
    text = text_of(value)
    if secrecy.is_secret(None, name) or (text is not None and any(each in text for each in secrets)):
        return MASK
    if text is not None and any(
        is_secret_name(part) for part in text.replace("|", "#").replace(":", "#").split("#")[:-1]
    ):
        return MASK  # a key such as TOKEN#... contains the secret
    found = literal(str(hide_in(_plain(value))))
    return found if len(found) <= LONGEST else f"{found[: LONGEST - 1]}…"


def _plain(value: StoredValue) -> Any:
    """Return a stored value as Python's, with the length of binary values instead of their bytes."""
    ((kind, found),) = value.items()
    if kind == "M":
        return {name: _plain(each) for name, each in found.items()}
    if kind == "L":
        return [_plain(each) for each in found]
    if kind in ("B", "BS"):
        return f"{len(found)} {'bytes' if kind == 'B' else 'binary values'}"
    return None if kind == "NULL" else found
