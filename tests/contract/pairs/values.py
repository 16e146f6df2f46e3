"""The capabilities of single values and of whole items: one class a row."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any
from uuid import UUID

from tests.contract.pairs.capabilities import NOT_BY_PYNAMODB, some
from tests.contract.pairs.drafts import Family
from tests.contract.pairs.oracle import (
    Act,
    Capability,
    Expected,
    Kept,
    Row,
    World,
    arguments,
)


class version(Capability):
    """`VersionAttribute`: a change since the read is not overwritten."""

    title = "version"
    covers = ("VersionAttribute",)
    refuses = NOT_BY_PYNAMODB

    def add(self, family: Family) -> None:
        family.thing.attributes["version"] = "models.VersionAttribute()"

    def acts(self, chance: random.Random, world: World) -> Iterator[Act]:
        pk = some(chance, world.live)
        if pk is not None:
            before = world.things[pk].values["note"]
            note = chance.choice([each for each in ("one", "two", "three") if each != before])
            after = {**world.things[pk].values, "note": note}
            text = f"save_twice(Thing, {pk!r}, note={note!r}, error=StaleObject)"
            yield Act(text, lambda world: world.write(pk, after))


class immutable(Capability):
    """`immutable=True`: the original value of an object is kept."""

    title = "immutable"
    covers = ("Attribute.immutable",)
    refuses = NOT_BY_PYNAMODB

    def add(self, family: Family) -> None:
        family.thing.attributes["origin"] = "models.UnicodeAttribute(default='here', immutable=True)"


class secret(Capability):
    """`secret=True`: the value is only for code, and no page shows it."""

    title = "secret"
    earlier = MappingProxyType({"token": None})
    covers = ("Attribute.secret",)

    def add(self, family: Family) -> None:
        family.thing.attributes["token"] = "models.UnicodeAttribute(null=True, secret=True)"
        family.shown.append("token")

    def values(self, chance: random.Random, world: World) -> Row:
        return {"token": chance.choice((None, "t1", "t2"))}


class moments(Capability):
    """`TimestampedModel`, whose time of the last change is in a key."""

    title = "timestamps"
    covers = ("TimestampedModel", "TimestampAttribute")

    def prior(self, family: Family) -> None:
        family.thing.bases.append("models.TimestampedModel")

    def add(self, family: Family) -> None:
        family.thing.bases.append("models.TimestampedModel")
        family.thing.keys["by_change"] = (
            f"models.IndexKey('{family.index()}', 'CHANGED', '{{updated_at}}#{{thing_id}}')"
        )

    def expected(self, world: World) -> Iterator[Expected]:
        yield Expected("pks(Thing.objects.order_by('updated_at'))", sorted(world.live))


class plain(Capability):
    """Attributes of every plain kind, some of them in a key."""

    title = "plain values"
    #: A thing that lacks them has the defaults.
    earlier = MappingProxyType(
        dict.fromkeys(("price", "day", "hour", "long", "mail", "at", "slug", "link", "uuid", "json"))
        | {"flag": False, "number": 0, "size": "s", "list": []}
    )
    covers = (
        *("BinaryAttribute", "BinarySetAttribute", "BooleanAttribute", "DateAttribute", "DecimalAttribute"),
        *("DurationAttribute", "EmailAttribute", "IPAddressAttribute", "IntegerAttribute", "JSONAttribute"),
        *("ListAttribute", "NumberAttribute", "NumberSetAttribute", "SlugAttribute", "TimeAttribute"),
        *("URLAttribute", "UUIDAttribute", "UnicodeAttribute", "UnicodeSetAttribute"),
        *("Attribute.attr_name", "Attribute.choices", "Attribute.default", "Attribute.null"),
    )
    #: The declaration of each, and values that it may have.
    kinds: Mapping[str, tuple[str, tuple[Any, ...]]] = {
        "flag": ("models.BooleanAttribute(default=False)", (True, False)),
        "number": ("models.IntegerAttribute(default=0, attr_name='n')", (0, -5, 10**20)),
        "price": ("models.DecimalAttribute(null=True)", (None, Decimal("1.5"), Decimal(-3))),
        "day": ("models.DateAttribute(null=True)", (None, date(2026, 1, 31))),
        "hour": ("models.TimeAttribute(null=True)", (None, time(9, 30))),
        "long": ("models.DurationAttribute(null=True)", (None, timedelta(days=2))),
        "mail": ("models.EmailAttribute(null=True)", (None, "a@example.org")),
        "at": ("models.IPAddressAttribute(null=True)", (None, "127.0.0.1")),
        "slug": ("models.SlugAttribute(null=True)", (None, "a-b")),
        "link": ("models.URLAttribute(null=True)", (None, "https://example.org/")),
        "uuid": ("models.UUIDAttribute(null=True)", (None, UUID(int=7))),
        "size": ("models.UnicodeAttribute(default='s', choices=[('s', 'small'), ('l', 'large')])", ("s", "l")),
        "json": ("models.JSONAttribute(null=True)", (None, {"a": [1, None]})),
        "list": ("models.ListAttribute(default=list, blank=True)", ([], [1, "x", {"y": True}])),
    }

    def add(self, family: Family) -> None:
        family.thing.attributes |= {name: declared for name, (declared, _) in self.kinds.items()}
        family.thing.attributes["words"] = "models.UnicodeSetAttribute()"
        family.thing.attributes["numbers"] = "models.NumberSetAttribute()"
        family.thing.attributes["blobs"] = "models.BinarySetAttribute()"
        family.thing.attributes["blob"] = "models.BinaryAttribute(null=True)"
        key = "{size}#{number}#{day:last}#{thing_id}"
        family.thing.keys["by_number"] = f"models.IndexKey('{family.index()}', 'NUMBERS#{{flag}}', '{key}')"
        family.shown.extend(self.kinds)

    def values(self, chance: random.Random, world: World) -> Row:
        return {name: chance.choice(values) for name, (_, values) in self.kinds.items()}

    def expected(self, world: World) -> Iterator[Expected]:
        for flag in (True, False):
            found = sorted(pk for pk, row in world.live.items() if row["flag"] is flag and row["size"] == "l")
            yield Expected(f"pks(Thing.objects.filter(flag={flag}, size='l').order_by('number'))", found)


class documents(Capability):
    """Lists, maps and sets with changes in place."""

    title = "changes in place"
    earlier = MappingProxyType({"steps": [], "facts": {}, "words": None})
    covers = ("Append", "Prepend", "AddToSet", "RemoveFromSet", "REMOVE", "MapAttribute", "ListAttribute")

    def add(self, family: Family) -> None:
        family.thing.attributes["steps"] = "models.ListAttribute(default=list, blank=True)"
        family.thing.attributes["words"] = "models.UnicodeSetAttribute()"
        family.thing.attributes["facts"] = "models.MapAttribute(default=dict, blank=True)"
        family.shown.extend(("steps", "words", "facts"))

    def values(self, chance: random.Random, world: World) -> Row:
        return {"steps": chance.choice([[], [1], ["a", 2]]), "facts": chance.choice([{}, {"x": 1}])}

    def stored(self, world: World, kept: Kept) -> None:
        kept.values.setdefault("words", None)

    def acts(self, chance: random.Random, world: World) -> Iterator[Act]:
        pk = some(chance, world.live)
        if pk is None:
            return
        row = world.things[pk].values
        words = row["words"] or set()
        changes = [
            ("steps=models.Append([5])", {"steps": [*row["steps"], 5]}),
            ("steps=models.Prepend([0])", {"steps": [0, *row["steps"]]}),
            ("words=models.AddToSet({'w', 'v'})", {"words": {*words, "w", "v"}}),
            ("facts__y=2", {"facts": {**row["facts"], "y": 2}}),
            ("facts__x=models.REMOVE", {"facts": {name: each for name, each in row["facts"].items() if name != "x"}}),
        ]
        if words:
            changes.append(("words=models.RemoveFromSet({'w'})", {"words": words - {"w"} or None}))
        text, changed = chance.choice(changes)
        after = {**row, **changed}
        update = f"assert Thing.objects.consistent().filter(pk={pk!r}).update({text}) == 1"
        yield Act(update, lambda world: world.write(pk, after))


class files(Capability):
    """The name of a file, whose contents are in a storage."""

    title = "files"
    covers = ("FileAttribute", "ImageAttribute")

    def add(self, family: Family) -> None:
        family.thing.attributes["paper"] = "models.FileAttribute(storage=STORAGE, null=True)"

    def acts(self, chance: random.Random, world: World) -> Iterator[Act]:
        pk, text = some(chance, world.live), chance.choice(("old", "new"))
        if pk is not None:

            def upload(world: World) -> None:
                world.write(pk, world.things[pk].values)
                world.more.setdefault("papers", {})[pk] = text

            yield Act(f"upload(Thing, {pk!r}, {text!r})", upload)


class authored(Capability):
    """`AuthoredModel`: who made an object."""

    title = "author"
    earlier = MappingProxyType({"created_by_id": None})
    covers = ("AuthoredModel", "AuthorAttribute")

    def add(self, family: Family) -> None:
        family.thing.bases.append("models.AuthoredModel")
        family.shown.append("created_by_id")

    def stored(self, world: World, kept: Kept) -> None:
        kept.values.setdefault("created_by_id", None)

    def acts(self, chance: random.Random, world: World) -> Iterator[Act]:
        values = world.new_values(chance)
        pk = world.family.pk_of(values)
        if pk not in world.things:
            text = f"with acting_as('u1'): save.create(Thing, {arguments(values)})"
            after = {**values, "created_by_id": "u1"}
            yield Act(text, lambda world: world.write(pk, after), world.refusals(pk, after, "save"))


class identified(Capability):
    """An `IdAttribute`, which the app generates by default."""

    title = "identifiers"
    covers = ("IdAttribute",)

    def add(self, family: Family) -> None:
        family.thing.attributes["thing_id"] = "models.IdAttribute()"
