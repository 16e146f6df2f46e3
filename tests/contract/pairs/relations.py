"""The capabilities of things that refer to owners: one class a row."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

from dynamo_single.exceptions import MissingReference, ParentInTrash
from tests.contract.pairs.capabilities import NOT_BY_PYNAMODB, soft_delete, some
from tests.contract.pairs.departures import departures
from tests.contract.pairs.drafts import Family
from tests.contract.pairs.oracle import NO_ERRORS, Act, ByIndex, Capability, Errors, Expected, Row, World

#: How a thing leaves the trash: by itself, or with its owner.
BACK = ("restore", "return")
#: The maximum number of owners, in addition to permanent ones.
MOST_OWNERS = 2
NAMES = ("Ann", "Bob", "Cyd")


class Relation(Capability):
    """Shared operations: owners are created, renamed and deleted."""

    on_delete = ""
    checked = False
    #: Whether an owner must be stored.
    strict = False
    earlier = MappingProxyType({"owner_id": None})

    def prior(self, family: Family) -> None:
        family.reference()

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
            found[reference.attname] = chance.choice([*sorted(world.owners) * 2, *least, *strange] or ["nobody"])
        return found

    def refusals(self, world: World, pk: str, after: Row | None, way: str) -> Errors:
        if not self.strict or after is None:
            return NO_ERRORS
        kept = world.things.get(pk)
        before = kept.values if kept is not None and (kept.live or way in BACK) else {}
        for reference in self.own(world.family):
            owner = after[reference.attname]
            gone = owner not in world.owners or (self.checked and world.binned(owner))
            if owner is not None and gone and before.get(reference.attname) != owner:
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

        going = {*world.owners}.difference(world.family.owners)
        if len(going) < MOST_OWNERS:
            yield Act(f"Owner.objects.create(owner_id={pk!r}, name={name!r})", come)
        attnames = [each.attname for each in world.family.references.values()]
        having = {kept.values.get(name) for kept in world.things.values() for name in attnames}
        # An owner without things is rarely useful.
        if owner := some(chance, going & having or going):
            yield from departures(world, owner)


#: The lines of other rows, and their replacements for things with a copy.
FROM_COPIES = (
    ("derived_from = ('note',)", "derived_from = ('note', 'owner_name')"),
    ("said=self.note", "said=f'{self.note} {self.owner_name}'"),
    ("Q(state='open')", "Q(state='open', owner_name='Ann')"),
)


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
        # Dependents of a thing also depend on the copy.
        for before, after in FROM_COPIES:
            family.thing.code = [text.replace(before, after) for text in family.thing.code]
            family.thing.keys = {name: key.replace(before, after) for name, key in family.thing.keys.items()}

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

            text = f"every(Owner).consistent().filter(pk={owner!r}).update(name={name!r})"
            late = ByIndex(f"outdated(Thing, {owner!r})", frozenset({"copy"}), "rebuild()")
            yield Act(text, rename, by_index=None if world.family.nested else late)


class children(Relation):
    """`Children`: the things of one owner."""

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
    """`CounterAttribute`: the number of an owner's things, and of those with a note."""

    title = "counters"
    covers = ("CounterAttribute",)
    refuses = NOT_BY_PYNAMODB
    strict = True

    def add(self, family: Family) -> None:
        super().add(family)
        family.owner.attributes |= {
            "things": "models.Children('Thing', field='owner')",
            "thing_count": "models.CounterAttribute('things')",
            "twos": f"models.CounterAttribute('things', condition=Q({self.condition(family)}))",
        }

    def condition(self, family: Family) -> str:
        """Return the condition of the second number: a copy, if there is one."""
        return "owner_name='Ann'" if "owner_name" in family.thing.attributes else "note='two'"

    def refusals(self, world: World, pk: str, after: Row | None, way: str) -> Errors:
        """A deleted owner can lose things outside a block, but cannot get any."""
        changes: Counter[tuple[str, str]] = Counter()
        for row, step in ((world.live.get(pk), -1), (after, 1)):
            if row is not None and row["owner_id"] is not None:
                changes[row["owner_id"], "things"] += step
                changes[row["owner_id"], "twos"] += step * self.meets(world, row)
        of_gone = [number for (owner, _), number in changes.items() if owner not in world.owners]
        refused = any(number > 0 or (number and way == "atomic") for number in of_gone)
        return frozenset({MissingReference}) if refused else NO_ERRORS

    def meets(self, world: World, row: Row) -> bool:
        """Return whether the second number counts a thing."""
        if "owner_name" not in world.family.thing.attributes:
            return bool(row["note"] == "two")
        names = {**world.more.get("names", {}), **{pk: each["name"] for pk, each in world.owners.items()}}
        return names.get(row["owner_id"]) == "Ann"

    def own(self, family: Family) -> list[Any]:
        return [family.references["owner"]]

    def expected(self, world: World) -> Iterator[Expected]:
        mine = {
            owner: [self.meets(world, row) for row in world.live.values() if row["owner_id"] == owner]
            for owner in world.owners
        }
        counted = {owner: (len(found), sum(found)) for owner, found in mine.items()}
        text = "{each.pk: (each.thing_count, each.twos) for each in every(Owner).consistent().in_bulk(OWNERS).values()}"
        yield Expected(text, counted, consistent=True)


class cascade(Relation):
    """Things go with their owner."""

    title = "`on_delete=CASCADE`"
    covers = ("CASCADE",)
    on_delete = "CASCADE"


class protect(Relation):
    """Things prevent the deletion of their owner."""

    title = "`on_delete=PROTECT`"
    covers = ("PROTECT", "ProtectedError")
    on_delete = "PROTECT"


class set_null(Relation):
    """Things have no reference afterwards."""

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
    """Things refer to a missing object."""

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
    """Things are in their owner's partition."""

    title = "item collection"
    paused = "another primary key (`MoveKeys`)"
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


class parent_trash(Relation):
    """Referenced objects have a trash; things are handled by their own ``on_delete``."""

    title = "soft delete of the parent"
    covers = ("SoftDeleteModel",)

    def add(self, family: Family) -> None:
        super().add(family)
        family.parents_soft = True


class family_trash(Relation):
    """Things go to the trash with their owner, and come back with it."""

    title = "soft delete of the parent and its children"
    covers = ("SoftDeleteModel", "CASCADE")
    on_delete = "CASCADE"

    def add(self, family: Family) -> None:
        super().add(family)
        family.parents_soft = True
        family.thing.bases.append("models.SoftDeleteModel")

    def refusals(self, world: World, pk: str, after: Row | None, way: str) -> Errors:
        if way != "restore" or after is None:
            return NO_ERRORS
        following = [each for each in world.family.references.values() if each.on_delete == "CASCADE"]
        below = any(world.binned(after[each.attname]) for each in following)
        return frozenset({ParentInTrash}) if below else NO_ERRORS

    def acts(self, chance: random.Random, world: World) -> Iterator[Act]:
        yield from super().acts(chance, world)
        yield from soft_delete().acts(chance, world)

    def expected(self, world: World) -> Iterator[Expected]:
        yield from soft_delete().expected(world)
        went = {pk: kept.mark for pk, kept in world.things.items() if kept.mark}
        yield Expected("{pk: owner for owner in OWNERS for pk in marked(Thing, owner)}", went)
