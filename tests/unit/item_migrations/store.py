"""An in-memory table for tests of pure functions: items by key, and conditional actions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dynamo_single.evolution.backfill.rehearsal import apply_actions
from dynamo_single.evolution.backfill.work import Task
from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.requests.actions import Action, Item, ItemKey, key_of

Items = dict[ItemKey, Any]


class Store:
    """Items by their keys."""

    def __init__(self, *items: Item) -> None:
        self.items: Items = {key_of(item): dict(item) for item in items}

    def put(self, *items: Item) -> None:
        """Store items."""
        self.items |= {key_of(item): dict(item) for item in items}

    def carry_out(self, actions: Sequence[Action]) -> None:
        """Execute all actions, whose conditions must hold, without writing an item twice."""
        assert len({action.key for action in actions}) == len(actions)
        for action in actions:
            assert matches(action.condition, self.items.get(action.key, {})), action
        for key, item in apply_actions(actions, self.items):
            if item is None:
                self.items.pop(key, None)
            else:
                self.items[key] = item

    def others(self, keys: Iterable[ItemKey]) -> Items:
        """Return the stored items."""
        return {key: self.items[key] for key in keys if key in self.items}

    def do(self, task: Task) -> dict[ItemKey, str]:
        """Execute a task for each item; return the failures with reasons."""
        failed = {}
        for key, item in [*self.items.items()]:
            if key not in self.items or not matches(task.items, self.items[key]):
                continue
            item = self.items[key]
            try:
                self.carry_out(task.change(item, self.others(task.keys_wanted(item))))
            except InvalidValue as error:
                failed[key] = str(error)
        return failed

    def done(self, task: Task) -> dict[ItemKey, str]:
        """Execute it twice: a repetition has no effect."""
        failed = self.do(task)
        once = {key: dict(item) for key, item in self.items.items()}
        assert self.do(task) == failed
        assert self.items == once
        return failed
