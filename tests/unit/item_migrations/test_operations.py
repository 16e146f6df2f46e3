"""Operations change a state, are written to files, and are reduced if possible."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import migrations
from django.db import models as sql
from django.db.migrations.optimizer import MigrationOptimizer
from django.db.migrations.state import ProjectState
from django.db.migrations.writer import OperationWriter

from dynamo_single import migrations as items
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.evolution.state import snapshot_in
from dynamo_single.exceptions import ConfigurationError, NotSupported
from dynamo_single.models import IndexKey, Key

TEXT = items.StoredAttribute("UnicodeAttribute", "name")
NUMBER = items.StoredAttribute("IntegerAttribute", "name")
RULE = items.UniqueRule(("name",))
ADD = items.AddModel(
    name="Shop",
    item_type="Shop",
    primary=Key("SHOP#{shop_id}", "#"),
    attributes={"shop_id": items.StoredAttribute("UnicodeAttribute", "shop_id"), "name": TEXT},
)


def key(text: str = "SHOP") -> IndexKey:
    """A key on an index."""
    return IndexKey("gs1", text, "{name}")


def upper(values: Any) -> Any:
    """Return a project's change of items."""
    return {"name": values["name"].upper()}


OPERATIONS: list[Any] = [
    items.AddKey(model_name="Shop", name="by_name", key=key()),
    items.AlterKey(model_name="Shop", name="by_name", key=key("SHOPS")),
    items.RenameKey(model_name="Shop", old_name="by_name", new_name="named"),
    items.RemoveKey(model_name="Shop", name="named"),
    items.AddAttribute(model_name="Shop", name="town", attribute=TEXT, default="Bern"),
    items.AddAttribute(model_name="Shop", name="loud", attribute=TEXT, compute=upper),
    items.AlterAttribute(model_name="Shop", name="town", attribute=NUMBER, convert=int),
    items.RenameAttribute(model_name="Shop", old_name="town", new_name="place", stored="place"),
    items.RemoveAttribute(model_name="Shop", name="place", drop=False),
    items.AddUnique(model_name="Shop", rule=RULE),
    items.RemoveUnique(model_name="Shop", rule=RULE),
    items.MoveKeys(model_name="Shop", primary=Key("S#{shop_id}", "#"), item_type="S"),
    items.AlterTrashIndex(model_name="Shop", index="gs1"),
    items.ChangeItems(model_name="Shop", function=upper),
    items.RenameModel(old_name="Shop", new_name="Store"),
    items.RemoveModel(name="Store"),
]


@pytest.mark.parametrize("operation", [ADD, *OPERATIONS], ids=lambda each: type(each).__name__)
def test_an_operation_survives_a_file(operation: Any) -> None:
    """The file contains its public name, and the loaded operation has the same effect."""
    text, imports = OperationWriter(operation, indentation=0).serialize()
    known: dict[str, Any] = {}
    exec("\n".join(imports), known)  # noqa: S102 - what was just written
    again = eval(text.rstrip(","), known)  # noqa: S307
    assert text.startswith(f"dynamo_single.migrations.{type(operation).__name__}(")
    assert again.describe() == operation.describe()
    assert again.deconstruct() == operation.deconstruct()


def test_operations_one_after_the_other() -> None:
    """Each one gets the state of the previous one, or a clone of it."""
    state = ProjectState()
    for operation in (ADD, *OPERATIONS[:-2]):
        state = state.clone()
        operation.state_forwards("shops", state)
    after = snapshot_in(state, "shops", "Shop")
    assert (after.item_type, after.primary, after.trash_index) == ("S", Key("S#{shop_id}", "#"), "gs1")
    assert list(after.attributes) == ["shop_id", "name", "loud"]
    assert (after.keys, after.unique) == ({}, ())


def test_states_do_not_share_what_changes() -> None:
    """A clone is as it was."""
    state = ProjectState()
    ADD.state_forwards("shops", state)
    clone = state.clone()
    OPERATIONS[0].state_forwards("shops", state)
    assert [len(snapshot_in(each, "shops", "Shop").keys) for each in (state, clone)] == [1, 0]


def test_an_operation_on_a_model_that_was_not_added() -> None:
    """The error names the missing earlier operation."""
    with pytest.raises(ConfigurationError, match="An AddModel has to come first"):
        OPERATIONS[0].state_forwards("shops", ProjectState())


def test_sql_models_refer_to_the_stand_in() -> None:
    """Its key has the kind of the identity, and follows a rename."""
    state = ProjectState()
    ADD.state_forwards("shops", state)
    migrations.CreateModel(
        "Note", [("id", sql.AutoField(primary_key=True)), ("shop", sql.ForeignKey("shops.Shop", sql.CASCADE))]
    ).state_forwards("shops", state)
    assert state.apps.get_model("shops", "Note")._meta.get_field("shop").target_field.max_length == 255
    items.RenameModel(old_name="Shop", new_name="Store").state_forwards("shops", state)
    assert state.apps.get_model("shops", "Note")._meta.get_field("shop").related_model.__name__ == "Store"


def test_a_function_of_djangos_own_operation_finds_no_objects() -> None:
    """The refusal names the operation that changes items."""
    state = ProjectState()
    ADD.state_forwards("shops", state)
    with pytest.raises(NotSupported, match=r"shops\.Shop is stored in DynamoDB.*ChangeItems"):
        state.apps.get_model("shops", "Shop").objects.all()


def test_a_rename_is_followed_everywhere() -> None:
    """By keys with their literals and formats, folded copies, copies along a reference, rules and their conditions."""
    before = Snapshot(
        "T",
        Key("T{{x}}#{name}", "#"),
        {
            "name": TEXT,
            "folded": items.StoredAttribute("UnicodeAttribute", "f", source="name", fold="canonical"),
            "other": items.StoredAttribute("UnicodeAttribute", "o", copied="name.title"),
        },
        keys={"by_name": IndexKey("gs1", "T", "A#{name:canonical}#B{{")},
        unique=(items.UniqueRule(("name",), canonical=("name",), name="one", condition=("=", "name", {"S": "x"})),),
    )
    after = items.RenameAttribute(model_name="T", old_name="name", new_name="title", stored="t").changed(before)
    assert after == Snapshot(
        "T",
        Key("T{{x}}#{title}", "#"),
        {
            "title": items.StoredAttribute("UnicodeAttribute", "t"),
            "folded": items.StoredAttribute("UnicodeAttribute", "f", source="title", fold="canonical"),
            "other": items.StoredAttribute("UnicodeAttribute", "o", copied="title.title"),
        },
        keys={"by_name": IndexKey("gs1", "T", "A#{title:canonical}#B{{")},
        unique=(items.UniqueRule(("title",), canonical=("title",), name="one", condition=("=", "t", {"S": "x"})),),
    )


def reduced(*operations: Any) -> list[str]:
    """Return the optimizer's result."""
    return [each.describe() for each in MigrationOptimizer().optimize(list(operations), "shops")]


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([ADD, *OPERATIONS[:4]], ["Add model Shop, stored as Shop"]),
        ([ADD, items.RemoveModel(name="Shop")], []),
        ([ADD, items.RenameModel(old_name="Shop", new_name="Store")], ["Add model Store, stored as Shop"]),
        ([OPERATIONS[0], items.RemoveKey(model_name="Shop", name="by_name")], []),
        (OPERATIONS[:2], ["Add key by_name to Shop on gs1"]),
        ([OPERATIONS[0], OPERATIONS[2]], ["Add key named to Shop on gs1"]),
        ([OPERATIONS[4], OPERATIONS[7], OPERATIONS[8]], []),
        ([OPERATIONS[9], OPERATIONS[10]], []),
        (
            [OPERATIONS[4], OPERATIONS[0], items.RemoveAttribute(model_name="Shop", name="town")],
            [OPERATIONS[0].describe()],
        ),
        (
            [OPERATIONS[0], OPERATIONS[13], items.RemoveKey(model_name="Shop", name="by_name")],
            ["Add key by_name to Shop on gs1", "Change items of Shop by upper", "Remove key by_name from Shop"],
        ),
        (
            [OPERATIONS[6], items.AlterAttribute(model_name="Shop", name="town", attribute=TEXT)],
            ["Alter attribute town of Shop", "Alter attribute town of Shop"],
        ),
        (
            [items.ChangeItems(model_name="Shop", function=upper, elidable=True), OPERATIONS[0]],
            [OPERATIONS[0].describe()],
        ),
    ],
)
def test_what_two_operations_make(operations: list[Any], expected: list[str]) -> None:
    """At most one operation remains; operations with functions are kept."""
    assert reduced(*operations) == expected


def test_two_models_are_reduced_each_by_itself() -> None:
    """Operations on another model do not interfere, unless it has references."""
    other = items.AddModel(
        name="Depot", item_type="Depot", primary=Key("D#{shop_id}", "#"), attributes=ADD.snapshot.attributes
    )
    note = migrations.CreateModel("Note", [("shop", sql.ForeignKey("shops.Shop", sql.CASCADE))])
    assert reduced(ADD, other, OPERATIONS[0]) == [other.describe(), ADD.describe()]
    assert reduced(ADD, note, OPERATIONS[0]) == [ADD.describe(), note.describe()]
