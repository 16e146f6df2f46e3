"""Changes of a model with all around them: code before, while it is open and after, and the passes of each phase.

One model of lamps in many forms, all under one item type and in one table, as deployments of one project have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from django.db.models import Q

from dynamo_single import models
from dynamo_single.evolution.backfill import Task
from dynamo_single.evolution.backfill.attributes import (
    convert_attribute,
    copy_value,
    drop_attribute,
    fill_attribute,
)
from dynamo_single.evolution.backfill.claims import delete_unused_claims, move_items, release_claims, take_claims
from dynamo_single.evolution.backfill.project_functions import change_items, upgrade_items
from dynamo_single.evolution.backfill.rewrite import rewrite_index_keys
from dynamo_single.evolution.snapshots import Snapshot
from tests.unit.declaring import declare, forgotten

#: The intended values, whatever code of the time calls them.
Wanted = Mapping[str, Any]
#: The arguments that make an object of it.
Arguments = Callable[[Wanted], dict[str, Any]]


def same(wanted: Wanted) -> dict[str, Any]:
    """Code of the first form."""
    return dict(wanted)


@dataclass(frozen=True)
class Code:
    """A schema of the model, and its code's values for the intended ones."""

    model: Any
    arguments: Arguments = same

    @property
    def snapshot(self) -> Snapshot:
        """The form as migrations know it."""
        return Snapshot.of(self.model)


@dataclass(frozen=True)
class Phase:
    """Sequential passes, and the code that runs during them."""

    tasks: tuple[Task, ...]
    writers: tuple[Code, ...]


@dataclass(frozen=True)
class Case:
    """A change: its phases, the code after it, and the attributes that are then gone."""

    old: Code
    last: Code
    phases: tuple[Phase, ...]
    gone: frozenset[str] = field(default_factory=frozenset)


def lamp(
    keys: Mapping[str, Any] | None = None,
    *,
    primary: tuple[str, str] = ("LAMP#{lamp_id}", "#METADATA"),
    item_type: str = "Lamp",
    without: str = "",
    options: Mapping[str, Any] | None = None,
    **attributes: Any,
) -> Any:
    """A form of the model."""
    own = {
        "lamp_id": models.IdAttribute(),
        "name": models.UnicodeAttribute(),
        "colour": models.UnicodeAttribute(null=True),
        "email": models.EmailAttribute(null=True),
        "size": models.UnicodeAttribute(null=True),
        **attributes,
    }
    own.pop(without, None)
    by_name = {"by_name": models.IndexKey("gs1", item_type.upper(), "{name}#{lamp_id}")}
    with forgotten():
        return declare(
            "Lamp",
            primary,
            {**by_name, **(keys or {})},
            bases=(models.SoftDeleteModel,),
            options={"item_type": item_type, "trash_index": "gs1", **(options or {})},
            **own,
        )


BY_COLOUR = {"by_colour": models.IndexKey("gs2", "COLOUR#{colour}", "{lamp_id}")}
BY_SIZE = {"by_size": models.IndexKey("gs2", "SIZE", "{size}#{lamp_id}")}


def renaming(old: str, new: str, **more: Any) -> Arguments:
    """Code that has another name for a value; given ``both=True`` it writes the old one too."""

    def arguments(wanted: Wanted) -> dict[str, Any]:
        found = {name: value for name, value in wanted.items() if name != old or more.get("both")}
        return {**found, new: wanted[old]} if old in wanted else found

    return arguments


def leaving_out(name: str) -> Arguments:
    """Return code that does not know an attribute any more."""
    return lambda wanted: {each: value for each, value in wanted.items() if each != name}


def converting(name: str, convert: Callable[[Any], Any]) -> Arguments:
    """Code that has a value in another form."""
    return lambda wanted: {**wanted, name: None if wanted[name] is None else convert(wanted[name])}


def add_key() -> Case:
    """An index key."""
    old, new = Code(lamp()), Code(lamp(BY_COLOUR))
    fill = (rewrite_index_keys(new.snapshot, ["gs2"]),)
    return Case(old, new, (Phase(fill, (old, new)), Phase(fill, (new,))))


def alter_key() -> Case:
    """Other templates on the same index, whose old form old code reads until it has stopped."""
    old = Code(lamp(BY_COLOUR))
    new = Code(lamp({"by_colour": models.IndexKey("gs2", "TINT", "{colour}#{name}#{lamp_id}")}))
    return Case(old, new, (Phase((), (old, new)), Phase((rewrite_index_keys(new.snapshot, ["gs2"]),), (new,))))


def add_conditional_key() -> Case:
    """An index key of those items only that meet a condition."""
    old = Code(lamp())
    new = Code(lamp({"red": models.IndexKey("gs2", "RED", "{lamp_id}", condition=Q(colour="red") | Q(size="L"))}))
    fill = (rewrite_index_keys(new.snapshot, ["gs2"]),)
    return Case(old, new, (Phase(fill, (old, new)), Phase(fill, (new,))))


def alter_condition() -> Case:
    """Another condition of a key, which old code reads by the former one until it has stopped."""
    old = Code(lamp({"tinted": models.IndexKey("gs2", "TINT", "{lamp_id}", condition=Q(colour="red"))}))
    new = Code(lamp({"tinted": models.IndexKey("gs2", "TINT", "{lamp_id}", condition=Q(colour__isnull=False))}))
    return Case(old, new, (Phase((), (old, new)), Phase((rewrite_index_keys(new.snapshot, ["gs2"]),), (new,))))


def place_missing() -> Case:
    """A key that is to hold what lacks a value too: what has one keeps its form."""
    old = Code(lamp({"by_colour": models.IndexKey("gs2", "COLOUR", "{colour}#{lamp_id}")}))
    new = Code(lamp({"by_colour": models.IndexKey("gs2", "COLOUR", "{colour:last}#{lamp_id}")}))
    return Case(old, new, (Phase((), (old, new)), Phase((rewrite_index_keys(new.snapshot, ["gs2"]),), (new,))))


def remove_key() -> Case:
    """Return the removal of an unused key."""
    old, new = Code(lamp(BY_COLOUR)), Code(lamp())
    drop = (rewrite_index_keys(new.snapshot, ["gs2"]),)
    return Case(old, new, (Phase((), (old, new)), Phase(drop, (new,))), frozenset({"gs2pk", "gs2sk"}))


def add_attribute() -> Case:
    """Return the addition of an attribute with a default, and of a folded copy."""
    old = Code(lamp())
    new = Code(lamp(watts=models.IntegerAttribute(default=40), folded=models.CanonicalAttribute(source="name")))
    fill = (fill_attribute(new.snapshot, "watts", lambda values: 40), fill_attribute(new.snapshot, "folded"))
    return Case(old, new, (Phase(fill, (old, new)), Phase(fill, (new,))))


def rename_attribute() -> Case:
    """Another physical name of a value that a key names."""
    old = Code(lamp(BY_COLOUR))
    tint = models.UnicodeAttribute(null=True)
    both = Code(lamp(BY_COLOUR, tint=tint), renaming("colour", "tint", both=True))
    keys = {"by_colour": models.IndexKey("gs2", "COLOUR#{tint}", "{lamp_id}")}
    last = Code(lamp(keys, without="colour", tint=models.UnicodeAttribute(null=True)), renaming("colour", "tint"))
    copy = copy_value(old.snapshot, last.snapshot, "colour", "tint")
    drop = drop_attribute(old.snapshot, last.snapshot, "colour")
    phases = (Phase((copy,), (old, both)), Phase((copy,), (both,)), Phase((drop,), (last,)))
    return Case(old, last, phases, frozenset({"colour"}))


def rename_unique() -> Case:
    """Another physical name of a value that is unique, with claims under both names while the change is open."""
    old = Code(lamp(email=models.EmailAttribute(null=True, unique=True)))
    one, two = (models.EmailAttribute(null=True, unique=True) for _ in range(2))
    both = Code(lamp(email=one, mail=two), renaming("email", "mail", both=True))
    unique = models.EmailAttribute(null=True, unique=True)
    last = Code(lamp(without="email", mail=unique), renaming("email", "mail"))
    before, after = old.snapshot, last.snapshot
    copy = copy_value(before, after, "email", "mail")
    surplus = delete_unused_claims(after, after.unique[0])
    drop = drop_attribute(before, after, "email")
    release = release_claims(before, after, before.unique[0])
    phases = (Phase((copy,), (old, both)), Phase((surplus, copy), (both,)), Phase((drop, release), (last,)))
    return Case(old, last, phases, frozenset({"email"}))


def alter_attribute() -> Case:
    """Return the conversion of a string to a number, in a key that contains it."""
    old = Code(lamp(BY_SIZE))
    new = Code(lamp(BY_SIZE, size=models.IntegerAttribute(null=True)), converting("size", int))
    convert = convert_attribute(old.snapshot, new.snapshot, "size", int)
    return Case(old, new, (Phase((), (old,)), Phase((convert,), (new,))))


def remove_attribute() -> Case:
    """Return the removal of an unused attribute."""
    old, new = Code(lamp()), Code(lamp(without="colour"), leaving_out("colour"))
    drop = drop_attribute(old.snapshot, new.snapshot, "colour")
    return Case(old, new, (Phase((), (old, new)), Phase((drop,), (new,))), frozenset({"colour"}))


def add_unique() -> Case:
    """A rule; old code changes and deletes values without their claims."""
    old, new = Code(lamp()), Code(lamp(email=models.EmailAttribute(null=True, unique=True)))
    after = new.snapshot
    take = take_claims(after, after.unique)
    return Case(
        old, new, (Phase((take,), (old, new)), Phase((delete_unused_claims(after, after.unique[0]), take), (new,)))
    )


def remove_unique() -> Case:
    """A rule that is no more; old code claims until it has stopped."""
    old, new = Code(lamp(email=models.EmailAttribute(null=True, unique=True))), Code(lamp())
    release = release_claims(old.snapshot, new.snapshot, old.snapshot.unique[0])
    return Case(old, new, (Phase((), (old, new)), Phase((release,), (new,))))


def move() -> Case:
    """Return a new primary key and type for unique objects in an index; no code writes the new form during the move."""
    old = Code(lamp(BY_COLOUR, email=models.EmailAttribute(null=True, unique=True)))
    unique = models.EmailAttribute(null=True, unique=True)
    new = Code(lamp(BY_COLOUR, primary=("LIGHT#{lamp_id}", "#"), item_type="Light", email=unique))
    moved = (move_items(old.snapshot, new.snapshot),)
    return Case(old, new, (Phase(moved, (old,)), Phase(moved, ())))


def louder(values: Wanted) -> dict[str, Any] | None:
    """Colours in capitals."""
    colour = values["colour"]
    return None if colour is None or colour.isupper() else {"colour": colour.upper()}


def changed_items() -> Case:
    """A function over items, whose result a key follows."""
    old = Code(lamp(BY_COLOUR))
    new = Code(lamp(BY_COLOUR), converting("colour", str.upper))
    change = (change_items(old.snapshot, louder),)
    return Case(old, new, (Phase(change, (old, new)), Phase(change, (new,))))


def upgraded_items() -> Case:
    """Return items of an earlier schema version: the pass converts a string to a number.

    No current code runs during it, because it cannot read items of the earlier version.
    """

    def number(item: Mapping[str, Any]) -> dict[str, Any]:
        return {"size": int(item["size"])} if "size" in item else {}

    old = Code(lamp(BY_SIZE))
    new = Code(lamp(BY_SIZE, size=models.IntegerAttribute(null=True)), converting("size", int))
    after = replace(new.snapshot, schema_version=2, oldest_version=2)
    upgrade = (upgrade_items(after, "Lamp", {1: number}),)
    return Case(old, new, (Phase((), (old,)), Phase(upgrade, ())))


#: Cases by name; the models of each are declared once.
CASES: dict[str, Callable[[], Case]] = {
    each.__name__: cache(each)
    for each in (
        add_key,
        alter_key,
        add_conditional_key,
        alter_condition,
        place_missing,
        remove_key,
        add_attribute,
        rename_attribute,
        rename_unique,
        alter_attribute,
        remove_attribute,
        add_unique,
        remove_unique,
        move,
        changed_items,
        upgraded_items,
    )
}
