"""Patrons whose schema version was raised twice, and items of each version as code of its day has written them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynamo_single import models
from dynamo_single.table import Request, Table
from tests.unit.declaring import declare

#: What each code of the past has stored of a patron named "Ada Byron" with 50 cents and five stars.
WRITTEN: dict[int, dict[str, Any]] = {
    1: {"name": {"S": "Ada Byron"}, "price": {"S": "0.50"}, "town": {"S": "Bern"}, "stars": {"N": "5"}},
    2: {"first": {"S": "Ada"}, "last": {"S": "Byron"}, "price": {"S": "0.50"}, "town": {"S": "Bern"}},
    3: {
        "first": {"S": "Ada"},
        "last": {"S": "Byron"},
        "cents": {"N": "50"},
        "town": {"S": "Bern"},
        "folded": {"S": "byron"},
        "gs2pk": {"S": "PATRON"},
        "gs2sk": {"S": "Byron#d"},
    },
}


def split_name(item: Mapping[str, Any]) -> dict[str, Any]:
    """From version 1 to 2: one name becomes two."""
    first, _, last = item["name"].partition(" ")
    return {"first": first, "last": last or first, "name": None}


def count_cents(item: Mapping[str, Any]) -> dict[str, Any]:
    """From version 2 to 3: a price as text becomes a number of cents."""
    price = item.get("price", "0.00")
    return {"cents": int(price.replace(".", "")), "price": None}


SPLIT = models.Upgrade(split_name, changes=["first", "last", "name"])
COUNT = models.Upgrade(count_cents, changes=["cents", "price"])


def attributes() -> dict[str, Any]:
    """What the code of version 3 declares."""
    return {
        "patron_id": models.IdAttribute(),
        "first": models.UnicodeAttribute(),
        "last": models.UnicodeAttribute(),
        "folded": models.CanonicalAttribute(source="last"),
        "cents": models.IntegerAttribute(),
        "town": models.UnicodeAttribute(),
        "stars": models.IntegerAttribute(null=True),
    }


KEYS = {
    "by_town": models.IndexKey("gs1", "PATRON", "{town}#{patron_id}"),
    "by_last": models.IndexKey("gs2", "PATRON", "{last}#{patron_id}"),
}
PRIMARY = ("PATRON#{patron_id}", "#METADATA")
VERSIONS: dict[str, Any] = {"schema_version": 3, "upgrades": {1: SPLIT, 2: COUNT}}


def patron(**options: Any) -> Any:
    """The model as it is now, at version 3."""
    return declare(
        "Patron", PRIMARY, KEYS, bases=(models.SoftDeleteModel,), options={**VERSIONS, **options}, **attributes()
    )


def put(table: Table, patron_id: str, version: int | None, **changes: Any) -> dict[str, Any]:
    """Store a patron as code of a version did; ``None`` for code that knew no versions yet."""
    key = {"pk": {"S": f"PATRON#{patron_id}"}, "sk": {"S": "#METADATA"}, "itemType": {"S": "Patron"}}
    town = {"gs1pk": {"S": "PATRON"}, "gs1sk": {"S": f"Bern#{patron_id}"}}
    mark = {} if version is None else {"schemaVersion": {"N": str(version)}}
    item = {**key, **town, "patron_id": {"S": patron_id}, **WRITTEN[version or 1], **mark, **changes}
    table.send(Request("PutItem", {"Item": {name: value for name, value in item.items() if value is not None}}))
    return item
