"""The translator of a table with different names agrees with the general one; other tables never use it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_single.conf import parse
from dynamo_single.conf.shapes import Shape
from dynamo_single.exceptions import NotSupported
from dynamo_single.table.shaped.declared import NO_MODELS, ModelNames
from dynamo_single.table.shaped.translator import RenamingTranslator, Translator, translator_for

INDEX = {"gs1": {"name": "GSI1", "partition": "GSI1PK", "sort": "GSI1SK"}}
NAMED: dict[str, Any] = {"PARTITION_KEY": "PK", "SORT_KEY": "SK", "TYPE_ATTRIBUTE": "_type", "INDEXES": INDEX}


def shape_of(**options: Any) -> Shape:
    """The shape in the settings of a table."""
    return parse("default", {"TABLE_NAME": "shaped", "REGION": "eu-central-1", **options}).shape


def made(models: ModelNames = NO_MODELS, **options: Any) -> Translator:
    """The translator of a table with these settings."""
    return translator_for(shape_of(**options), models, lambda table_name: None)


FAST, ANY = made(**NAMED), Translator(shape_of(**NAMED))
#: Items by the app's own names, as a table of these settings may hold them.
ITEMS = st.fixed_dictionaries(
    {"pk": st.just({"S": "a"}), "sk": st.just({"S": "b"})},
    optional={name: st.just({"S": name}) for name in ("gs1pk", "gs1sk", "itemType", "expiresAt", "title", "pks")},
)
NAMES = {"#a0": "title", "#a1": "pk", "#a2": "itemType", "#a3": "gs1pk"}
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "get": ("GetItem", {"Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}}),
    "get of some": (
        "GetItem",
        {
            "Key": {"pk": {"S": "a"}, "sk": {"S": "b"}},
            "ProjectionExpression": "#a0, #a2",
            "ExpressionAttributeNames": {"#a0": "title", "#a2": "itemType"},
        },
    ),
    "update": (
        "UpdateItem",
        {
            "Key": {"pk": {"S": "a"}, "sk": {"S": "b"}},
            "UpdateExpression": "SET #a0 = :v0, #a3 = :v1",
            "ConditionExpression": "attribute_exists(#a1) AND #a2 = :v2",
            "ExpressionAttributeNames": NAMES,
            "ExpressionAttributeValues": {":v0": {"S": "x"}, ":v1": {"S": "y"}, ":v2": {"S": "z"}},
        },
    ),
    "page of an index": (
        "Query",
        {
            "IndexName": "gs1",
            "KeyConditionExpression": "#a3 = :v0",
            "ExpressionAttributeNames": {"#a3": "gs1pk"},
            "ExpressionAttributeValues": {":v0": {"S": "x"}},
            "ExclusiveStartKey": {"pk": {"S": "a"}, "sk": {"S": "b"}, "gs1pk": {"S": "x"}, "gs1sk": {"S": "y"}},
        },
    ),
}


def test_names_that_differ_one_by_one_are_only_renamed() -> None:
    assert type(FAST) is RenamingTranslator


@given(ITEMS)
def test_item_is_written_as_by_every_translator(item: dict[str, Any]) -> None:
    assert FAST.written(item) == ANY.written(item)


@given(ITEMS)
def test_item_is_read_as_by_every_translator(item: dict[str, Any]) -> None:
    assert FAST.read(ANY.written(item)) == ANY.read(ANY.written(item)) == item


@pytest.mark.parametrize("name", REQUESTS)
def test_request_is_written_as_by_every_translator(name: str) -> None:
    assert FAST.request(*REQUESTS[name]) == ANY.request(*REQUESTS[name])


def test_update_has_the_names_of_the_table() -> None:
    _, params = FAST.request(*REQUESTS["update"])
    names = {"#a0": "title", "#a1": "PK", "#a2": "_type", "#a3": "GSI1PK"}
    assert (params["Key"], params["ExpressionAttributeNames"]) == ({"PK": {"S": "a"}, "SK": {"S": "b"}}, names)


@pytest.mark.parametrize("operation", ["GetItem", "UpdateItem"])
def test_given_request_and_response_stay_as_they_are(operation: str) -> None:
    """Callers retry the request, and listeners keep the response."""
    params, answer = {"Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}}, {"Item": {"PK": {"S": "a"}}}
    FAST.request(operation, params)
    FAST.response(operation, params, answer)
    assert (params["Key"].keys(), answer["Item"].keys()) == ({"pk", "sk"}, {"PK"})


@pytest.mark.parametrize(
    "options",
    [
        {"PARTITION_KEY": "sk", "SORT_KEY": "pk"},
        {**NAMED, "SORT_KEY": "SK:N"},
        {**NAMED, "SORT_KEY": None},
        {**NAMED, "TYPE_ATTRIBUTE": None},
        {**NAMED, "INDEXES": {"gs1": {"name": "inverted", "partition": "SK", "sort": "PK"}}},
        {**NAMED, "INDEXES": {"gs1": {"name": "GSI1", "partition": "GSI1PK", "sort": None}}},
    ],
    ids=["swapped names", "number", "no sort key", "no type", "inverted index", "index without a sort key"],
)
def test_other_shapes_are_not_only_renamed(options: dict[str, Any]) -> None:
    assert type(made(**options)) is Translator


@pytest.mark.parametrize("models", [ModelNames(declared=frozenset({"PK"})), ModelNames(key_only=frozenset({"a"}))])
def test_attributes_that_are_keys_are_not_only_renamed(models: ModelNames) -> None:
    assert type(made(models, **NAMED)) is Translator


def test_swapped_names_are_written_and_read() -> None:
    swapped, item = made(PARTITION_KEY="sk", SORT_KEY="pk"), {"pk": {"S": "a"}, "sk": {"S": "b"}}
    assert (swapped.written(item), swapped.read(swapped.written(item))) == (
        {"sk": {"S": "a"}, "pk": {"S": "b"}},
        item,
    )


@pytest.mark.parametrize("kind", [RenamingTranslator, Translator])
@pytest.mark.parametrize("name", ["pk", "sk", "itemType", "expiresAt", "gs1pk"])
def test_attribute_of_others_with_an_own_name_is_not_the_apps(kind: type[Translator], name: str) -> None:
    """Without its own expiry, an item does not expire by an attribute of another program, and the like."""
    translator = kind(shape_of(**NAMED, TTL_ATTRIBUTE="ttl"))
    assert translator.read({"title": {"S": "a"}, name: {"S": "theirs"}}) == {"title": {"S": "a"}}


def test_transaction_reads_each_table_by_its_own_names() -> None:
    """A table without a sort key, and its companion with the app's own names."""
    shaped = Translator(shape_of(SORT_KEY=None), others=lambda name: None if name == "companion" else shaped)
    claim = {"pk": {"S": "CLAIM#a"}, "sk": {"S": "CLAIM"}}
    params = {"TransactItems": [{"Get": {"TableName": name}} for name in ("shaped", "companion")]}
    answer = {"Responses": [{"Item": {"pk": {"S": "a"}}}, {"Item": claim}]}
    found = shaped.response("TransactGetItems", params, answer)["Responses"]
    assert found == [{"Item": {"pk": {"S": "a"}, "sk": {"S": "-"}}}, {"Item": claim}]


def test_placeholder_of_a_project_is_kept() -> None:
    """A name in an expression gets a placeholder that the project does not use."""
    params = {
        "FilterExpression": "itemType = :v0 AND #own_0 = :v1",
        "ExpressionAttributeNames": {"#own_0": "title"},
        "ExpressionAttributeValues": {":v0": {"S": "a"}, ":v1": {"S": "b"}},
    }
    _, found = FAST.request("Scan", params)
    assert found["FilterExpression"] == "#own_1 = :v0 AND #own_0 = :v1"
    assert found["ExpressionAttributeNames"] == {"#own_0": "title", "#own_1": "_type"}


def test_condition_that_excludes_a_type_is_refused_without_types() -> None:
    untyped = made(**{**NAMED, "TYPE_ATTRIBUTE": None})
    params = {
        "Key": {"pk": {"S": "a"}, "sk": {"S": "b"}},
        "ConditionExpression": "#a0 <> :v0",
        "ExpressionAttributeNames": {"#a0": "itemType"},
        "ExpressionAttributeValues": {":v0": {"S": "a"}},
    }
    with pytest.raises(NotSupported, match="have no type attribute"):
        untyped.request("DeleteItem", params)
