"""The abilities of old and new code in each phase of a change, forwards and back.

Both codes read, list, create and update in each phase, before and after its passes. Every allowed operation must be
right for all writers and readers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dynamo_single import models
from dynamo_single.contrib.doctor import verify
from dynamo_single.exceptions import FormNotApplied, KeyNotFilled
from dynamo_single.table import Table
from tests.contract.item_migrations.test_migrate import form, stored
from tests.histories.app import History, history

#: The abilities of a code in a phase.
ALL, NO_LIST, REFUSED = "all", "no list", "refused"
Listing = Callable[[Any], Any]


def by_name(model: Any) -> Any:
    """The live objects by a key."""
    return model.objects.order_by("name")


def trashed(model: Any) -> Any:
    """The objects in the trash."""
    return model.deleted_objects.all()


@dataclass(frozen=True)
class Code:
    """The model of a code, its objects' values, and the list that a key supports.

    Only objects with the attribute ``listed`` are in the list.
    """

    declared: Mapping[str, Any] = field(default_factory=dict)
    subject: str = "name"
    listing: Listing | None = None
    kind: type = str
    name: str = "Shop"
    listed: str = ""


@dataclass(frozen=True)
class Case:
    """A change, and the abilities of both codes in each phase and after it."""

    before: Code
    after: Code
    phases: Sequence[tuple[str, str]]
    ended: tuple[str, str]
    answers: Sequence[str] = ()
    operations: str = ""
    is_converted: bool = False


NAMED = {"by_name": models.IndexKey("gs1", "SHOP", "{name}")}
OTHERWISE = {"by_name": models.IndexKey("gs1", "SHOPS", "{name}#{shop_id}")}
CONDITIONAL = {"by_name": models.IndexKey("gs1", "SHOP", "{name:last}#{town:last}")}


def by(name: str) -> dict[str, Any]:
    """A key that names an attribute."""
    return {"by_it": models.IndexKey("gs2", "SHOP", f"{{{name}}}#{{shop_id}}")}


def ordered(name: str) -> Listing:
    """The live objects by that key."""
    return lambda model: model.objects.order_by(name)


def attribute(**options: Any) -> dict[str, Any]:
    """A further attribute."""
    return {"town": models.UnicodeAttribute(**options)}


def having_town(model: Any) -> Any:
    """The live objects that have the attribute."""
    return model.objects.filter(town__gt="").order_by("town")


PLAIN, BY_NAME = Code(), Code({"keys": NAMED}, listing=by_name)
CASES = {
    "AddKey": Case(PLAIN, BY_NAME, [(ALL, NO_LIST), (ALL, NO_LIST)], (ALL, ALL)),
    "AddKey of a new attribute": Case(
        PLAIN,
        Code({"keys": by("town"), **attribute(null=True)}, listing=having_town, listed="town"),
        [(ALL, NO_LIST), (REFUSED, NO_LIST)],
        (REFUSED, ALL),
    ),
    "AlterKey": Case(
        BY_NAME,
        Code({"keys": OTHERWISE}, listing=by_name),
        [(ALL, NO_LIST), (NO_LIST, NO_LIST), (NO_LIST, NO_LIST)],
        (NO_LIST, ALL),
    ),
    "RemoveKey": Case(BY_NAME, PLAIN, [(ALL, ALL), (NO_LIST, ALL), (NO_LIST, ALL)], (NO_LIST, ALL)),
    "RenameKey": Case(BY_NAME, Code({"keys": {"named": NAMED["by_name"]}}, listing=by_name), [], (ALL, ALL)),
    "RenameAttribute": Case(
        Code({"keys": by("town"), **attribute()}, "town", ordered("town")),
        Code({"keys": by("place"), "place": models.UnicodeAttribute()}, "place", ordered("place")),
        [(ALL, ALL)] * 4,
        (ALL, ALL),
        ["y"],
    ),
    "RenameAttribute of what is unique": Case(
        Code(attribute(unique=True), "town"),
        Code({"place": models.UnicodeAttribute(unique=True)}, "place"),
        [(ALL, REFUSED), (REFUSED, REFUSED)],
        (REFUSED, ALL),
        ["y"],
    ),
    "AddAttribute": Case(PLAIN, Code(attribute(default="Bern")), [(ALL, ALL), (REFUSED, ALL)], (REFUSED, ALL)),
    "AddAttribute that may be missing": Case(PLAIN, Code(attribute(null=True)), [], (ALL, ALL)),
    "AddAttribute that is computed": Case(
        PLAIN,
        Code({"folded": models.CanonicalAttribute(source="name")}),
        [(ALL, ALL), (REFUSED, ALL)],
        (REFUSED, ALL),
    ),
    "RemoveAttribute": Case(Code(attribute(default="Bern")), PLAIN, [(ALL, ALL), (REFUSED, ALL)], (REFUSED, ALL)),
    "RemoveAttribute that is computed": Case(
        Code({"folded": models.CanonicalAttribute(source="name")}),
        PLAIN,
        [(ALL, REFUSED), (ALL, REFUSED), (REFUSED, ALL)],
        (REFUSED, ALL),
    ),
    "AlterAttribute": Case(
        Code(attribute(null=True), "town"),
        Code({"town": models.IntegerAttribute(null=True)}, "town", kind=int),
        [(ALL, REFUSED), (REFUSED, REFUSED)],
        (REFUSED, ALL),
        is_converted=True,
    ),
    "AddUnique": Case(
        PLAIN, Code({"name": models.UnicodeAttribute(unique=True)}), [(ALL, ALL), (REFUSED, ALL)], (REFUSED, ALL)
    ),
    "RemoveUnique": Case(
        Code({"name": models.UnicodeAttribute(unique=True)}),
        PLAIN,
        [(ALL, REFUSED), (ALL, REFUSED), (REFUSED, ALL)],
        (REFUSED, ALL),
    ),
    "AlterTrashIndex": Case(
        Code({"options": {"trash_index": "gs1"}}, listing=trashed),
        Code({"options": {"trash_index": "gs2"}}, listing=trashed),
        [(ALL, NO_LIST), (NO_LIST, NO_LIST), (NO_LIST, NO_LIST)],
        (NO_LIST, ALL),
    ),
    "MoveKeys": Case(
        BY_NAME,
        Code({"keys": NAMED, "primary": ("S#{shop_id}", "#")}, listing=by_name),
        [(ALL, REFUSED), (REFUSED, REFUSED)],
        (REFUSED, ALL),
    ),
    "RenameModel": Case(
        BY_NAME,
        Code(
            {"keys": NAMED, "primary": ("SHOP#{shop_id}", "#METADATA"), "options": {"item_type": "Shop"}},
            listing=by_name,
            name="Store",
        ),
        [],
        (ALL, ALL),
        ["y"],
    ),
    "RenameModel with its items": Case(
        BY_NAME,
        Code({"keys": NAMED, "primary": ("SHOP#{shop_id}", "#METADATA")}, listing=by_name, name="Store"),
        [(ALL, REFUSED), (REFUSED, REFUSED)],
        (REFUSED, ALL),
        ["y"],
    ),
    "ChangeItems": Case(
        PLAIN, PLAIN, [(ALL, ALL), (ALL, ALL)], (ALL, ALL), operations="items.ChangeItems('Shop', same, reverse=same)"
    ),
    "ChangeItems again": Case(
        PLAIN,
        PLAIN,
        [(ALL, ALL), (REFUSED, ALL)],
        (REFUSED, ALL),
        operations="items.ChangeItems('Shop', same, reverse=same, repeat=True)",
    ),
    # Two changes that depend on each other begin together.
    "rename and folded copy": Case(
        Code(attribute(), "town"),
        Code({"place": models.UnicodeAttribute(), "folded": models.CanonicalAttribute(source="place")}, "place"),
        [(ALL, ALL), (REFUSED, ALL), (REFUSED, ALL), (REFUSED, ALL)],
        (REFUSED, ALL),
        ["y"],
    ),
    "rename and key": Case(
        Code(attribute(), "town"),
        Code({"keys": by("place"), "place": models.UnicodeAttribute()}, "place", ordered("place")),
        [(ALL, NO_LIST), (ALL, NO_LIST), (ALL, ALL), (ALL, ALL)],
        (ALL, ALL),
        ["y"],
    ),
    "default and key": Case(
        PLAIN,
        Code({"keys": by("town"), **attribute(default="Bern")}, listing=ordered("town")),
        [(ALL, NO_LIST), (REFUSED, NO_LIST)],
        (REFUSED, ALL),
    ),
}


@pytest.fixture
def app(tmp_path: Path, table: Table) -> Iterator[History]:
    """The app without models."""
    with history(tmp_path) as found:
        yield found


class Life:
    """A change with two codes and their writes."""

    def __init__(self, app: History, case: Case) -> None:
        self.app, self.case = app, case
        self.written: dict[str, str] = {}
        self.trashed: list[str] = []
        self.models = {"before": self.declare(case.before)}
        app.make()
        app.migrate()
        self.write("before")
        if case.after is not case.before:
            if case.after.name != case.before.name:
                app.forget(case.before.name)
            self.models["after"] = self.declare(case.after)
            app.make(answers=case.answers)
        else:
            self.models["after"] = self.models["before"]
            (app.folder / "0002_items.py").write_text(
                "from django.db import migrations\n"
                "from dynamo_single import migrations as items\n\n\n"
                "def same(values):\n    return {}\n\n\n"
                "class Migration(migrations.Migration):\n"
                "    dependencies = [('histories', '0001_initial')]\n"
                f"    operations = [{case.operations}]\n"
            )

    def declare(self, code: Code) -> Any:
        """Return a code's model, registered instead of the other one."""
        given = {"name": models.UnicodeAttribute(), **code.declared}
        return self.app.model(code.name, bases=(models.SoftDeleteModel,), **given)

    def code(self, side: str) -> Code:
        return self.case.before if side == "before" else self.case.after

    def write(self, side: str) -> None:
        """Create two objects, one of them in the trash, and change an earlier one."""
        code, model = self.code(side), self.models[side]
        for is_gone in (False, True):
            number = str(len(self.written) + len(self.trashed) + 10)
            values = {"name": number, code.subject: code.kind(number), **({code.listed: "x"} if code.listed else {})}
            obj = model.objects.create(shop_id=number, **values)
            if is_gone:
                obj.delete()
                self.trashed.append(number)
            else:
                self.written[number] = number
        first = next(iter(self.written))
        text = str(int(max(self.written.values())) + 100)
        model.objects.filter(pk=first).update(**{code.subject: code.kind(text), "name": text})
        self.written[first] = text

    def can(self, side: str) -> str:
        """Return the code's current abilities after a check of its reads; write if possible."""
        if side == "before" and self.models["before"] is not self.models["after"]:
            with self.app.code_of("0001"):
                return self._can(side)
        self.app.start()
        return self._can(side)

    def _can(self, side: str) -> str:
        code, model = self.code(side), self.models[side]
        try:
            found = {key: model.objects.get(pk=key) for key in self.written}
        except FormNotApplied as error:
            assert "histories.0002" in str(error)
            with pytest.raises(FormNotApplied, match=r"histories\.0002"):
                model.objects.create(shop_id="x", name="x")
            return REFUSED
        assert {key: str(getattr(obj, code.subject)) for key, obj in found.items()} == self.written
        self.write(side)
        if code.listing is None:
            return ALL
        try:
            keys = sorted(each.pk for each in code.listing(model))
        except KeyNotFilled:
            return NO_LIST
        wanted = self.trashed if code.listing is trashed else [*self.written]
        if code.listed:
            wanted = [key for key in wanted if getattr(model.objects.get(pk=key), code.listed)]
        assert keys == sorted(wanted)
        return ALL

    def look(self) -> tuple[str, str]:
        """Return what both codes can do now."""
        return self.can("before"), self.can("after")


def life(app: History, name: str) -> Life:
    """Return the life of a case; code without the migration replaces unknown cases."""
    return Life(app, CASES[name])


def look_without_migration(found: Life) -> tuple[str, str]:
    """Return the abilities of both codes if only their migrations differ."""
    if found.models["before"] is not found.models["after"]:
        return found.look()
    with found.app.code_of("0001"):
        old = found._can("before")
    found.app.start()
    return old, found._can("after")


@pytest.mark.parametrize("name", CASES)
def test_codes_in_each_phase(app: History, name: str) -> None:
    """Both are blocked as in the table of phases, and allowed operations are right."""
    found = life(app, name)
    case = CASES[name]
    for number, expected in enumerate(case.phases):
        for passed in (False, True):
            app.migrate(until=number, passed=passed)
            assert (number, passed, look_without_migration(found)) == (number, passed, expected)
    app.migrate()
    assert look_without_migration(found) == case.ended
    assert app.phases() == {}
    assert list(verify()) == []


#: A conversion without a reverse function can be reverted only before its start.
OPEN = [
    (name, until)
    for name, case in CASES.items()
    for until in ([0] if case.is_converted else [*range(len(case.phases)), None])
]


@pytest.mark.parametrize(("name", "until"), OPEN)
def test_revert_from_each_phase(app: History, table: Table, name: str, until: int | None) -> None:
    """All writes are kept, and old code continues."""
    found = life(app, name)
    case = CASES[name]
    before = form(table)
    app.migrate(until=0)
    count = len(app.phases())
    app.migrate(until=until, passed=True)
    look_without_migration(found)
    for number in reversed(range(len(case.phases) if until is None else until)):
        app.migrate("0001", until=number, passed=number % 2 == 0)
        if not app.phases():
            break
        if len(app.phases()) < count or len(set(app.phases().values())) > 1:
            continue  # of several changes, the last is reverted first
        assert (number, look_without_migration(found)) == (number, case.phases[number])
    app.migrate("0001")
    assert form(table) == before
    if case.after.name != case.before.name:
        app.forget(case.after.name)
    found.models["before"] = found.declare(case.before)
    with app.code_of("0001"):
        assert found._can("before") == ALL
    # New code writes an announced value until it is gone, and no code reads it.
    assert {each.kind for each in verify()} <= {"attribute left over"}
    assert stored(table)
