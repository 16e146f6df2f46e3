"""Tables as other programs design them: keys of several models, attributes as keys, numbers, local indexes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from tests.contract.adoption.other_programs import ALL, Index
from tests.unit.inspection.tables import item

#: Names that are no Python names, or that models, Django or expressions use.
ODD_NAMES = (
    "class", "a b", "it's", 'x"); import os #', "a.b", "#n", ":v", "count", "models", "2fa", "é", "ﬁ", "a\nb", "__x__",
    "_", "objects", "{a}", "Keys", "None", "naïve[0]", "🙂", "pk", "itemType",
)  # fmt: skip


class Design(Struct, frozen=True):
    """A table: its keys, its indexes, its items, and the models that they are."""

    name: str
    keys: tuple[str, ...]
    items: list[dict[str, Any]]
    models: dict[str, tuple[str, ...]]
    indexes: Sequence[Index] = ()
    local: Sequence[Index] = ()
    ttl: str | None = None
    #: Names that no attribute of the models has, or whose values are NULL.
    undeclared: tuple[str, ...] = ()


def _orders() -> list[dict[str, Any]]:
    profiles = [
        item(PK=f"CUSTOMER#{c}", SK="PROFILE", username=c, email=f"{c[:1]}@example.com") for c in ("jane doe", "bob")
    ]
    profiles[0] |= item(age=30)
    orders = [
        item(
            PK=f"CUSTOMER#{c}",
            SK=f"ORDER#{n}",
            GSI1PK=f"ORDER#{n}",
            GSI1SK=f"2024-0{n}",
            username=c,
            order_id=f"{n}",
            status="open" if n % 2 else "paid",
            total=n * 1.5,
            placed=f"2024-0{n}",
        )
        for n in range(1, 8)
        for c in (("jane doe", "bob")[n % 2],)
    ]
    return [*profiles, *orders, item(PK="SETTINGS", SK="x", foreign="left alone")]


DESIGNS: tuple[Design, ...] = (
    Design(
        "shop-by-keys",
        ("PK", "SK"),
        _orders(),
        {
            "Customer": ("CUSTOMER#{username}", "PROFILE"),
            "Order": ("CUSTOMER#{username}", "ORDER#{order_id}"),
            "Setting": ("SETTINGS", "{sk}"),
        },
        indexes=[("GSI1", ("GSI1PK", "GSI1SK"), ALL)],
    ),
    Design(
        "companies",
        ("id", "field"),
        [
            *(
                item(id=f"id{n}", field=f"root_id{n}", name=f"Acme {n}", type="company", data=f"Acme {n}")
                for n in range(2)
            ),
            *(
                item(id="id1", field=f"people_p{n}", name=f"n{n}", person=f"p{n}", type="person", data=f"n{n}")
                for n in range(3)
            ),
        ],
        {"Person": ("{id}", "people_{person}"), "Company": ("{id}", "root_{id}")},
        indexes=[("by-type", ("type", "data"), ALL)],
    ),
    Design(
        "threads",
        ("forum_name", "subject"),
        [
            item(
                forum_name="Amazon DynamoDB",
                subject=f"How to #{n}?",
                views=n,
                answered=bool(n % 2),
                last_post=f"2024-01-0{n + 1}T00:00:00.000000+0000",
            )
            | ({"tags": {"SS": ["a", "b"]}} if n else {})
            for n in range(4)
        ],
        {"Thread": ("{forum_name}", "{subject}")},
        indexes=[("views-index", ("views:N",), ALL)],
    ),
    Design(
        "posts",
        ("user_id", "number:N"),
        [item(user_id=f"u{n % 2}", number=n, text=f"t{n}") for n in (-5, 0, 3, 10, 200)],
        {"Post": ("{user_id}", "{number}")},
    ),
    Design(
        "members",
        ("user_id",),
        [item(user_id="u1", name="one"), item(user_id="u#2", name="", nickname="two")],
        {"Member": ("{user_id}",)},
    ),
    Design(
        "documents",
        ("doc_id",),
        [
            item(doc_id=f"d{n}", title=f"T {n}", revision=n, body={"a": [1, None, "x"], "b": {}}, ttl=2_000_000_000)
            for n in range(3)
        ],
        {"Document": ("{doc_id}",)},
        ttl="ttl",
    ),
    Design(
        "files",
        ("owner", "name"),
        [item(owner=f"o{n % 2}", name=f"f {n}", size=100 - n) for n in range(6)],
        {"File": ("{owner}", "{name}")},
        local=[("by-size", ("owner", "size:N"), ALL)],
    ),
    Design(
        "seats",
        ("PK", "SK"),
        [item(PK=f"ORG#o{n % 2}", SK=f"USER#u {n}", name=f"n{n}") for n in range(4)],
        {"User": ("ORG#{org}", "USER#{user}")},
    ),
    Design(
        "jobs",
        ("PK", "SK"),
        [item(PK=f"JOB#{n}", SK="J", job=f"{n}", status="open" if n % 2 else "done", text="t") for n in range(5)],
        {"Job": ("JOB#{job}", "J")},
        indexes=[("by-status", ("status", "PK"), {"ProjectionType": "KEYS_ONLY"})],
    ),
    Design(
        "types",
        ("pk", "sk"),
        [
            *(
                item(pk=f"USER#{n}", sk=f"USER#{n}", entityType="User", user_id=f"{n}", email=f"{n}@x.org")
                for n in range(3)
            ),
            *(
                item(pk=f"USER#{n % 3}", sk=f"NOTE#{n}", entityType="Note", note_id=f"{n}", user_id=f"{n % 3}")
                for n in range(6)
            ),
        ],
        {"User": ("USER#{user_id}", "USER#{user_id}"), "Note": ("USER#{user_id}", "NOTE#{note_id}")},
    ),
    Design(
        "app-names",
        ("pk", "sk"),
        [item(pk=f"a{n}", sk=f"b {n % 2}", expiresAt=1_900_000_000, gs1pk="x") for n in range(4)],
        {"AppName": ("{partition_value}", "{sort_value}")},
    ),
    Design(
        "odd-names",
        ("PK", "SK"),
        [
            item(
                PK=f"THING#{value}",
                SK="A",
                thing=value,
                **dict.fromkeys(ODD_NAMES, f"value {n}"),
            )
            for n, value in enumerate(("a b", "{x}", "\"'\\", "é🙂", "a\nb", "$_", "\u202e", " "))
        ],
        {"Thing": ("THING#{thing}", "A")},
        undeclared=("pk", "itemType"),
    ),
    Design(
        "mixture",
        ("PK", "SK"),
        [
            *(item(PK=f"CUSTOMER#{n}", SK="PROFILE", customer_id=f"{n}") for n in range(3)),
            item(PK="CUSTOMER#a#b", SK="PROFILE", customer_id="a#b"),
            item(PK="x", SK="y"),
            item(PK="#", SK="##", value=b"\x00"),
            item(PK="UNIQUE#User#email#a@example.com", SK="#CLAIM", owner="USER#1"),
            item(PK="CUSTOMER#1", SK="ORDER#1", total=None),
            item(PK="CUSTOMER#1", SK="ORDER#2", total=5),
        ],
        {},
        undeclared=("total",),
    ),
)
