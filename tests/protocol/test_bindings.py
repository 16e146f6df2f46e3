"""The bindings of old and new code in each phase are what the checker takes from the table of phases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from dynamo_single import migrations, models
from dynamo_single.evolution import forms, steps
from dynamo_single.evolution.operations.base import ItemsOperation
from dynamo_single.evolution.phases import Phases
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.exceptions import FormNotApplied
from dynamo_single.orm.items.encode import attributes_item, key_attributes
from dynamo_single.orm.items.unique_rules import lookups_of
from dynamo_single.orm.rollout import following
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.bindings import ModelBinding
from tests.protocol.meaning import AFTER, BEFORE, Change, Meaning, meaning
from tests.unit.declaring import declare, forgotten

VALUES: Mapping[str, Any] = {"lamp_id": "l1", "name": "Lantern", "title": "Lantern", "folded": "lantern"}


def lamp(
    *,
    keys: Mapping[str, Any] | None = None,
    trash: str | None = None,
    without: str = "",
    primary: str = "LAMP#{lamp_id}",
    **attributes: Any,
) -> Any:
    """Declare the model of one code."""
    own = {"lamp_id": models.IdAttribute(), "name": models.UnicodeAttribute(), **attributes}
    own.pop(without, None)
    bases = (models.SoftDeleteModel,) if trash else (models.Model,)
    options = {"item_type": "Lamp", **({"trash_index": trash} if trash else {})}
    with forgotten():
        return declare("Lamp", (primary, "#METADATA"), dict(keys or {}), bases=bases, options=options, **own)


def by_name(partition: str, index: str = "gs1", variable: str = "name") -> dict[str, Any]:
    """Return a key on an index."""
    return {"by_name": models.IndexKey(index, partition, f"{{{variable}}}#{{lamp_id}}")}


class Pair(NamedTuple):
    """An operation with the models of the code before and after it. ``names`` are the stored names of a rename."""

    operation: Callable[[Snapshot], Any]
    old: Any
    new: Any
    names: tuple[str, str] = ("name", "name")
    value: str = ""


def stored(model: Any, name: str) -> Any:
    """Return an attribute as a migration declares it."""
    return Snapshot.of(model).attributes[name]


def pairs() -> Iterator[tuple[str, Pair]]:
    """Yield each operation on items with its models."""
    plain, keyed, other = lamp(), lamp(keys=by_name("LAMPS")), lamp(keys=by_name("BULBS"))
    yield "AddKey", Pair(lambda s: migrations.AddKey("Lamp", "by_name", s.keys["by_name"]), plain, keyed)
    yield "RemoveKey", Pair(lambda s: migrations.RemoveKey("Lamp", "by_name"), keyed, plain)
    yield "AlterKey", Pair(lambda s: migrations.AlterKey("Lamp", "by_name", s.keys["by_name"]), keyed, other)
    trash = lamp(trash="gs1"), lamp(trash="gs2")
    yield "AlterTrashIndex", Pair(lambda s: migrations.AlterTrashIndex("Lamp", "gs2"), *trash)
    titled = lamp(without="name", title=models.UnicodeAttribute())
    yield (
        "RenameAttribute",
        Pair(lambda s: migrations.RenameAttribute("Lamp", "name", "title", "title"), plain, titled, ("name", "title")),
    )
    moved = lamp(name=models.UnicodeAttribute(attr_name="title"))
    yield (
        "AlterAttribute, stored name",
        Pair(
            lambda s: migrations.AlterAttribute("Lamp", "name", s.attributes["name"]), plain, moved, ("name", "title")
        ),
    )
    number = lamp(name=models.IntegerAttribute())
    yield (
        "AlterAttribute, conversion",
        Pair(lambda s: migrations.AlterAttribute("Lamp", "name", s.attributes["name"], convert=len), plain, number),
    )
    watts = lamp(watts=models.IntegerAttribute(default=40))
    yield (
        "AddAttribute",
        Pair(
            lambda s: migrations.AddAttribute("Lamp", "watts", s.attributes["watts"], default=40),
            plain,
            watts,
            value="watts",
        ),
    )
    folded = lamp(folded=models.CanonicalAttribute(source="name"))
    yield (
        "AddAttribute, computed",
        Pair(
            lambda s: migrations.AddAttribute("Lamp", "folded", s.attributes["folded"]), plain, folded, value="folded"
        ),
    )
    yield "RemoveAttribute", Pair(lambda s: migrations.RemoveAttribute("Lamp", "watts"), watts, plain, value="watts")
    yield (
        "RemoveAttribute, computed",
        Pair(lambda s: migrations.RemoveAttribute("Lamp", "folded"), folded, plain, value="folded"),
    )
    unique = lamp(name=models.UnicodeAttribute(unique=True))
    rule = Snapshot.of(unique).unique[0]
    yield "AddUnique", Pair(lambda s: migrations.AddUnique("Lamp", rule), plain, unique)
    yield "RemoveUnique", Pair(lambda s: migrations.RemoveUnique("Lamp", rule), unique, plain)
    other_place = lamp(primary="BULB#{lamp_id}")
    yield "MoveKeys", Pair(lambda s: migrations.MoveKeys("Lamp", s.primary), plain, other_place)
    yield "ChangeItems", Pair(lambda s: migrations.ChangeItems("Lamp", dict, dict), plain, plain)
    yield "ChangeItems, repeated", Pair(lambda s: migrations.ChangeItems("Lamp", dict, dict, repeat=True), plain, plain)
    yield "UpgradeItems", Pair(lambda s: migrations.UpgradeItems("Lamp", 1, {}), plain, plain)
    renamed = lamp(keys={"by_title": keyed.Keys.by_name})
    yield "RenameKey", Pair(lambda s: migrations.RenameKey("Lamp", "by_name", "by_title"), keyed, renamed)


#: Operations that change no item, and those of the schedule: ``CHANGE_SHARDS`` of the checker.
WITHOUT_ITEMS = {"AddModel", "RemoveModel", "RenameModel", "RaiseSchemaVersion", "ChangeShards"}


def test_every_operation_is_compared() -> None:
    """A new operation needs models here."""
    operations = {
        name
        for name in migrations.__all__
        if isinstance(each := getattr(migrations, name), type) and issubclass(each, ItemsOperation)
    }
    assert operations == {name.partition(",")[0] for name in PAIRS} | WITHOUT_ITEMS


PAIRS = dict(pairs())
CODES = {"old code": BEFORE, "new code": AFTER}


def phases_of(pair: Pair) -> Phases:
    """Return the phases of an operation."""
    return step_of(pair).phases


def step_of(pair: Pair) -> Any:
    """Return the operation with its snapshots."""
    before, after = Snapshot.of(pair.old), Snapshot.of(pair.new)
    return steps.Step(pair.operation(after), "catalog", before, after, ("0002_changed", 0))


def form_in(pair: Pair, number: int) -> Any:
    """Return the form that the table records in a phase."""
    step = step_of(pair)
    form = forms.form_of(step.before, "catalog.Lamp", is_new=True)
    for each in range(number + 1):
        form = step.form_change.in_phase(form, each)
    return form


def binding_in(pair: Pair, number: int, code: int, monkeypatch: pytest.MonkeyPatch) -> ModelBinding | None:
    """Return the binding of code in a phase, or ``None`` if it is blocked."""
    monkeypatch.setattr(following, "has_migration", lambda name: code == AFTER)
    model = (pair.old, pair.new)[code]
    layout = registry.declared_layout(model)
    rules = {each.fingerprint: each.name for each in lookups_of(ModelBinding(model, None))}
    try:
        return ModelBinding(model, following.follow(layout, form_in(pair, number), rules, ()))
    except FormNotApplied:
        return None


CASES = [(name, number) for name, pair in PAIRS.items() for number in range(len(phases_of(pair)))]


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(("name", "number"), CASES)
def test_binding_is_as_the_checker_takes_it(name: str, number: int, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """This includes the names it reads and writes, its keys, the excluded queries, and whether it is blocked."""
    pair = PAIRS[name]
    change = Change(phases_of(pair))
    wanted = meaning((change,), (number,), CODES[code])
    binding = binding_in(pair, number, CODES[code], monkeypatch)
    assert (binding is None) == (wanted is None)
    if binding is not None and wanted is not None:
        check = {"names": check_names, "keys": check_keys, "value": check_value, "claims": check_rule}
        check.get(change.aspect, check_declared)(pair, binding, wanted)


def values_of(model: Any) -> dict[str, Any]:
    """Return prepared values of a model's attributes."""
    attributes = registry.attributes_of(model)
    found = {name: 40 if each.attr_type == "N" else VALUES.get(name) for name, each in attributes.items()}
    return found | dict.fromkeys({registry.DELETED_AT}.intersection(found))


def check_declared(pair: Pair, binding: ModelBinding, wanted: Meaning) -> None:
    """A change without dependent parts does not change a binding."""
    assert binding.rollout is None


def check_names(pair: Pair, binding: ModelBinding, wanted: Meaning) -> None:
    """Check the name that is read, and the names that are written. A conversion under one name has no twins."""
    python = "name" if "name" in registry.attributes_of(binding.model) else "title"
    item = attributes_item(binding, values_of(binding.model))
    assert binding.layout.attributes[python].stored == pair.names[wanted.reads[0]]
    assert {name for name in pair.names if name in item} == {pair.names[n] for n in wanted.writes}


def check_keys(pair: Pair, binding: ModelBinding, wanted: Meaning) -> None:
    """Check the written keys, and whether the code may query by its own key."""
    forms = {"old": key_texts(ModelBinding(pair.old, None)), "new": key_texts(ModelBinding(pair.new, None))}
    expected = {name: text for _, form in wanted.keys for name, text in forms[form].items()}
    assert key_texts(binding) == expected
    own = "old" if binding.model is pair.old else "new"
    is_public = own in {form for _, form in wanted.lists}
    assert bool(binding.missing.hidden_keys) == bool(forms[own] and not is_public)


def key_texts(binding: ModelBinding) -> dict[str, Any]:
    """Return the index keys of an item, of one in the trash if the model has a trash."""
    values = values_of(binding.model)
    if binding.layout.soft_delete:
        values["deleted_at"] = registry.attributes_of(binding.model)["deleted_at"].prepare("2026-01-01T00:00:00Z")
    return key_attributes(binding, values)


def check_value(pair: Pair, binding: ModelBinding, wanted: Meaning) -> None:
    """Check whether queries may use the value."""
    if pair.value in registry.attributes_of(binding.model):
        assert (pair.value in binding.missing.unfilled) != wanted.reads_value


def check_rule(pair: Pair, binding: ModelBinding, wanted: Meaning) -> None:
    """Check whether queries may use the rule. Code with a rule takes claims from the first phase on: see ``EARLY``."""
    rules = {each.fingerprint for each in lookups_of(binding)}
    assert bool(rules and rules <= binding.missing.unclaimed) == bool(rules and not wanted.looks_up)


@pytest.mark.parametrize("name", [name for name in PAIRS if name != "UpgradeItems"])
def test_operation_has_each_pass(name: str) -> None:
    """Its phases name them: a pass without tasks would silently do nothing. Upgraded items stay."""
    step = step_of(PAIRS[name])
    named = {each for phase in step.phases for each in (*phase.passes, *phase.back)}
    assert named - {each for each, tasks in step.tasks.items() if tasks} == set()
