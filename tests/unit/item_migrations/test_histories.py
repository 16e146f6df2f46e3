"""Random histories of a model: forms that follow one another, with writes of old code, interruptions and ways back.

A model in Python knows what every object's values are; after each change every item, key and claim is what the last
form makes of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dynamo_single.evolution.backfill.attributes import (
    convert_attribute,
    copy_value,
    drop_attribute,
    fill_attribute,
)
from dynamo_single.evolution.backfill.claims import (
    claim_actions,
    delete_unused_claims,
    move_items,
    release_claims,
    required_claims,
    take_claims,
)
from dynamo_single.evolution.backfill.project_functions import change_items
from dynamo_single.evolution.backfill.rewrite import indexes_of, rewrite_index_keys, with_index_keys, with_value
from dynamo_single.evolution.backfill.work import Task
from dynamo_single.evolution.snapshots import Snapshot, with_attribute_renamed
from dynamo_single.evolution.stored_attributes import StoredAttribute, UniqueRule
from dynamo_single.exceptions import InvalidValue
from dynamo_single.keys import IndexKey, Key
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.effects.unique_claims import claim_item
from dynamo_single.orm.requests.actions import Put, key_of
from dynamo_single.table import names
from tests.deep import examples
from tests.unit.item_migrations.store import Store

EXAMPLES = examples(10, 400, "HISTORY_EXAMPLES")

TEXT = StoredAttribute("UnicodeAttribute", "a", required=False)
NUMBER = StoredAttribute("IntegerAttribute", "a", required=False)
FIRST = Snapshot(
    "Lamp",
    Key("LAMP#{lamp_id}", "#"),
    {
        "lamp_id": StoredAttribute("UnicodeAttribute", "lamp_id"),
        "a": TEXT,
        "b": replace(TEXT, stored="b"),
        "deleted_at": StoredAttribute("TimestampAttribute", names.DELETED_AT, required=False),
    },
    keys={"by_a": IndexKey("gs1", "LAMP", "{a}")},
    trash_index="gs1",
)
IDS = st.sampled_from("123456")
WORDS = st.sampled_from(["1", "2", "3"])
DELETED = {"N": "1735689600000"}


class Histories(RuleBasedStateMachine):
    """One table, one model, and its declarations in sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.store = Store()
        self.now = FIRST
        #: By identifier the values, and whether the object is in the trash.
        self.objects: dict[str, tuple[dict[str, Any], bool]] = {}
        self.made = 0

    # The values that code writes.

    def write(self, form: Snapshot, pk: str, values: Mapping[str, Any], *, deleted: bool = False) -> bool:
        """Write a whole object with keys and claims, like code of a schema; keep unknown attributes."""
        stored = {
            form.attributes[name].stored: form.attributes[name].stored_value(value) for name, value in values.items()
        }
        bare = {"lamp_id": {"S": pk}, names.ITEM_TYPE: {"S": form.item_type}}
        key = form.primary_key({"lamp_id": pk})
        before = self.store.items.get(key)
        if before is not None and before[names.ITEM_TYPE] != {"S": form.item_type}:
            return False  # another model's
        item = {**(before or {}), **bare, names.PARTITION_KEY: {"S": key[0]}, names.SORT_KEY: {"S": key[1]}}
        for name, value in {**stored, names.DELETED_AT: DELETED if deleted else None}.items():
            item = with_value(item, name, value)
        item = with_index_keys(form, indexes_of(form), item)
        old = set() if before is None else required_claims(form, form.unique, before)
        new = required_claims(form, form.unique, item)
        try:
            along = claim_actions(old, new, item, self.store.others(old | new))
        except InvalidValue:
            return False  # unique: refused
        self.store.carry_out((Put(item), *along))
        return True

    @rule(pk=IDS, values=st.lists(WORDS | st.none(), min_size=6, max_size=6), deleted=st.booleans())
    def save(self, pk: str, values: list[str | None], deleted: bool) -> None:
        """Present code creates an object, or changes it, or throws it away."""
        found = self.given(self.now, values)
        if self.write(self.now, pk, found, deleted=deleted):
            self.objects[pk] = found, deleted

    @rule(pk=IDS)
    def delete(self, pk: str) -> None:
        """Delete an object permanently."""
        if self.objects.pop(pk, None) is not None:
            self.gone(self.now, pk)

    def gone(self, form: Snapshot, pk: str) -> None:
        """Code of a form deletes an object with the claims that it knows."""
        item = self.store.items.pop(form.primary_key({"lamp_id": pk}))
        for key in required_claims(form, form.unique, item):
            self.store.items.pop(key, None)

    def given(self, form: Snapshot, values: list[str | None]) -> dict[str, Any]:
        """Values for the attributes of a form."""
        free = [name for name in form.attributes if name not in ("lamp_id", "deleted_at")]
        numbers = {name for name in free if form.attributes[name].kind == "IntegerAttribute"}
        return {
            name: int(value) if name in numbers and value is not None else value
            for name, value in zip(free, values, strict=False)
        }

    # How forms follow one another.

    def do(self, data: Any, *tasks: Task) -> bool:
        """Execute each task, which may be interrupted once; return whether all succeeded."""
        for task in tasks:
            if data.draw(st.booleans()):
                self.interrupted(task, data.draw(st.integers(0, 6)))
            if self.store.done(task):
                return False
        return True

    def interrupted(self, task: Task, after: int) -> None:
        """A process that did so many items."""
        for key in [*self.store.items][:after]:
            item = self.store.items.get(key)
            if item is not None and matches(task.items, item):
                try:
                    self.store.carry_out(task.change(item, self.store.others(task.keys_wanted(item))))
                except InvalidValue:
                    continue

    def old_code(self, data: Any, after: Callable[[dict[str, Any]], dict[str, Any]] = dict, form: Any = None) -> None:
        """Let old code write again; ``after`` converts its values to the new form."""
        form = form or self.now
        for pk, values, kind in data.draw(
            st.lists(st.tuples(IDS, st.lists(WORDS, min_size=6, max_size=6), IDS), max_size=3)
        ):
            item = self.store.items.get(form.primary_key({"lamp_id": pk}), {})
            stored = item.get(names.ITEM_TYPE) == {"S": form.item_type}
            if kind == "6" and stored:
                self.gone(form, pk)
                self.objects.pop(pk)
            elif stored or pk not in self.objects:
                found, deleted = self.given(form, values), kind == "5"
                if self.write(form, pk, found, deleted=deleted):
                    self.objects[pk] = after(found), deleted

    def name(self) -> str:
        """Return a new name."""
        self.made += 1
        return f"n{self.made}"

    @rule(data=st.data(), index=st.sampled_from(["gs1", "gs2"]))
    def change_key(self, data: Any, index: str) -> None:
        """Add a key to an index, or alter or remove it."""
        free = sorted({"lamp_id", *self.now.attributes} - {"deleted_at"})
        part = data.draw(st.none() | st.sampled_from(free))
        keys = {name: key for name, key in self.now.keys.items() if key.index != index}
        if part is not None:
            keys[f"by_{index}"] = IndexKey(index, f"{self.now.item_type.upper()}{self.made}", f"{{{part}}}")
        after = replace(self.now, keys=keys)
        fill = rewrite_index_keys(after, [index])
        if part is not None and index not in {key.index for key in self.now.keys.values()} and index != "gs1":
            assert self.do(data, fill)
            self.old_code(data)
        assert self.do(data, fill)
        self.now = after

    @rule(data=st.data(), default=WORDS)
    def add_attribute(self, data: Any, default: str) -> None:
        """With a default, which old code does not write."""
        if len(self.now.attributes) > 7:
            return
        name = self.name()
        after = replace(self.now, attributes={**self.now.attributes, name: replace(TEXT, stored=name)})
        fill = fill_attribute(after, name, lambda values: default)
        assert self.do(data, fill)
        self.objects = {pk: ({**values, name: default}, deleted) for pk, (values, deleted) in self.objects.items()}

        def later(values: dict[str, Any]) -> dict[str, Any]:
            return {**values, name: default}

        self.old_code(data, later)
        assert self.do(data, fill)
        self.now = after

    def chosen(self, data: Any) -> str | None:
        """An attribute that is not the identity."""
        free = sorted(set(self.now.attributes) - {"lamp_id", "deleted_at"})
        return data.draw(st.sampled_from(free)) if free else None

    def used(self, name: str) -> bool:
        """Return whether a key or a rule names an attribute."""
        keys = any(f"{{{name}}}" in key.sort for key in self.now.keys.values())
        return keys or any(name in each.attributes for each in self.now.unique)

    @rule(data=st.data())
    def remove_attribute(self, data: Any) -> None:
        """Remove an attribute without keys and rules."""
        name = self.chosen(data)
        if name is None or self.used(name):
            return
        after = replace(self.now, attributes={n: each for n, each in self.now.attributes.items() if n != name})
        assert self.do(data, drop_attribute(self.now, after, name))
        self.objects = {
            pk: ({n: value for n, value in values.items() if n != name}, deleted)
            for pk, (values, deleted) in self.objects.items()
        }
        self.now = after

    @rule(data=st.data())
    def rename_attribute(self, data: Any) -> None:
        """In Python and in the table, with keys, rules and claims, in two steps; and sometimes back at once."""
        name = self.chosen(data)
        if name is None:
            return
        self.renamed(data, name, new := self.name())
        if data.draw(st.booleans()):
            self.renamed(data, new, name)

    def renamed(self, data: Any, old: str, new: str) -> None:
        after = with_attribute_renamed(self.now, old, new, new)

        def later(values: dict[str, Any]) -> dict[str, Any]:
            return {new if name == old else name: value for name, value in values.items()}

        copy = copy_value(self.now, after, old, new)
        assert self.do(data, copy)
        self.objects = {pk: (later(values), deleted) for pk, (values, deleted) in self.objects.items()}
        self.old_code(data, later)
        rules = [each for each in after.unique if new in each.attributes]
        assert self.do(data, *(delete_unused_claims(after, each) for each in rules), copy)
        assert self.do(data, drop_attribute(self.now, after, old))
        for each in self.now.unique:
            if old in each.attributes:
                assert self.do(data, release_claims(self.now, after, each))
        self.now = after

    @rule(data=st.data())
    def convert_attribute(self, data: Any) -> None:
        """Convert between strings and numbers, with keys and claims."""
        name = self.chosen(data)
        if name is None:
            return
        one = self.now.attributes[name]
        kind, convert = ("UnicodeAttribute", str) if one.kind == "IntegerAttribute" else ("IntegerAttribute", int)
        after = replace(self.now, attributes={**self.now.attributes, name: replace(one, kind=kind)})
        assert self.do(data, convert_attribute(self.now, after, name, convert))
        for values, _ in self.objects.values():
            if values.get(name) is not None:
                values[name] = convert(values[name])
        self.now = after

    @rule(data=st.data())
    def add_unique(self, data: Any) -> None:
        """Add a rule; if two objects have one value, it is reported, and the rule is not applied."""
        name = self.chosen(data)
        if name is None or any(each.attributes == (name,) for each in self.now.unique):
            return
        rule = UniqueRule((name,))
        after = replace(self.now, unique=(*self.now.unique, rule))
        first = self.do(data, take_claims(after, (rule,)))
        self.old_code(data)
        done = first and self.do(data, delete_unused_claims(after, rule), take_claims(after, (rule,)))
        live = [values.get(name) for values, deleted in self.objects.values() if not deleted and values.get(name)]
        if done:
            assert len(live) == len(set(live))
            self.now = after
        else:
            assert self.do(data, release_claims(after, self.now, rule))

    @precondition(lambda self: self.now.unique)
    @rule(data=st.data())
    def remove_unique(self, data: Any) -> None:
        """All claims of a rule go."""
        gone = data.draw(st.sampled_from(self.now.unique))
        after = replace(self.now, unique=tuple(each for each in self.now.unique if each is not gone))
        assert self.do(data, release_claims(self.now, after, gone))
        self.now = after

    @rule(data=st.data(), prefix=st.sampled_from(["LAMP", "LIGHT"]), item_type=st.sampled_from(["Lamp", "Light"]))
    def move(self, data: Any, prefix: str, item_type: str) -> None:
        """Move to other primary keys, another type, both, or back, while old code creates objects."""
        after = replace(self.now, primary=Key(f"{prefix}#{{lamp_id}}", "#"), item_type=item_type)
        assert self.do(data, move_items(self.now, after))
        moved = (prefix, item_type) != (self.now.primary.partition.split("#")[0], self.now.item_type)
        if moved and not self.now.unique:  # what is unique is so among items of one type: the pass names both
            self.old_code(data)
        assert self.do(data, move_items(self.now, after))
        self.now = after

    @rule(data=st.data())
    def change_items(self, data: Any) -> None:
        """Apply a function to items: every 1 becomes a 2, unless it is unique."""
        name = self.chosen(data)
        if name is None or any(name in each.attributes for each in self.now.unique):
            return
        kind = int if self.now.attributes[name].kind == "IntegerAttribute" else str

        def function(values: Mapping[str, Any]) -> dict[str, Any] | None:
            return {name: kind(2)} if values[name] == kind(1) else None

        assert self.do(data, change_items(self.now, function))
        for values, _ in self.objects.values():
            if values.get(name) == kind(1):
                values[name] = kind(2)

    @invariant()
    def every_item_is_of_the_last_form(self) -> None:
        """The table contains only the items, keys and claims of the last schema for the objects' values."""
        expected = {}
        for pk, (values, deleted) in self.objects.items():
            key = self.now.primary_key({"lamp_id": pk})
            item: dict[str, Any] = {
                names.PARTITION_KEY: {"S": key[0]},
                names.SORT_KEY: {"S": key[1]},
                names.ITEM_TYPE: {"S": self.now.item_type},
                "lamp_id": {"S": pk},
            }
            for name, value in values.items():
                attribute = self.now.attributes[name]
                item = with_value(item, attribute.stored, attribute.stored_value(value))
            item = with_value(item, names.DELETED_AT, DELETED if deleted else None)
            item |= self.now.index_attributes(self.now.values_of(item))
            expected[key] = item
            expected |= {claim: claim_item(claim, item) for claim in self.now.claims(item)}
        assert self.store.items == expected
        assert all(key_of(item) == key for key, item in expected.items())


Histories.TestCase.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=20,
    # Shrinking a history takes minutes: HISTORY_SHRINK=1 enables it.
    phases=[Phase.generate, Phase.reuse, *([Phase.shrink] if "HISTORY_SHRINK" in os.environ else [])],
)
TestHistories = Histories.TestCase
