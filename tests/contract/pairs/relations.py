"""The capabilities of things that refer to owners: one class a row."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

from django.db.models import ProtectedError

from dynamo_single.exceptions import MissingReference, SourceChanged, UniqueViolation
from tests.contract.pairs.capabilities import NOT_BY_PYNAMODB, some
from tests.contract.pairs.drafts import Draft, Family
from tests.contract.pairs.oracle import NO_ERRORS, Act, ByIndex, Capability, Errors, Expected, Row, World

#: What ``dynamo_verify`` calls what a deletion has left.
LEFT = frozenset({"child of nobody", "refers to nobody", "edge of nobody"})
NAMES = ("Ann", "Bob", "Cyd")


class Relation(Capability):
    """What all of them have: owners who come, are renamed and go."""

    on_delete = ""
    checked = False
    #: Whether an owner has to be stored.
    strict = False

    def add(self, family: Family) -> None:
        family.reference(on_delete=self.on_delete, checked=self.checked)

    def values(self, chance: random.Random, world: World) -> Row:
        # Each of two relations chooses for both.
        found: Row = {}
        for name, reference in world.family.references.items():
            least = [] if world.family.nested and name == "owner" else [None]
            strict = any(
                isinstance(each, Relation) and each.strict and reference in each.own(world.family)
                for each in world.capabilities
            )
            strange = ["nobody"] if strict and chance.random() < 0.2 else []
            found[reference.attname] = chance.choice([*sorted(world.owners), *least, *strange] or ["nobody"])
        return found

    def refusals(self, world: World, pk: str, after: Row | None, way: str) -> Errors:
        if not self.strict or after is None:
            return NO_ERRORS
        before = world.things[pk].values if pk in world.things and world.things[pk].live else {}
        for reference in self.own(world.family):
            owner = after[reference.attname]
            if owner is not None and owner not in world.owners and before.get(reference.attname) != owner:
                return frozenset({MissingReference})
        return NO_ERRORS

    def own(self, family: Family) -> list[Any]:
        """The references that it is about."""
        return [each for each in family.references.values() if not self.on_delete or each.on_delete == self.on_delete]

    def acts(self, chance: random.Random, world: World) -> Iterator[Act]:
        number = world.more.setdefault("owners", 0)
        pk, name = f"o{number}", chance.choice(NAMES)

        def come(world: World) -> None:
            world.owners[pk] = {"name": name}
            world.more["owners"] += 1

        yield Act(f"Owner.objects.create(owner_id={pk!r}, name={name!r})", come)
        if owner := some(chance, {*world.owners}.difference(world.family.owners)):
            yield self.deletion(world, owner)

    def deletion(self, world: World, owner: str) -> Act:
        """An owner goes."""
        references = world.family.references.values()
        referring = {each.name: world.referring(each.attname, owner) for each in references}
        protected = any(referring[each.name] for each in references if each.on_delete == "PROTECT")

        def go(world: World) -> None:
            del world.owners[owner]
            for each in references:
                for pk, kept in referring[each.name].items():
                    if each.on_delete == "CASCADE":
                        world.things.pop(pk, None)
                    elif each.on_delete in ("SET_NULL", "SET_DEFAULT"):
                        kept.values[each.attname] = None if each.on_delete == "SET_NULL" else "other"

        text = f"Owner.objects.consistent().get(pk={owner!r}).delete()"
        errors = frozenset({ProtectedError}) if protected else NO_ERRORS
        acting = [each for each in references if each.on_delete not in ("", "DO_NOTHING") and not each.checked]
        if world.family.nested:
            acting = [each for each in acting if each.name != "owner"]  # read from the table
        if not acting:
            return Act(text, go, errors)
        names = [each.attname for each in acting]
        may = frozenset({ProtectedError}) if any(each.on_delete == "PROTECT" for each in acting) else NO_ERRORS
        late = ByIndex(f"left(Thing, {names}, {owner!r})", LEFT, "purge(Thing, missed)", may)
        return Act(text, go, errors, late)


class copies(Relation):
    """`CopiedAttribute`: an owner's name with each of its things."""

    title = "copies"
    covers = ("CopiedAttribute",)
    refuses = NOT_BY_PYNAMODB
    strict = True

    def add(self, family: Family) -> None:
        super().add(family)
        family.thing.attributes["owner_name"] = "models.CopiedAttribute('owner', 'name')"
        family.shown.append("owner_name")

    def shown(self, world: World, pk: str) -> Row:
        owner = world.things[pk].values["owner_id"]
        gone = world.more.setdefault("names", {})
        if owner in world.owners:
            gone[owner] = world.owners[owner]["name"]
        return {"owner_name": None if owner is None else gone.get(owner)}

    def own(self, family: Family) -> list[Any]:
        return [family.references["owner"]]

    def acts(self, chance: random.Random, world: World) -> Iterator[Act]:
        yield from super().acts(chance, world)
        if owner := some(chance, world.owners):
            name = chance.choice(NAMES)

            def rename(world: World) -> None:
                world.owners[owner]["name"] = name

            text = f"Owner.objects.consistent().filter(pk={owner!r}).update(name={name!r})"
            # A second rename is refused while the index shows the first one's copies as they were for long.
            errors = frozenset({SourceChanged})
            late = ByIndex(f"outdated(Thing, {owner!r})", frozenset({"copy"}), "rebuild()", errors)
            yield Act(text, rename, by_index=None if world.family.nested else late)


class children(Relation):
    """`Children`, asked for the things of one owner."""

    title = "children"
    covers = ("Children",)

    def add(self, family: Family) -> None:
        super().add(family)
        family.owner.attributes["things"] = "models.Children('Thing', field='owner')"

    def own(self, family: Family) -> list[Any]:
        return [family.references["owner"]]

    def expected(self, world: World) -> Iterator[Expected]:
        for owner in sorted(world.owners):
            mine = sorted(pk for pk, row in world.live.items() if row["owner_id"] == owner)
            yield Expected(f"pks(Owner(owner_id={owner!r}).things.all())", mine)
            yield Expected(f"Owner(owner_id={owner!r}).things.count()", len(mine))


class counters(Relation):
    """`CounterAttribute`: how many things an owner has, and how many of them are noted so."""

    title = "counters"
    covers = ("CounterAttribute",)
    refuses = NOT_BY_PYNAMODB
    strict = True

    def add(self, family: Family) -> None:
        super().add(family)
        family.owner.attributes |= {
            "things": "models.Children('Thing', field='owner')",
            "thing_count": "models.CounterAttribute('things')",
            "twos": "models.CounterAttribute('things', condition=Q(note='two'))",
        }

    def refusals(self, world: World, pk: str, after: Row | None, way: str) -> Errors:
        """An owner that is gone can lose things, but for within a block, and get none."""
        changes: Counter[tuple[str, str]] = Counter()
        for row, step in ((world.live.get(pk), -1), (after, 1)):
            if row is not None and row["owner_id"] is not None:
                changes[row["owner_id"], "things"] += step
                changes[row["owner_id"], "twos"] += step * (row["note"] == "two")
        of_gone = [number for (owner, _), number in changes.items() if owner not in world.owners]
        refused = any(number > 0 or (number and way == "atomic") for number in of_gone)
        return frozenset({MissingReference}) if refused else NO_ERRORS

    def own(self, family: Family) -> list[Any]:
        return [family.references["owner"]]

    def expected(self, world: World) -> Iterator[Expected]:
        mine = {
            owner: [row["note"] for row in world.live.values() if row["owner_id"] == owner] for owner in world.owners
        }
        counted = {owner: (len(notes), notes.count("two")) for owner, notes in mine.items()}
        text = (
            "{each.pk: (each.thing_count, each.twos) for each in Owner.objects.consistent().in_bulk(OWNERS).values()}"
        )
        yield Expected(text, counted, consistent=True)


class cascade(Relation):
    """Things go with their owner."""

    title = "`on_delete=CASCADE`"
    covers = ("CASCADE",)
    on_delete = "CASCADE"


class protect(Relation):
    """Things keep their owner from being deleted."""

    title = "`on_delete=PROTECT`"
    covers = ("PROTECT", "ProtectedError")
    on_delete = "PROTECT"


class set_null(Relation):
    """Things refer to nobody afterwards."""

    title = "`on_delete=SET_NULL`"
    covers = ("SET_NULL",)
    on_delete = "SET_NULL"


class set_default(Relation):
    """Things refer to another owner afterwards."""

    title = "`on_delete=SET_DEFAULT`"
    covers = ("SET_DEFAULT",)
    on_delete = "SET_DEFAULT"

    def add(self, family: Family) -> None:
        super().add(family)
        family.owners.append("other")


class do_nothing(Relation):
    """Things refer to what is not there any more."""

    title = "`on_delete=DO_NOTHING`"
    covers = ("DO_NOTHING",)
    on_delete = "DO_NOTHING"


class checked(Relation):
    """`checked=True`: an owner is there as long as things refer to it, whatever an index shows."""

    title = "checked"
    covers = ("ReferenceAttribute",)
    refuses = NOT_BY_PYNAMODB
    on_delete = "PROTECT"
    checked = True
    strict = True

    def own(self, family: Family) -> list[Any]:
        return [each for each in family.references.values() if each.checked]


class nested(Relation):
    """Things lie in their owner's partition."""

    title = "item collection"
    covers = ("ReferenceAttribute",)

    def add(self, family: Family) -> None:
        family.nested = True
        family.owners.append("first")
        family.thing.keys.pop("by_owner", None)
        super().add(family)
        family.identity = ("owner_id", family.id_name)
        family.thing.primary = ("OWNER#{owner_id}", "THING#{thing_id}")
        for name, key in family.thing.keys.items():
            family.thing.keys[name] = key.replace("{thing_id}'", "{thing_id}#{owner_id}'")

    def expected(self, world: World) -> Iterator[Expected]:
        for owner in sorted(world.owners):
            found = sorted(pk for pk, row in world.live.items() if row["owner_id"] == owner)
            yield Expected(f"pks(Owner(owner_id={owner!r}).owner_things.consistent().all())", found, consistent=True)


class one_to_one(Capability):
    """`OneToOneAttribute`: a reference that no two things have in common."""

    title = "one to one"
    covers = ("OneToOneAttribute",)
    refuses = NOT_BY_PYNAMODB
    seats = ("s1", "s2")

    def add(self, family: Family) -> None:
        seat = Draft("Chair", ("CHAIR#{seat_id}", "#METADATA"))
        seat.attributes = {"seat_id": "models.UnicodeAttribute()"}
        family.before.append(seat)
        reference = "models.OneToOneAttribute(Chair, null=True, on_delete=models.DO_NOTHING, related_name='thing')"
        family.thing.attributes["seat"] = reference
        family.begin += [f"Chair.objects.create(seat_id={seat_id!r})" for seat_id in self.seats]
        family.shown.append("seat_id")

    def values(self, chance: random.Random, world: World) -> Row:
        return {"seat_id": chance.choice((None, *self.seats))}

    def refusals(self, world: World, pk: str, after: Row | None, way: str) -> Errors:
        taken = {row["seat_id"] for other, row in world.live.items() if other != pk} - {None}
        return frozenset({UniqueViolation}) if after is not None and after["seat_id"] in taken else NO_ERRORS

    def expected(self, world: World) -> Iterator[Expected]:
        by_seat = {row["seat_id"]: pk for pk, row in world.live.items()}
        for seat in self.seats:
            text = f"getattr(getattr(Chair(seat_id={seat!r}), 'thing', None), 'pk', None)"
            yield Expected(text, by_seat.get(seat), consistent=True)


class many_to_many(Capability):
    """`ManyToMany`: edges between things and tags."""

    title = "many to many"
    covers = ("ManyToMany",)
    breaks = MappingProxyType(
        {"pynamodb": "PynamoDB's `delete()` leaves the edges of the object; `dynamo_verify` reports them"}
    )
    tags = ("t1", "t2")

    def add(self, family: Family) -> None:
        tag = Draft("Tag", ("TAG#{tag_id}", "#METADATA"))
        tag.attributes = {"tag_id": "models.UnicodeAttribute()"}
        family.before.append(tag)
        family.thing.attributes["tags"] = "models.ManyToMany(Tag, related_name='things')"
        family.begin += [f"Tag.objects.create(tag_id={tag_id!r})" for tag_id in self.tags]

    def edges(self, world: World) -> set[tuple[str, str]]:
        """The edges of what is there."""
        found: set[tuple[str, str]] = world.more.setdefault("edges", set())
        found -= {edge for edge in found if edge[0] not in world.things}
        return found

    def acts(self, chance: random.Random, world: World) -> Iterator[Act]:
        edges = self.edges(world)
        pk, tag = some(chance, world.live), chance.choice(self.tags)
        if pk is not None:
            add = f"loaded(Thing, {pk!r}).tags.add({tag!r})"
            yield Act(add, lambda world: self.edges(world).add((pk, tag)))
            remove = f"loaded(Thing, {pk!r}).tags.remove({tag!r})"
            yield Act(remove, lambda world: self.edges(world).discard((pk, tag)))
        del edges

    def expected(self, world: World) -> Iterator[Expected]:
        edges = self.edges(world)
        for pk in sorted(world.live):
            found = sorted(tag for thing, tag in edges if thing == pk)
            yield Expected(f"pks(loaded(Thing, {pk!r}).tags.all())", found)
        for tag in self.tags:
            found = sorted(thing for thing, other in edges if other == tag and thing in world.live)
            yield Expected(f"pks(Tag(tag_id={tag!r}).things.all())", found)


class through(many_to_many):
    """`ManyToMany` with a model of the edges, which stay if a thing expires."""

    title = "many to many `through` a model"
    breaks = MappingProxyType({})
    reports = frozenset({"edge of nobody"})

    def add(self, family: Family) -> None:
        super().add(family)
        family.thing.attributes["tags"] = "models.ManyToMany(Tag, through='Edge', related_name='things')"
        edge = Draft("Edge", ("EDGE#{thing_id}", "TAG#{tag_id}"))
        edge.attributes = {
            "thing": "models.ReferenceAttribute(Thing, on_delete=models.DO_NOTHING)",
            "tag": "models.ReferenceAttribute(Tag, on_delete=models.CASCADE)",
        }
        edge.keys["by_tag"] = "models.IndexKey('gs1', 'TAGGED#{tag_id}', '{thing_id}')"
        family.after.append(edge)

    def edges(self, world: World) -> set[tuple[str, str]]:
        found: set[tuple[str, str]] = world.more.setdefault("edges", set())
        return found
