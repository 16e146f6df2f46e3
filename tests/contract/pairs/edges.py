"""Capabilities of things that are related to other objects than owners, one class per row."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from types import MappingProxyType

from dynamo_single.exceptions import NotSupported, UniqueViolation
from tests.contract.pairs.capabilities import NOT_BY_PYNAMODB, some
from tests.contract.pairs.drafts import Draft, Family
from tests.contract.pairs.oracle import NO_ERRORS, Act, Capability, Errors, Expected, Row, World


def to_and_fro(world: World, model: str, name: str, pks: Iterable[str]) -> Iterator[Act]:
    """Delete or restore one of the related objects, if it has a trash."""
    for pk in pks if world.family.parents_soft else ():
        way, change = (
            ("restore", world.in_trash.discard) if world.hides(name, pk) else ("send_to_trash", world.in_trash.add)
        )
        yield Act(f"{way}({model}, {pk!r})", lambda world, change=change, pk=pk: change((name, pk)))


class one_to_one(Capability):
    """`OneToOneAttribute`: a reference that no two things have in common."""

    title = "one to one"
    earlier = MappingProxyType({"seat_id": None})
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

    def acts(self, chance: random.Random, world: World) -> Iterator[Act]:
        return to_and_fro(world, "Chair", "seat_id", self.seats)

    def expected(self, world: World) -> Iterator[Expected]:
        by_seat = {row["seat_id"]: pk for pk, row in world.live.items()}
        for seat in self.seats:
            text = f"getattr(getattr(Chair(seat_id={seat!r}), 'thing', None), 'pk', None)"
            yield Expected(text, by_seat.get(seat), consistent=True)


class followed(Capability):
    """Parts in a thing's partition, which are permanently deleted with it."""

    title = "followed by other objects"
    covers = ("CASCADE", "ReferenceAttribute")
    keeps = MappingProxyType({"pynamodb": NotSupported})
    parts = ("p1", "p2")

    def add(self, family: Family) -> None:
        part = Draft("Part", ("PARTS#{thing_id}", "PART#{part_id}"))
        part.attributes = {
            "thing": "models.ReferenceAttribute(Thing, on_delete=models.CASCADE)",
            "part_id": "models.UnicodeAttribute()",
        }
        family.after.append(part)

    def found(self, world: World) -> set[tuple[str, str]]:
        """Return the parts of existing things."""
        found: set[tuple[str, str]] = world.more.setdefault("parts", set())
        found -= {each for each in found if each[0] not in world.things}
        return found

    def acts(self, chance: random.Random, world: World) -> Iterator[Act]:
        found = self.found(world)
        pk, part_id = some(chance, world.live), chance.choice(self.parts)
        if pk is None:
            return
        if (pk, part_id) in found:
            text = f"Part.objects.consistent().get(thing_id={pk!r}, part_id={part_id!r}).delete()"
            yield Act(text, lambda world: self.found(world).discard((pk, part_id)))
        else:
            text = f"Part.objects.create(thing_id={pk!r}, part_id={part_id!r})"
            yield Act(text, lambda world: self.found(world).add((pk, part_id)))

    def expected(self, world: World) -> Iterator[Expected]:
        text = "sorted((part.thing_id, part.part_id) for part in scanned(Part.objects))"
        yield Expected(text, sorted(self.found(world)), consistent=True)


class many_to_many(Capability):
    """`ManyToMany`: edges between things and tags."""

    title = "many to many"
    covers = ("ManyToMany",)
    keeps = MappingProxyType({"pynamodb": NotSupported})
    tags = ("t1", "t2")

    def add(self, family: Family) -> None:
        tag = Draft("Tag", ("TAG#{tag_id}", "#METADATA"))
        tag.attributes = {"tag_id": "models.UnicodeAttribute()", "word": "models.UnicodeAttribute(default='')"}
        family.before.append(tag)
        family.thing.attributes["tags"] = "models.ManyToMany(Tag, related_name='things')"
        family.begin += [f"Tag.objects.create(tag_id={tag_id!r})" for tag_id in self.tags]

    def edges(self, world: World) -> set[tuple[str, str]]:
        """Return the edges of existing things."""
        found: set[tuple[str, str]] = world.more.setdefault("edges", set())
        found -= {edge for edge in found if edge[0] not in world.things}
        return found

    def acts(self, chance: random.Random, world: World) -> Iterator[Act]:
        self.edges(world)  # deleted objects have none, also if they are recreated
        pk, tag = some(chance, world.live), chance.choice(self.tags)
        if pk is not None:
            every = {(pk, each) for each in self.tags}
            own, other = f"loaded(Thing, {pk!r}).tags", f"loaded(Tag, {tag!r}).things"
            for text in (f"{own}.add({tag!r})", *(() if world.hides("tags", tag) else (f"{other}.add({pk!r})",))):
                yield Act(text, lambda world: self.edges(world).add((pk, tag)))
            yield Act(f"{own}.remove({tag!r})", lambda world: self.edges(world).discard((pk, tag)))
            yield Act(f"{own}.clear()", lambda world: self.edges(world).difference_update(every), settled=True)
            only = f"{own}.set([{tag!r}])"
            if not any(world.hides("tags", each) for each in self.tags):

                def set_to(world: World) -> None:
                    self.edges(world).difference_update(every)
                    self.edges(world).add((pk, tag))

                yield Act(only, set_to, settled=True)
        yield from to_and_fro(world, "Tag", "tags", self.tags)

    def expected(self, world: World) -> Iterator[Expected]:
        edges = self.edges(world)
        for pk in sorted(world.live):
            found = sorted(tag for thing, tag in edges if thing == pk and not world.hides("tags", tag))
            yield Expected(f"pks(loaded(Thing, {pk!r}).tags.all())", found)
        for tag in self.tags:
            found = sorted(thing for thing, other in edges if other == tag and thing in world.live)
            yield Expected(f"pks(Tag(tag_id={tag!r}).things.all())", found)


class through(many_to_many):
    """`ManyToMany` with a model of the edges, which stay if a thing expires."""

    title = "many to many `through` a model"
    keeps = MappingProxyType({})
    reports = frozenset({"edge without end"})
    limit = (
        "With `on_delete=DO_NOTHING` edges are left of an object that expires or is deleted permanently. "
        "`dynamo_verify --repair` deletes them. `CASCADE` deletes them with the object, if it does not expire."
    )

    def add(self, family: Family) -> None:
        super().add(family)
        family.thing.attributes["tags"] = "models.ManyToMany(Tag, through='Edge', related_name='things')"
        edge = Draft("Edge", ("EDGE#{thing_id}", "TAG#{tag_id}"))
        edge.attributes = {
            "thing": "models.ReferenceAttribute(Thing, on_delete=models.DO_NOTHING)",
            "tag": "models.ReferenceAttribute(Tag, on_delete=models.CASCADE)",
            "word": "models.CopiedAttribute('tag', 'word')",
        }
        edge.keys["by_tag"] = "models.IndexKey('gs1', 'TAGGED#{tag_id}', '{thing_id}')"
        family.after.append(edge)

    def edges(self, world: World) -> set[tuple[str, str]]:
        found: set[tuple[str, str]] = world.more.setdefault("edges", set())
        return found

    def acts(self, chance: random.Random, world: World) -> Iterator[Act]:
        yield from super().acts(chance, world)
        tag, word = chance.choice(self.tags), chance.choice(("red", "blue"))

        def rename(world: World) -> None:
            world.more.setdefault("words", {})[tag] = word

        yield Act(f"every(Tag).consistent().filter(pk={tag!r}).update(word={word!r})", rename, settled=True)

    def expected(self, world: World) -> Iterator[Expected]:
        yield from super().expected(world)
        words = world.more.get("words", {})
        found = {(thing, tag, words.get(tag, "")) for thing, tag in self.edges(world)}
        text = "sorted((edge.thing_id, edge.tag_id, edge.word) for edge in scanned(Edge.objects))"
        yield Expected(text, sorted(found), consistent=True)
