"""How owners go: permanently, or to a trash of their own and back, with the things that follow them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import ProtectedError

from dynamo_single.exceptions import StaleObject
from tests.contract.pairs.oracle import NO_ERRORS, Act, ByIndex, Errors, Kept, World

#: Reports of ``dynamo_verify`` about things that a deletion has missed.
LEFT = frozenset({"child without parent", "reference to a missing object", "edge without end"})
PROTECTED: Errors = frozenset({ProtectedError})


def departures(world: World, owner: str) -> Iterator[Act]:
    """Return the operations on an owner."""
    if not world.family.parents_soft:
        yield deletion(world, owner, f"Owner.objects.consistent().get(pk={owner!r}).delete()")
        return
    yield deletion(world, owner, f"hard_delete(Owner, {owner!r})")
    yield trashing(world, owner)
    if world.binned(owner):
        yield return_of(world, owner)


def acting(world: World) -> list[Any]:
    """Return the references with ``on_delete`` that an index finds, possibly late."""
    found = [each for each in world.family.references.values() if each.on_delete not in ("", "DO_NOTHING")]
    by_table = ["owner"] if world.family.nested else []
    return [each for each in found if not each.checked and each.name not in by_table]


def deletion(world: World, owner: str, text: str) -> Act:
    """An owner goes permanently."""
    references = world.family.references.values()
    referring = {each.name: world.referring(each.attname, owner) for each in references}
    protected = any(referring[each.name] for each in references if each.on_delete == "PROTECT")

    def go(world: World) -> None:
        del world.owners[owner]
        world.in_trash.discard(("owner_id", owner))
        for each in references:
            for pk, kept in referring[each.name].items():
                if each.on_delete == "CASCADE":
                    world.things.pop(pk, None)
                elif each.on_delete in ("SET_NULL", "SET_DEFAULT"):
                    kept.values[each.attname] = None if each.on_delete == "SET_NULL" else "other"

    errors = PROTECTED if protected else NO_ERRORS
    late = acting(world)
    if not late:
        return Act(text, go, errors)
    missed = f"left(Thing, {[each.attname for each in late]}, {owner!r})"
    may = PROTECTED if any(each.on_delete == "PROTECT" for each in late) else NO_ERRORS
    return Act(text, go, errors, ByIndex(missed, LEFT, "purge(Thing, missed)", may))


def trashing(world: World, owner: str) -> Act:
    """Move an owner to the trash with its things; repeat it for later ones."""
    references = world.family.references.values()
    referring = {each.name: live(world.referring(each.attname, owner)) for each in references}
    followed = [each for each in references if each.on_delete == "CASCADE" and world.family.soft]
    protecting = [each for each in references if each.on_delete == "PROTECT"]
    is_new = not world.binned(owner)
    following = {pk for each in followed for pk in referring[each.name]}
    protected = is_new and any(referring[each.name] for each in protecting)

    def go(world: World) -> None:
        world.in_trash.add(("owner_id", owner))
        for pk in following & world.things.keys():
            world.bin_with(owner, pk)

    text = f"send_to_trash(Owner, {owner!r})"
    errors = PROTECTED if protected else NO_ERRORS
    late = [each for each in acting(world) if each in followed or (each in protecting and is_new)]
    if not late:
        return Act(text, go, errors)
    missed = f"live_below(Thing, {[each.attname for each in late]}, {owner!r})"
    may = PROTECTED if any(each in protecting for each in late) else NO_ERRORS
    # A thing below an owner in the trash is no fault, and goes there with the next deletion.
    return Act(text, go, errors, ByIndex(missed, repair=text, errors=may))


def return_of(world: World, owner: str) -> Act:
    """An owner comes back with the things that went with it, with all of them or none."""
    coming = [pk for pk, kept in world.things.items() if kept.mark == owner]
    errors = errors_of_return(world, coming)

    def come(world: World) -> None:
        world.in_trash.discard(("owner_id", owner))
        for pk in coming:
            if pk in world.things:
                world.bring_back(pk)

    text = f"restore(Owner, {owner!r})"
    if not acting(world) or not world.family.soft:
        return Act(text, come, errors)
    counted = "expires" not in world.family.thing.attributes
    if counted:
        return Act(text, come, errors, ByIndex(errors=frozenset({StaleObject})))
    missed = f"marked(Thing, {owner!r})"
    repair = "[restore(Thing, pk) for pk in missed]"
    return Act(text, come, errors, ByIndex(missed, frozenset({"left in the trash"}), repair))


def errors_of_return(world: World, coming: list[str]) -> Errors:
    """The errors for which the first of some things that come back together cannot."""
    back: list[Kept] = []
    found: Errors = NO_ERRORS
    for pk in coming:
        kept = world.things[pk]
        found = found or world.refusals(pk, kept.values, "return")
        kept.live = True
        back.append(kept)
    for kept in back:
        kept.live = False
    return found


def live(things: dict[str, Kept]) -> dict[str, Kept]:
    """Return the objects outside the trash."""
    return {pk: kept for pk, kept in things.items() if kept.live}
