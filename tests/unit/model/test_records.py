"""Declarations of records: identifiers and keys from ``Meta.id_prefix``, or manual ones."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.test import override_settings

from dynamo_single import models
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.schema import registry
from tests.unit.declaring import forgotten, messages

URL = "dynamodb://127.0.0.1:1/single-table?region=us-east-1"


def record(name: str = "Gadget", bases: tuple[Any, ...] = (models.Record,), **namespace: Any) -> Any:
    """A record's model."""
    options = {"app_label": "catalog", **namespace.pop("options", {})}
    given = {"__module__": __name__, "__qualname__": name, "Meta": type("Meta", (), options), **namespace}
    return type(models.Model)(name, bases, given)


def keys(model: Any) -> dict[str, tuple[str | None, str, str]]:
    """Each key with its index and its templates."""
    options = model._options
    found = {"primary": (None, options.primary.partition, options.primary.sort)}
    return found | {name: (key.index, key.partition, key.sort) for name, key in options.index_keys.items()}


def test_identifier_and_keys_are_made_of_the_prefix() -> None:
    with forgotten():
        model = record(options={"id_prefix": "tool"})
        assert model().id.startswith("tool-")
        assert model().id[5:].split("-")[2].startswith("1")
        assert keys(model) == {
            "primary": (None, "{id}", "#TOOL"),
            "listed": ("gs1", "TOOL", "{created_at}#{id}"),
        }
        assert messages(model) == []


def test_the_prefix_is_the_models_name_unless_given() -> None:
    with forgotten():
        assert record()().id.startswith("gadget-")


def test_two_records_have_no_key_in_common() -> None:
    with forgotten():
        one, other = record(), record("Gizmo")
        assert messages(one) == messages(other) == []
        assert one().id.startswith("gadget-")


def test_a_declared_key_is_kept_and_the_list_goes_to_the_next_index() -> None:
    with forgotten():
        declared = type("Keys", (models.Record.Keys,), {"by_maker": models.IndexKey("gs1", "GADGET#{maker}", "{id}")})
        model = record(Keys=declared, maker=models.ExtractedAttribute("data__maker"))
        assert keys(model)["listed"] == ("gs2", "GADGET", "{created_at}#{id}")
        assert registry.layout_of(model).trash.index == "gs1"  # type: ignore[union-attr]  # it has a trash


def test_where_all_indexes_are_taken_nothing_lists_them() -> None:
    with override_settings(DYNAMO_SINGLE={"default": f"{URL}&indexes=gs1,gs2"}), forgotten():
        taken = {f"by_{name}": models.IndexKey(name, f"G#{name}", "{id}") for name in ("gs1", "gs2")}
        assert "listed" not in keys(record(Keys=type("Keys", (), taken)))


def test_what_is_written_by_hand_is_not_made() -> None:
    with forgotten():
        by_hand = {"primary": models.Key("GADGET#{id}", "#METADATA"), "listed": models.IndexKey("gs2", "ALL", "{id}")}
        assert keys(record(Keys=type("Keys", (models.Record.Keys,), by_hand))) == {
            "primary": (None, "GADGET#{id}", "#METADATA"),
            "listed": ("gs2", "ALL", "{id}"),
        }
        other = record("Gizmo", Keys=type("Keys", (), {"listed": None}))
        assert "listed" not in keys(other)
        third = record("Widget", id=models.IdAttribute(prefix="w"))
        assert third().id.startswith("w-")


def test_an_abstract_record_hands_on_what_it_declares() -> None:
    with forgotten():
        base = record("Priced", options={"abstract": True}, price=models.ExtractedAttribute("data__price"))
        assert record("Gizmo", (base,))().id.startswith("gizmo-")


def test_identifiers_without_a_prefix_are_bare() -> None:
    with forgotten():
        model = record(options={"id_prefix": ""})
        assert uuid.UUID(model().id).version == 1
        assert keys(model) == {
            "primary": (None, "{id}", "#GADGET"),
            "listed": ("gs1", "GADGET", "{created_at}#{id}"),
        }
        assert messages(model) == []


def test_a_prefix_and_a_name_that_make_one_key_are_refused() -> None:
    """A record model for any identifier would accept those of the other one."""
    with forgotten():
        one = record(options={"id_prefix": ""})
        other = record("Gizmo", options={"id_prefix": "gadget"})
        assert {each for model in (one, other) for each, _ in messages(model)} == {"dynamo_single.E007"}


@pytest.mark.parametrize("prefix", ["two words", "a#b", "{id}", 5])
def test_a_prefix_that_is_none_is_refused(prefix: Any) -> None:
    with forgotten(), pytest.raises(ConfigurationError, match="cannot begin an identifier"):
        record(options={"id_prefix": prefix})


def test_the_prefix_is_for_records() -> None:
    with forgotten(), pytest.raises(ConfigurationError, match="has no effect: the model is no record"):
        record(bases=(models.Model,), options={"id_prefix": "x"}, Keys=type("Keys", (), {}))


def test_a_schema_is_a_nested_class_or_an_option_and_not_both() -> None:
    data = type("Data", (), {"title": models.UnicodeAttribute()})
    with forgotten():
        assert record(Data=data).data.shape.members.keys() == {"title"}
        with pytest.raises(ConfigurationError, match="both class Data and data"):
            record("Gizmo", Data=data, data=models.MapAttribute())


def test_the_list_is_on_an_index_that_the_table_has() -> None:
    with override_settings(DYNAMO_SINGLE={"default": f"{URL}&indexes=abc"}), forgotten():
        assert keys(record())["listed"][0] == "abc"


def test_the_keys_can_be_divided_into_shards_by_the_time_of_creation() -> None:
    with forgotten():
        declared = {
            "shards": models.Shards("id", at="created_at"),
            "listed": models.IndexKey("gs1", "GADGET", "{created_at}#{id}", sharded=True),
        }
        model = record(Keys=type("Keys", (models.Record.Keys,), declared))
        assert messages(model) == []
        assert registry.layout_of(model).sharding is not None
