"""A model's own capabilities, one class per row. ``relations`` contains those between models."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from datetime import datetime
from types import MappingProxyType
from typing import Any

from dynamo_single.exceptions import NotSupported, UniqueViolation
from tests.contract.pairs.drafts import Draft, Family
from tests.contract.pairs.lag import BEGINNING
from tests.contract.pairs.oracle import (
    NO_ERRORS,
    Act,
    Capability,
    Errors,
    Expected,
    Kept,
    Row,
    World,
)
from tests.contract.pairs.readers import CODES

#: PynamoDB's writers overwrite items, and do not write dependent items.
NOT_BY_PYNAMODB = MappingProxyType({"pynamodb": NotSupported})


def listed(world: World, **values: Any) -> list[str]:
    """The live things with these values."""
    return sorted(pk for pk, row in world.live.items() if all(row[name] == each for name, each in values.items()))


def some(chance: random.Random, things: Any) -> Any:
    """Return one of the values, or ``None``."""
    return chance.choice(sorted(things)) if things else None


class soft_delete(Capability):
    """`SoftDeleteModel`: the trash, and the way back."""

    title = "soft delete"
    covers = ("SoftDeleteModel", "SoftDeleteManager", "Meta.trash_index")

    def add(self, family: Family) -> None:
        family.thing.bases.append("models.SoftDeleteModel")

    def acts(self, chance: random.Random, world: World) -> Iterator[Act]:
        pk = some(chance, world.things)
        if pk is None:
            return
        kept = world.things[pk]
        if not kept.live:
            refused = world.refusals(pk, kept.values, "restore")
            yield Act(f"restore(Thing, {pk!r})", lambda world: world.write(pk, kept.values), refused)
        yield Act(f"hard_delete(Thing, {pk!r})", lambda world: world.things.pop(pk))

    def expected(self, world: World) -> Iterator[Expected]:
        trash = sorted(pk for pk, kept in world.things.items() if not kept.live)
        yield Expected("pks(Thing.deleted_objects.all())", trash)
        yield Expected("pks(Thing.all_objects.all())", sorted(world.things))


class purged(soft_delete):
    """The trash keeps objects for some time only."""

    title = "soft delete with `purge_after`"
    covers = ("Meta.purge_after",)
    seconds = 12

    def add(self, family: Family) -> None:
        super().add(family)
        family.thing.options["purge_after"] = f"datetime.timedelta(seconds={self.seconds})"

    def trashed(self, world: World, kept: Kept) -> None:
        kept.expires = math.floor(world.now + self.seconds) + 1  # the next whole second


class record(soft_delete):
    """`Record`: a map with metadata around it."""

    title = "record"
    unadded = "a record has another identity: create new objects"
    covers = ("Record", "Meta.id_prefix")
    refuses = NOT_BY_PYNAMODB

    def add(self, family: Family) -> None:
        family.thing.bases.append("models.Record")
        family.thing.options["id_prefix"] = "'thing'"
        family.id_name = "id"
        family.identity = tuple("id" if name == "thing_id" else name for name in family.identity)
        if family.identity == ("id",):
            family.thing.primary = ("", "")


class expiry(Capability):
    """`TTLAttribute`: what has expired is not there, whether DynamoDB has deleted it or not."""

    title = "time to live"
    earlier = MappingProxyType({"expires": None})
    covers = ("TTLAttribute",)

    def add(self, family: Family) -> None:
        family.thing.attributes["expires"] = "models.TTLAttribute(null=True)"

    def values(self, chance: random.Random, world: World) -> Row:
        return {"expires": chance.choice([None, moment(int(world.now) + chance.choice((6, 15, 900)))])}

    def stored(self, world: World, kept: Kept) -> None:
        kept.expires = None if kept.values["expires"] is None else kept.values["expires"].timestamp()

    def acts(self, chance: random.Random, world: World) -> Iterator[Act]:
        yield Act("time.expire()")


def moment(seconds: int) -> Any:
    """A time to live, in whole seconds."""
    return datetime.fromtimestamp(seconds, BEGINNING.tzinfo)


class unique(Capability):
    """`unique=True`, held by claims."""

    title = "unique"
    earlier = MappingProxyType({"code": None})
    covers = ("Attribute.unique", "Meta.unique_together", "Meta.constraints")
    refuses = NOT_BY_PYNAMODB

    def add(self, family: Family) -> None:
        family.thing.attributes["code"] = "models.UnicodeAttribute(null=True, unique=True)"
        family.shown.append("code")

    def values(self, chance: random.Random, world: World) -> Row:
        return {"code": chance.choice([None, *CODES])}

    def refusals(self, world: World, pk: str, after: Row | None, way: str) -> Errors:
        if after is None:
            return NO_ERRORS
        others = [row["code"] for other, row in world.live.items() if other != pk]
        return frozenset({UniqueViolation}) if after["code"] is not None and after["code"] in others else NO_ERRORS

    def expected(self, world: World) -> Iterator[Expected]:
        for code in CODES:
            yield Expected(f"pks(Thing.objects.consistent().filter(code={code!r}))", listed(world, code=code), True)


class folded(Capability):
    """A `CanonicalAttribute` in a key."""

    title = "folded"
    earlier = MappingProxyType({"label": "Alpha"})
    covers = ("CanonicalAttribute", "Attribute.canonical")

    def prior(self, family: Family) -> None:
        family.thing.attributes["label"] = "models.UnicodeAttribute()"

    def add(self, family: Family) -> None:
        family.thing.attributes["label"] = "models.UnicodeAttribute()"
        family.thing.attributes["label_folded"] = "models.CanonicalAttribute(source='label', fold='letters')"
        family.thing.keys["by_label"] = (
            f"models.IndexKey('{family.index()}', 'LABELS', '{{label_folded}}#{{thing_id}}')"
        )
        family.shown.extend(("label", "label_folded"))

    def values(self, chance: random.Random, world: World) -> Row:
        return {"label": chance.choice(("Alpha", "ALPHA", "Álpha", "Beta"))}

    def shown(self, world: World, pk: str) -> Row:
        return {"label_folded": fold(world.things[pk].values["label"])}

    def expected(self, world: World) -> Iterator[Expected]:
        found = sorted(pk for pk, row in world.live.items() if fold(row["label"]) == "alpha")
        yield Expected("pks(Thing.objects.filter(label__iexact='aLPHA'))", found)


def fold(text: str) -> str:
    """Return the values of ``letters`` for the labels."""
    return text.lower().replace("á", "a")


class shards(Capability):
    """Sharded keys of indexes."""

    title = "shards of an index"
    # The number that a table with items begins with is one.
    afterwards = "grow(Thing, 3, time)"
    covers = ("Shards", "IndexKey.sharded")
    refuses = NOT_BY_PYNAMODB

    def prior(self, family: Family) -> None:
        family.thing.attributes["made"] = "models.TimestampAttribute(auto_now_add=True, immutable=True)"

    def add(self, family: Family) -> None:
        family.thing.attributes["made"] = "models.TimestampAttribute(auto_now_add=True, immutable=True)"
        family.thing.keys["divided"] = "models.Shards('thing_id', at='made')"
        family.thing.keys["by_made"] = (
            f"models.IndexKey('{family.index()}', 'MADE', '{{made}}#{{thing_id}}', sharded=True)"
        )
        family.begin.append("divide(Thing, 3)")

    def expected(self, world: World) -> Iterator[Expected]:
        yield Expected("pks(Thing.objects.order_by('made'))", sorted(world.live))


class sharded_primary(shards):
    """A sharded primary key."""

    title = "shards of the table"
    paused = "another primary key (`MoveKeys`)"
    covers = ("Key.sharded",)

    def add(self, family: Family) -> None:
        super().add(family)
        family.thing.primary = ("THINGS", "THING#{" + "}#{".join(family.identity) + "}")
        family.thing.divided = ", sharded=True"


class composite(Capability):
    """An identity of two values."""

    title = "composite identity"
    paused = "another primary key (`MoveKeys`)"
    earlier = MappingProxyType({"group": "g"})

    def prior(self, family: Family) -> None:
        family.thing.attributes["group"] = "models.UnicodeAttribute(immutable=True)"

    def add(self, family: Family) -> None:
        family.thing.attributes = {"group": "models.UnicodeAttribute()", **family.thing.attributes}
        family.identity = ("group", family.id_name)
        family.thing.primary = ("GROUP#{group}", "THING#{thing_id}")
        for name, key in family.thing.keys.items():
            family.thing.keys[name] = key.replace("{thing_id}'", "{thing_id}#{group}'")

    def values(self, chance: random.Random, world: World) -> Row:
        return {"group": chance.choice("gh")}


class conditional(Capability):
    """An index that holds only what meets a condition."""

    title = "conditional index"
    earlier = MappingProxyType({"state": "open"})
    covers = ("IndexKey.condition",)

    def add(self, family: Family) -> None:
        family.thing.attributes["state"] = "models.UnicodeAttribute(default='open')"
        family.thing.keys["open"] = (
            f"models.IndexKey('{family.index()}', 'OPEN', '{{thing_id}}', condition=Q(state='open'))"
        )
        family.shown.append("state")

    def values(self, chance: random.Random, world: World) -> Row:
        return {"state": chance.choice(("open", "done"))}

    def expected(self, world: World) -> Iterator[Expected]:
        asked = {"state": "open"}
        if "owner_name" in world.family.thing.attributes:
            asked["owner_name"] = "Ann"
        rows = world.listed()
        found = sorted(pk for pk, row in rows.items() if all(row[name] == value for name, value in asked.items()))
        yield Expected(f"pks(Thing.objects.using_index('open').filter(**{asked!r}))", found)


class extracted(Capability):
    """A value of a map in an attribute and a key of its own."""

    title = "extracted"
    earlier = MappingProxyType({"data": {}})
    covers = ("ExtractedAttribute", "MapAttribute")

    def add(self, family: Family) -> None:
        family.thing.attributes["data"] = "models.MapAttribute(default=dict, blank=True)"
        family.thing.attributes["kind"] = "models.ExtractedAttribute('data__kind')"
        family.thing.keys["by_kind"] = f"models.IndexKey('{family.index()}', 'KIND#{{kind}}', '{{thing_id}}')"
        family.shown.extend(("data", "kind"))

    def values(self, chance: random.Random, world: World) -> Row:
        return {"data": chance.choice([{}, {"kind": "k1"}, {"kind": "k2", "more": 1}])}

    def shown(self, world: World, pk: str) -> Row:
        return {"kind": world.things[pk].values["data"].get("kind")}

    def acts(self, chance: random.Random, world: World) -> Iterator[Act]:
        pk, kind = some(chance, world.live), chance.choice(("k1", "k3"))
        if pk is not None:
            after = {**world.things[pk].values, "data": {**world.things[pk].values["data"], "kind": kind}}
            text = f"Thing.objects.consistent().filter(pk={pk!r}).update(data__kind={kind!r})"
            yield Act(text, lambda world: world.write(pk, after))

    def expected(self, world: World) -> Iterator[Expected]:
        for kind in ("k1", "k3"):
            found = sorted(pk for pk, row in world.live.items() if row["data"].get("kind") == kind)
            yield Expected(f"pks(Thing.objects.filter(kind={kind!r}))", found)


class derived(Capability):
    """Items of another model that are derived from an object."""

    title = "derived"
    afterwards = "rebuild()"
    covers = ("derived_from", "derived_objects", "derived_by")
    refuses = NOT_BY_PYNAMODB

    def add(self, family: Family) -> None:
        mark = Draft("Mark", ("MARK#{mark_id}", "#METADATA"))
        mark.attributes = {
            "mark_id": "models.UnicodeAttribute()",
            "thing": "models.ReferenceAttribute(Thing, on_delete=models.DO_NOTHING)",
            "said": "models.UnicodeAttribute()",
        }
        mark.code.append("derived_by = 'thing'")
        family.after.append(mark)
        family.thing.code.append(
            "derived_from = ('note',)\n"
            "def derived_objects(self):\n"
            "    return [] if self.note == 'two' else [Mark(mark_id=self.pk, thing_id=self.pk, said=self.note)]"
        )

    def expected(self, world: World) -> Iterator[Expected]:
        rows = {pk: row for pk, row in world.listed().items() if row["note"] != "two"}
        is_copied = "owner_name" in world.family.thing.attributes
        said = {pk: f"{row['note']} {row['owner_name']}" if is_copied else row["note"] for pk, row in rows.items()}
        yield Expected(
            "{mark.pk: mark.said for mark in Mark.objects.consistent().in_bulk(PKS).values()}", said, consistent=True
        )


class derived_expiring(derived):
    """Derived items that expire with their object."""

    title = "derived, with a time to live"

    def add(self, family: Family) -> None:
        super().add(family)
        family.after[-1].attributes["expires"] = "models.TTLAttribute(null=True)"
