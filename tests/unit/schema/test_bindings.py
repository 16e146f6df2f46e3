"""Bindings of models are created once per generation, and do not change with the next one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from threading import Barrier, Thread
from typing import Any

import pytest

from dynamo_single import models
from dynamo_single.exceptions import ConfigurationError, FormNotApplied
from dynamo_single.orm.items.form import form_of
from dynamo_single.orm.schema import bindings, registry
from dynamo_single.orm.schema.bindings import MAX_FACTS, ModelBinding, Rollout, fact, shared
from dynamo_single.orm.schema.layout import Twin
from dynamo_single.orm.schema.references import cascading_children
from dynamo_single.table.lease import Lease
from tests.rollouts import begin_rollout
from tests.unit.declaring import declare, forgotten

RENAME = Rollout((Twin("name", "title", is_before=True),))


@fact
def text_of(binding: ModelBinding, number: int = 0) -> list[str]:
    """Return a new list for each computation."""
    return [f"{binding.layout.label} {number}"]


@shared
def labels() -> list[str]:
    """Return the labels of all models."""
    return [model._meta.label for model in registry.all_models()]


def shelf(label: str) -> Any:
    """Declare a model with a string."""
    code, title = models.UnicodeAttribute(), models.UnicodeAttribute()
    return declare(label, (f"{label.upper()}#{{code}}", "A"), options={"item_type": label}, code=code, title=title)


@pytest.fixture
def shop() -> Iterator[Any]:
    """Return a model with a string; no rollout is open before and after the test."""
    bindings.forget_states()
    with forgotten():
        yield shelf("Shop")
    bindings.forget_states()


def test_a_binding_is_made_once(shop: Any) -> None:
    """With its facts."""
    assert bindings.binding_of(shop) is bindings.binding_of(shop)
    assert text_of(shop) is text_of(bindings.binding_of(shop))
    assert text_of(shop, 1) is not text_of(shop, 2)


def test_a_new_generation_has_the_names_in_use(shop: Any) -> None:
    """This applies to the layout and to facts derived from it."""
    begin_rollout(shop, RENAME)
    assert registry.layout_of(shop).attributes["title"].stored == "name"
    assert form_of(shop).stored["title"] == "name"
    assert registry.attributes_of(shop)["title"].attr_name == "title"
    assert registry.declared_layout(shop).attributes["title"].stored == "title"


def test_a_former_binding_stays_as_it_was(shop: Any) -> None:
    """Facts that are derived later have its names."""
    before = bindings.binding_of(shop)
    begin_rollout(shop, RENAME)
    assert bindings.binding_of(shop) is not before
    assert before.layout is registry.declared_layout(shop)
    assert form_of(before).stored["title"] == "title"


def test_no_generation_begins_without_a_change(shop: Any) -> None:
    """The same rollout is read repeatedly while it is open."""
    begin_rollout(shop, RENAME)
    generation = bindings.current()
    begin_rollout(shop, Rollout(RENAME.twins))
    assert bindings.current() is generation


def test_a_rollout_of_one_model_begins_a_generation_of_all(shop: Any) -> None:
    """A write of another model may also write this model's items."""
    other = shelf("Other")
    before = bindings.binding_of(other)
    begin_rollout(shop, RENAME)
    assert bindings.binding_of(other) is not before
    assert bindings.binding_of(other).layout is before.layout


def test_a_proxy_has_the_rollout_of_its_model(shop: Any) -> None:
    """And a label of its own."""
    meta = type("Meta", (), {"proxy": True, "app_label": shop._meta.app_label})
    proxy: Any = type(models.Model)("Stall", (shop,), {"__module__": __name__, "Meta": meta})
    begin_rollout(proxy, RENAME)
    found = bindings.binding_of(proxy)
    assert (found.layout.attributes["title"].stored, found.layout.label) == ("name", proxy._meta.label)
    assert registry.layout_of(shop).attributes["title"].stored == "name"


def test_a_later_model_begins_a_generation(shop: Any) -> None:
    """The open rollout stays open."""
    begin_rollout(shop, RENAME)
    before = bindings.current()
    shelf("Later")
    assert bindings.current() is not before
    assert bindings.rollout_of(shop) == RENAME


def test_threads_get_one_binding(shop: Any) -> None:
    """Whichever made it first, and the facts in it."""
    bindings.begin_generation()
    start, found = Barrier(8), []

    def ask() -> None:
        start.wait()
        found.append((bindings.binding_of(shop), text_of(shop)))

    threads = [Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {id(binding) for binding, _ in found} == {id(bindings.binding_of(shop))}
    assert {id(text) for _, text in found} == {id(text_of(shop))}


def test_an_overtaken_thread_leaves_the_generation_alone(shop: Any) -> None:
    """The thread completes its binding of the former generation."""
    before = bindings.current()
    begin_rollout(shop, RENAME)
    made = bindings._bind(shop, before)
    assert made.layout is registry.declared_layout(shop)
    assert bindings.binding_of(shop) is not made


def test_facts_are_bounded(shop: Any) -> None:
    """This applies to any selection."""
    for number in range(1, 2 * MAX_FACTS):
        text_of(shop, number)
    assert len(bindings.binding_of(shop).facts) <= MAX_FACTS


class Known:
    """The age of a table's cached state."""

    def __init__(self, seconds: float) -> None:
        self.renew_at = time.monotonic() + seconds


@pytest.mark.parametrize("seconds", [60.0, -1.0])
def test_binding_is_known_until_the_table_is_asked(shop: Any, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """The binding depends on the state of its own table."""
    table, binding = object(), bindings.binding_of(shop)
    monkeypatch.setitem(bindings.known_tables, table, Known(seconds))
    assert bindings.binding_if_known(shop, table) is (binding if seconds > 0 else None)
    assert bindings.binding_if_known(shop, object()) is None


@pytest.mark.parametrize("rollout", [None, RENAME])
def test_state_begins_a_generation_of_its_table(
    shop: Any, monkeypatch: pytest.MonkeyPatch, rollout: Rollout | None
) -> None:
    """With its lease. A binding of before keeps its own."""
    monkeypatch.setattr(bindings, "_follower", lambda model, state, before: (state, None, None))
    before, lease = bindings.binding_of(shop), Lease(3, 60.0)
    bindings.begin_state("default", rollout, lease)
    found = bindings.binding_of(shop)
    assert (found.rollout, found.lease, found.refusal) == (rollout, lease, None)
    assert (before.rollout, before.lease) == (None, None)


def test_binding_that_is_refused_is_never_known(shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each operation reads the state again until the code can follow it."""
    table = object()
    monkeypatch.setitem(bindings.known_tables, table, Known(60))
    monkeypatch.setattr(bindings, "_follower", lambda *_: (None, None, FormNotApplied("Not yet.")))
    bindings.begin_state("default", object(), None)
    assert isinstance(bindings.binding_of(shop).refusal, FormNotApplied)
    assert bindings.binding_if_known(shop, table) is None


@pytest.mark.usefixtures("shop")
def test_facts_of_references_need_no_layout() -> None:
    """A model with invalid keys does not prevent other models' checks of references."""
    broken = declare("Broken", ("BROKEN#{nobody}", "A"), code=models.UnicodeAttribute())
    assert cascading_children(broken) == ()
    with pytest.raises(ConfigurationError):
        registry.layout_of(broken)


def test_facts_of_all_models_end_with_the_generation(shop: Any) -> None:
    """They may depend on another model."""
    before = labels()
    assert labels() is before
    shelf("Store")
    assert {*labels()} == {*before, "catalog.Store"}
