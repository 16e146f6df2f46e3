"""The system checks name each beginner's mistake before the first object is created."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.core.checks import run_checks
from django.test import override_settings

from dynamo_single import models
from dynamo_single.checks.models import check_model, check_models
from dynamo_single.testing import assert_requests
from tests.unit.declaring import declare, forgotten, messages


@pytest.fixture(autouse=True)
def forget_models() -> Iterator[None]:
    """Remove the models that a test declares."""
    with forgotten():
        yield


def test_the_shipped_models_have_no_mistakes() -> None:
    """The demo's and the tests' models pass."""
    assert check_models() == []


def test_a_template_that_names_an_unknown_attribute() -> None:
    """E003 quotes the template and lists the attributes."""
    model = declare("Unknown", ("UNKNOWN#{unknown_id}", "#X"), name=models.UnicodeAttribute())
    assert messages(model) == [
        (
            "dynamo_single.E003",
            "catalog.Unknown: the key 'UNKNOWN#{unknown_id}' names 'unknown_id', which is not an attribute of the "
            "model. It has name.",
        )
    ]


def test_a_template_that_names_a_document() -> None:
    """E003 explains that nested values, sets and binary values cannot be indexed."""
    model = declare(
        "Nested",
        ("NESTED#{nested_id}", "#X"),
        {"by_data": models.IndexKey("gs1", "NESTED", "{data}")},
        nested_id=models.IdAttribute(),
        data=models.MapAttribute(),
    )
    (found,) = messages(model)
    assert found[0] == "dynamo_single.E003"
    assert "DynamoDB cannot index a value inside a map, a list or a set" in found[1]


def test_two_models_with_one_prefix() -> None:
    """E007 names both models and their keys."""
    declare("First", ("THING#{first_id}", "#X"), first_id=models.IdAttribute())
    second = declare("Second", ("THING#{second_id}", "#X"), second_id=models.IdAttribute())
    assert messages(second) == [
        (
            "dynamo_single.E007",
            "catalog.Second and catalog.First could write the same primary key: 'THING#{second_id}' / '#X' and "
            "'THING#{first_id}' / '#X'.",
        )
    ]


def test_an_index_that_is_not_configured() -> None:
    """E004 names the index and where to add it."""
    model = declare(
        "Far",
        ("FAR#{far_id}", "#X"),
        {"by_far": models.IndexKey("gs9", "FAR", "{far_id}")},
        far_id=models.IdAttribute(),
    )
    assert messages(model) == [
        ("dynamo_single.E004", "The key by_far is on the index 'gs9', which the table does not have.")
    ]
    url = "dynamodb://127.0.0.1:1/single-table?region=us-east-1&indexes=gs1,gs2,gs9"
    with override_settings(DYNAMO_SINGLE={**settings.DYNAMO_SINGLE, "default": url}):
        assert messages(model) == []


@pytest.mark.parametrize(
    ("setting", "way_out"),
    [
        (
            "dynamodb:///tab?region=us-east-1&indexes=gs1",
            "write indexes=gs1,gs9 in the query of the URL DYNAMO_SINGLE['",
        ),
        ({"TABLE_NAME": "tab", "REGION": "us-east-1", "INDEXES": ["gs1"]}, "add 'gs9' to INDEXES of DYNAMO_SINGLE['"),
    ],
)
def test_a_missing_index_is_added_where_the_setting_has_them(setting: object, way_out: str) -> None:
    """E004's hint fits a URL as well as a dict."""
    model = declare("Far", ("FAR#{f}", "#X"), {"by_far": models.IndexKey("gs9", "FAR", "{f}")}, f=models.IdAttribute())
    with override_settings(DYNAMO_SINGLE={**settings.DYNAMO_SINGLE, "default": setting}):
        (found,) = check_model(model)
    assert str(found.hint).startswith(f"Its indexes are gs1: {way_out}default']")


def test_a_schema_that_no_attribute_has() -> None:
    """E034 reports an ignored schema; names of schemas and other classes are invalid too."""
    data = type("Data", (), {"price": models.NumberAttribute()})
    assert messages(declare("Plain", ("PLAIN#{p}", "#X"), p=models.IdAttribute(), Data=data)) == [
        ("dynamo_single.E034", "Plain.Data declares the elements of a map, but no attribute uses it.")
    ]
    for name, given in {
        "Named": {"Data": data, "d": models.MapAttribute(schema=data)},
        "Listed": {"Data": data, "d": models.ListAttribute(schema=data)},
        "Other": {"Data": type("Data", (), {"price": 5})},
    }.items():
        assert messages(declare(name, (f"{name.upper()}#{{p}}", "#X"), p=models.IdAttribute(), **given)) == []


@pytest.mark.parametrize("name", ["query", "count", "exists", "save", "objects", "sort_key"])
def test_a_reserved_attribute_name(name: str) -> None:
    """E001 names the attribute that would hide a method."""
    model = declare("Hiding", ("HIDING#{h}", "#X"), h=models.IdAttribute(), **{name: models.UnicodeAttribute()})
    assert ("dynamo_single.E001", f"The attribute name {name!r} is a method or a property of every model.") in messages(
        model
    )


@pytest.mark.parametrize("stored", ["pk", "sk", "itemType", "gs1pk", "gs2sk"])
def test_a_reserved_stored_name(stored: str) -> None:
    """E002 names the attribute that would overwrite a key."""
    model = declare("Over", ("OVER#{o}", "#X"), o=models.IdAttribute(), name=models.UnicodeAttribute(attr_name=stored))
    assert messages(model) == [
        ("dynamo_single.E002", f"name would be stored as {stored!r}, the name of a key or of the item's type.")
    ]


def test_two_attributes_in_one_place() -> None:
    """E002 names both attributes that share a stored name."""
    model = declare(
        "Shared",
        ("SHARED#{s}", "#X"),
        s=models.IdAttribute(),
        a=models.UnicodeAttribute(attr_name="x"),
        b=models.UnicodeAttribute(attr_name="x"),
    )
    assert messages(model) == [("dynamo_single.E002", "a and b would both be stored as 'x'.")]


def test_two_keys_on_one_index() -> None:
    """E005 names both keys."""
    keys = {"one": models.IndexKey("gs1", "A", "{t}"), "two": models.IndexKey("gs1", "B", "{t}")}
    model = declare("Twice", ("TWICE#{t}", "#X"), keys, t=models.IdAttribute())
    assert messages(model) == [
        ("dynamo_single.E005", "The keys one and two are both on the index 'gs1', but an item has one key on an index.")
    ]


def test_children_without_a_reference() -> None:
    """E006 names the missing reference."""
    model = declare("Parent", ("PARENT#{p}", "#X"), p=models.IdAttribute(), samples=models.Children("Sample"))
    assert messages(model) == [
        (
            "dynamo_single.E006",
            "catalog.Parent.samples: catalog.Sample has no reference to Parent. Declare one ReferenceAttribute, or "
            "name it: Children(..., field=...).",
        )
    ]


def test_an_index_of_the_trash_that_is_not_configured() -> None:
    """E004 names the trash as it names a declared key."""
    model = declare(
        "Binned",
        ("BINNED#{b}", "#X"),
        bases=(models.SoftDeleteModel,),
        options={"trash_index": "gs9"},
        b=models.IdAttribute(),
    )
    assert messages(model) == [
        ("dynamo_single.E004", "The key trash is on the index 'gs9', which the table does not have.")
    ]


def test_the_admins_log_needs_its_index() -> None:
    """A table with other index names is also rejected for the app's own models."""
    url = "dynamodb://127.0.0.1:1/single-table?region=us-east-1&indexes=first,second"
    with override_settings(DYNAMO_SINGLE={**settings.DYNAMO_SINGLE, "default": url}):
        found = {message.obj._meta.label for message in check_models() if message.id == "dynamo_single.E004"}
    assert {"dynamo_single.LogEntry", "accounts.User"} <= found


@pytest.mark.parametrize(("sort", "expected"), [("#CLAIM", ["dynamo_single.E007"]), ("#METADATA", [])])
def test_a_primary_key_that_could_be_a_unique_claims(sort: str, expected: list[str]) -> None:
    """E007 names a model whose objects could overwrite what holds a unique value."""
    model = declare("Claimant", ("UNIQUE#{a}#{b}#{c}", sort), **{name: models.UnicodeAttribute() for name in "abc"})
    assert [id for id, _ in messages(model)] == expected


def test_a_reference_to_an_unknown_model() -> None:
    """Django's E300 and our E003 name it, also for a model with an indirect reference."""
    lost = declare(
        "Lost",
        ("LOST#{target_id}", "#X"),
        target=models.ReferenceAttribute("catalog.Nowhere", on_delete=models.DO_NOTHING),
    )
    behind = declare(
        "Behind",
        ("BEHIND#{b}", "{lost_id}"),
        b=models.IdAttribute(),
        lost=models.ReferenceAttribute(lost, on_delete=models.DO_NOTHING),
    )
    assert messages(lost) == [
        (
            "dynamo_single.E003",
            "catalog.Lost: target_id refers to 'catalog.Nowhere', which is not a model of an installed app.",
        )
    ]
    assert messages(behind) == [
        (
            "dynamo_single.E003",
            "catalog.Behind: lost_id refers to 'catalog.Nowhere', which is not a model of an installed app.",
        )
    ]
    assert "fields.E300" in [message.id for message in lost.check()]


def test_a_part_of_the_identity_of_an_unknown_model() -> None:
    """E003 names the model, and the other checks continue."""
    lost = declare(
        "Lost",
        ("LOST#{target.tenant}", "x#{name}"),
        name=models.UnicodeAttribute(),
        target=models.ReferenceAttribute("catalog.Nowhere", on_delete=models.DO_NOTHING),
    )
    assert messages(lost) == [
        (
            "dynamo_single.E003",
            "catalog.Lost: target_id refers to 'catalog.Nowhere', which is not a model of an installed app.",
        )
    ]


def test_primary_keys_that_refer_to_each_other() -> None:
    """Two models that contain each other's identity have none; E003 names both."""
    one = declare(
        "One", ("ONE#{other_id}", "#X"), other=models.ReferenceAttribute("catalog.Other", on_delete=models.DO_NOTHING)
    )
    declare("Other", ("OTHER#{one_id}", "#X"), one=models.ReferenceAttribute(one, on_delete=models.DO_NOTHING))
    ((id, message),) = messages(one)
    assert id == "dynamo_single.E003"
    assert "refers to catalog.One, catalog.Other, whose primary keys refer to each other in a circle" in message


@pytest.mark.parametrize("attribute", [models.MapAttribute, models.ListAttribute, models.UnicodeSetAttribute])
def test_a_unique_value_that_no_key_can_hold(attribute: Any) -> None:
    """E009 names the attribute before the first object is saved."""
    model = declare("Sole", ("SOLE#{s}", "#X"), s=models.IdAttribute(), data=attribute(null=True, unique=True))
    assert messages(model) == [
        (
            "dynamo_single.E009",
            f"data cannot be unique: the values of a {attribute.__name__} cannot be compared by a key.",
        )
    ]


def test_djangos_own_field_checks_run_too() -> None:
    """Django checks these models as it checks any other, once."""
    declare("Choosy", ("CHOOSY#{c}", "#X"), c=models.IdAttribute(), d=models.UnicodeAttribute(choices=["x"]))
    assert [message.id for message in run_checks(app_configs=[apps.get_app_config("catalog")])] == ["fields.E005"]
    assert check_models() == []


def test_no_warning_of_an_automatic_id() -> None:
    """If a key does not fit its attributes, the model has Django's ``id``: E003 reports it, and W042 does not."""
    declare("Keyless", ("KEYLESS#{nothing}", "#X"), k=models.IdAttribute())
    found = run_checks(app_configs=[apps.get_app_config("catalog")])
    assert [message.id for message in found] == ["dynamo_single.E003"]


def test_models_are_checked_without_a_table(settings: Any) -> None:
    """The declarations determine how copies and children are found, also if the app has migrations."""
    settings.MIGRATION_MODULES = {"catalog": "tests.backend_project.shop.migrations"}
    with assert_requests([]):
        check_models([apps.get_app_config("catalog")])
