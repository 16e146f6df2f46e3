"""Items of all versions mixed in one table, by writers of all times, against a model in Python.

``UPGRADES_EXAMPLES`` sets how many histories are tried (25 in a normal run, 100 in a deep one).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.db.models import F
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_single.contrib.doctor import verify
from dynamo_single.evolution.backfill import Work, run_work
from dynamo_single.evolution.backfill.rewrite import upgrade_items
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.table import Table, get_table
from tests.contract.model.patrons import patron, put
from tests.contract.tables import everything
from tests.deep import examples
from tests.unit.declaring import forgotten

EXAMPLES = examples(15, 100, "UPGRADES_EXAMPLES")

IDS = ["a", "b", "c"]
NAMES = ["Ada", "Ada Byron", "Ada  Byron", "Ä B C", " x"]
TOWNS = ["Bern", "Chur"]

STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("old"),
            st.sampled_from(IDS),
            st.sampled_from([None, 1, 2]),
            st.sampled_from(NAMES),
            st.integers(0, 999),
        ),
        st.tuples(st.just("save"), st.sampled_from(IDS), st.sampled_from(TOWNS)),
        st.tuples(st.just("add"), st.sampled_from(IDS), st.integers(-5, 5)),
        st.tuples(st.just("rename"), st.sampled_from(IDS), st.sampled_from(["Grace", "Ada"])),
        st.tuples(st.just("trash"), st.sampled_from(IDS)),
        st.tuples(st.just("restore"), st.sampled_from(IDS)),
        st.tuples(st.just("all")),
    ),
    max_size=12,
)
_numbers = iter(range(1_000_000))


@pytest.fixture
def model(table: Table) -> Iterator[Any]:
    """The model as it is now."""
    with forgotten():
        yield patron()


@given(steps=STEPS)
@settings(max_examples=EXAMPLES)
def test_every_reader_sees_what_the_last_writer_meant(model: Any, table: Table, steps: list[tuple[Any, ...]]) -> None:
    """Whatever version wrote an item, and whoever has brought it up to date."""
    History(model, table).go(steps)


class History:
    """A table, and what it means by what was written."""

    def __init__(self, model: Any, table: Table) -> None:
        self.model, self.table = model, table
        self.meant: dict[str, dict[str, Any]] = {}
        for obj in model.all_objects.filter(pk__in=IDS):
            obj.hard_delete()

    def go(self, steps: list[tuple[Any, ...]]) -> None:
        """Take the steps, and look at everything after each."""
        for name, *arguments in steps:
            getattr(self, name)(*arguments)
            self.look()

    def old(self, key: str, version: int | None, name: str, cents: int) -> None:
        """Code of an earlier version puts an item."""
        price = {"price": {"S": f"{cents // 100}.{cents % 100:02}"}}
        first, _, last = name.partition(" ")
        if version == 2:
            put(self.table, key, 2, first={"S": first}, last={"S": last or first}, **price)
        else:
            put(self.table, key, version, name={"S": name}, **price)
        self.meant[key] = {"first": first, "last": last or first, "cents": cents, "town": "Bern", "is_deleted": False}

    def save(self, key: str, town: str) -> None:
        """Code of now saves an object."""
        if key in self.meant:
            obj = self.model.all_objects.get(pk=key)
            obj.town = town
            obj.save()
            self.meant[key]["town"] = town

    def add(self, key: str, number: int) -> None:
        """Code of now adds to what an upgrade gives."""
        if self.model.objects.filter(pk=key).update(cents=F("cents") + number):
            self.meant[key]["cents"] += number

    def rename(self, key: str, first: str) -> None:
        """Code of now sets one of two values that an upgrade gives."""
        if self.model.objects.filter(pk=key).update(first=first):
            self.meant[key]["first"] = first

    def trash(self, key: str) -> None:
        """Code of now deletes."""
        if self.model.objects.filter(pk=key).delete()[0]:
            self.meant[key]["is_deleted"] = True

    def restore(self, key: str) -> None:
        """And takes it out of the trash."""
        if key in self.meant:
            self.model.all_objects.get(pk=key).restore()
            self.meant[key]["is_deleted"] = False

    def all(self) -> None:
        """A migration upgrades all items."""
        after = replace(Snapshot.of(self.model), oldest_version=3, pending=())
        work = Work("catalog", f"upgrade_{next(_numbers)}", 0, "open", "Upgrade", upgrade_items(after))
        run_work(work, get_table())
        found = [item for item in everything(self.table).values() if item["itemType"]["S"] == "Patron"]
        assert {item["schemaVersion"]["N"] for item in found} <= {"3"}
        assert not any({"name", "price"} & item.keys() for item in found)

    def look(self) -> None:
        """Everything is as it was meant, and no item is half of one version and half of another."""
        found = {obj.pk: obj for obj in self.model.all_objects.filter(pk__in=IDS)}
        assert {key: {name: getattr(obj, name) for name in self.meant[key]} for key, obj in found.items()} == self.meant
        live = sorted(key for key, each in self.meant.items() if not each["is_deleted"])
        assert sorted(self.model.objects.values_list("pk", flat=True)) == live
        assert [each for each in verify() if each.key[0].startswith("PATRON#")] == []
