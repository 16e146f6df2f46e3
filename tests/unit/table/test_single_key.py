"""A key of two parts as one: every pair has an id of its own, a record's is its identifier, and requests go by it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from dynamo_single.conf import parse
from dynamo_single.conf.shapes import BY_ID
from dynamo_single.exceptions import ConfigurationError, InvalidValue, NotSupported, UnexpectedItem
from dynamo_single.orm.schema.keys import codecs
from dynamo_single.table.shaped import declared as declarations
from dynamo_single.table.shaped.joined import id_of_pair, pair_of_id, record_key
from dynamo_single.table.shaped.translator import Translator

#: Parts of keys with characters that have a meaning in joins.
PARTS = st.lists(st.sampled_from(["#", "|", "~", "~0", "~1", "-", "A", "b", "é", "\U0001f600"]), max_size=6).map(
    "".join
)
PREFIXES = st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,8}", fullmatch=True)
RECORD = "product-0e6b9a52-c8a4-11f0-9b4e-0242ac120002"
KEY = {"pk": {"S": RECORD}, "sk": {"S": "#PRODUCT"}}
CLAIM = {"pk": {"S": "UNIQUE#Goods#isbn#1"}, "sk": {"S": "#CLAIM"}}
CLAIMED = {"id": {"S": "#UNIQUE#Goods#isbn#1|#CLAIM"}}
OF_RECORD = {"id": {"S": RECORD}}
TRANSLATOR = Translator(BY_ID)


@given(PARTS, PARTS)
@example("#a|b", "#")
@example("a", "#")
@example("", "#")
@example("#", "|")
def test_every_pair_comes_back(partition: str, sort: str) -> None:
    assert pair_of_id(id_of_pair(partition, sort)) == (partition, sort)


@given(PARTS, PARTS, PARTS, PARTS)
def test_no_two_pairs_have_one_id(partition: str, sort: str, another: str, other: str) -> None:
    assume((partition, sort) != (another, other))
    assert id_of_pair(partition, sort) != id_of_pair(another, other)


@given(PREFIXES, st.uuids())
def test_a_record_has_its_identifier_and_nothing_else_has_it(prefix: str, made: uuid.UUID) -> None:
    identifier = f"{prefix}-{made}"
    assert id_of_pair(identifier, f"#{prefix.upper()}") == identifier
    assert pair_of_id(identifier) == (identifier, f"#{prefix.upper()}")
    assert id_of_pair(identifier, "#METADATA") != identifier or prefix.upper() == "METADATA"


@given(PREFIXES, st.from_regex(r"[A-Za-z0-9_]+", fullmatch=True))
def test_so_has_one_whose_identifier_has_a_word_after_its_prefix(prefix: str, word: str) -> None:
    assert id_of_pair(f"{prefix}-{word}", f"#{prefix.upper()}") == f"{prefix}-{word}"


#: Prefixes of records, each with the sort key of its records; one accepts all others.
SORTS = [("product-x", "#PRODUCT-X"), ("product", "#PRODUCT"), ("", "#THING")]


@pytest.fixture(scope="module", params=[SORTS, SORTS[:2]], ids=["any", "prefixes"])
def declared(request: Any) -> Iterator[list[tuple[str, str]]]:
    """Some records."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(declarations, "record_sorts", lambda: request.param)
        yield request.param


@given(identifier=st.text(min_size=1, max_size=20), prefix=st.sampled_from(["", "product-", "product-x-", "a-"]))
def test_every_identifier_is_the_id_of_a_record(declared: Any, identifier: str, prefix: str) -> None:
    found = prefix + identifier
    assume(not found.startswith("#"))
    key = record_key(found)
    assert (id_of_pair(*key), pair_of_id(found)) == (found, key)
    assert key[0] == codecs.escape(found)
    if prefix in ("product-", "product-x-"):
        assert key[1] == f"#{prefix[:-1].upper()}" or found.startswith("product-x-")


@given(PARTS, PARTS, PARTS, PARTS)
@example("a$_b", "#THING", "a b", "#THING")
def test_no_two_pairs_have_one_id_beside_records(
    declared: Any, partition: str, sort: str, another: str, other: str
) -> None:
    assert pair_of_id(id_of_pair(partition, sort)) == (partition, sort)
    assume((partition, sort) != (another, other))
    assert id_of_pair(partition, sort) != id_of_pair(another, other)


@given(st.text(min_size=1, max_size=20))
def test_an_id_of_anybody_is_read_as_the_key_that_writes_it_or_refused(identifier: str) -> None:
    try:
        key = pair_of_id(identifier)
    except UnexpectedItem:
        assert identifier.startswith("#")
        return
    assert id_of_pair(*key) == identifier


def test_an_id_that_looks_joined_and_is_not_is_refused() -> None:
    with pytest.raises(UnexpectedItem, match="Give it another key"):
        pair_of_id(f"#{RECORD}|#PRODUCT")


def test_a_key_that_is_too_long_as_one_is_refused() -> None:
    with pytest.raises(InvalidValue, match="2049 bytes"):
        id_of_pair("a" * 2038, "b" * 9)


def test_an_item_with_another_id_than_its_key_is_refused() -> None:
    with pytest.raises(InvalidValue, match="'x' cannot be the id"):
        TRANSLATOR.request("PutItem", {"Item": {"pk": {"S": "x"}, "sk": {"S": "#PRODUCT"}, "id": {"S": "x"}}})


@pytest.mark.parametrize(
    ("operation", "params", "expected"),
    [
        ("GetItem", {"Key": KEY}, {"Key": OF_RECORD}),
        ("DeleteItem", {"Key": CLAIM}, {"Key": CLAIMED}),
        ("PutItem", {"Item": {**KEY, **OF_RECORD, "n": {"N": "1"}}}, {"Item": {**OF_RECORD, "n": {"N": "1"}}}),
        ("Scan", {"ExclusiveStartKey": CLAIM}, {"ExclusiveStartKey": CLAIMED}),
        (
            "Query",
            {"IndexName": "gs1", "ExclusiveStartKey": {**KEY, "gs1pk": {"S": "a"}, "gs1sk": {"S": "b"}}},
            {"IndexName": "gs1", "ExclusiveStartKey": {**OF_RECORD, "gs1pk": {"S": "a"}, "gs1sk": {"S": "b"}}},
        ),
        ("BatchGetItem", {"RequestItems": {"t": {"Keys": [KEY]}}}, {"RequestItems": {"t": {"Keys": [OF_RECORD]}}}),
        (
            "BatchWriteItem",
            {"RequestItems": {"t": [{"PutRequest": {"Item": CLAIM}}, {"DeleteRequest": {"Key": KEY}}]}},
            {"RequestItems": {"t": [{"PutRequest": {"Item": CLAIMED}}, {"DeleteRequest": {"Key": OF_RECORD}}]}},
        ),
        (
            "TransactGetItems",
            {"TransactItems": [{"Get": {"TableName": "t", "Key": KEY}}]},
            {"TransactItems": [{"Get": {"TableName": "t", "Key": OF_RECORD}}]},
        ),
        ("DescribeTable", {}, {}),
    ],
)
def test_every_key_of_a_request_is_one(operation: str, params: Any, expected: Any) -> None:
    assert TRANSLATOR.request(operation, params) == (operation, expected)
    assert TRANSLATOR.request(operation, expected) == (operation, expected)


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("attribute_exists(#a0) AND #a1 = :v0", {"#a0": "pk", "#a1": "n"}),
        ("attribute_not_exists(#a0)", {"#a0": "pk"}),
    ],
)
def test_a_condition_on_the_key_is_one_on_the_id(expression: str, names: dict[str, str]) -> None:
    _, params = TRANSLATOR.request(
        "UpdateItem", {"Key": KEY, "ConditionExpression": expression, "ExpressionAttributeNames": names}
    )
    assert params["ConditionExpression"] == expression
    assert params["ExpressionAttributeNames"] == {**names, "#a0": "id"}


def test_a_place_inside_a_document_keeps_the_name_of_a_key() -> None:
    names, text = {"#a0": "pk", "#a1": "n"}, "#a1.#a0 = :v0 AND attribute_exists(#a0)"
    given = {"Key": KEY, "ConditionExpression": text, "ExpressionAttributeNames": names}
    _, params = TRANSLATOR.request("UpdateItem", given)
    assert params["ConditionExpression"] == "#a1.#a0_in = :v0 AND attribute_exists(#a0)"
    assert params["ExpressionAttributeNames"] == {"#a0": "id", "#a1": "n", "#a0_in": "pk"}


def test_a_name_without_placeholder_is_the_keys_too() -> None:
    names = {"ExpressionAttributeNames": {"#a0": "n"}}
    given = {"Key": KEY, "ConditionExpression": "attribute_not_exists(pk) AND a.pk = :pk AND #a0 = :sk", **names}
    _, params = TRANSLATOR.request("UpdateItem", given)
    assert params["ConditionExpression"] == "attribute_not_exists(#own_0) AND a.pk = :pk AND #a0 = :sk"
    assert params["ExpressionAttributeNames"] == {"#a0": "n", "#own_0": "id"}
    _, params = TRANSLATOR.request("GetItem", {"Key": KEY, "ProjectionExpression": "pk, sk, n"})
    assert params["ProjectionExpression"] == "#own_0, n"
    with pytest.raises(NotSupported, match="compare the attribute"):
        TRANSLATOR.request("Scan", {"FilterExpression": "pk = :pk"})


def test_what_is_read_of_an_item_has_the_id_once() -> None:
    names = {"#a0": "pk", "#a1": "sk", "#a2": "id", "#a3": "n"}
    given = {"ProjectionExpression": "#a0, #a1, #a2, #a3", "ExpressionAttributeNames": names}
    _, params = TRANSLATOR.request("GetItem", {"Key": KEY, **given})
    assert params["ProjectionExpression"] == "#a0, #a3"
    assert params["ExpressionAttributeNames"] == {"#a0": "id", "#a3": "n"}


def test_a_range_of_partitions_is_one_of_ids() -> None:
    given = {
        "FilterExpression": "#a0 = :v0 AND #a1 BETWEEN :v1 AND :v2",
        "ExpressionAttributeNames": {"#a0": "itemType", "#a1": "pk"},
        "ExpressionAttributeValues": {":v0": {"S": "x"}, ":v1": {"S": "UNIQUE#A|"}, ":v2": {"S": "UNIQUE#A|z"}},
    }
    _, params = TRANSLATOR.request("Scan", given)
    values = {":v0": {"S": "x"}, ":v1": {"S": "#UNIQUE#A~1"}, ":v2": {"S": "#UNIQUE#A~1z"}}
    assert params["FilterExpression"] == "#a0 = :v0 AND #a1 BETWEEN :v1 AND :v2"
    assert params["ExpressionAttributeNames"] == {"#a0": "itemType", "#a1": "id"}
    assert params["ExpressionAttributeValues"] == values


@pytest.mark.parametrize(
    "params",
    [
        {"FilterExpression": "#a0 = :v0"},
        {"ConditionExpression": "begins_with(#a0, :v0)"},
        {"UpdateExpression": "SET #a0 = :v0"},
    ],
)
@pytest.mark.parametrize("name", ["pk", "sk"])
def test_any_other_comparison_of_a_key_is_refused(params: Any, name: str) -> None:
    with pytest.raises(NotSupported, match="compare the attribute"):
        TRANSLATOR.request("Scan", {**params, "ExpressionAttributeNames": {"#a0": name}})


@pytest.mark.parametrize("condition", ["#p = :p", "#p = :p AND #s = :s", "#p = :p AND begins_with(#s, :s)"])
def test_a_query_of_a_partition_is_refused(condition: str) -> None:
    values = {":p": {"S": RECORD}, ":s": {"S": "#"}}
    with pytest.raises(NotSupported, match="no partitions to query"):
        TRANSLATOR.request("Query", {"KeyConditionExpression": condition, "ExpressionAttributeValues": values})


OF_MIGRATIONS = {
    "KeyConditionExpression": "#p = :p AND begins_with(#s, :s)",
    "ExpressionAttributeNames": {"#p": "pk", "#s": "sk"},
    "ExpressionAttributeValues": {":p": {"S": "MIGRATIONS"}, ":s": {"S": "WORK#"}},
    "ConsistentRead": True,
}


def test_but_for_that_of_migrations_which_is_a_scan() -> None:
    assert TRANSLATOR.request("Query", OF_MIGRATIONS) == (
        "Scan",
        {
            "FilterExpression": "begins_with(#joined, :joined)",
            "ExpressionAttributeNames": {"#joined": "id"},
            "ExpressionAttributeValues": {":joined": {"S": "#MIGRATIONS|WORK#"}},
            "ConsistentRead": True,
        },
    )


@pytest.mark.parametrize("more", [{"FilterExpression": "attribute_exists(holder)"}, {"ScanIndexForward": False}])
def test_which_takes_no_order_and_no_filter_that_would_be_lost(more: Any) -> None:
    with pytest.raises(NotSupported, match="no partitions to query"):
        TRANSLATOR.request("Query", {**OF_MIGRATIONS, **more})


@pytest.mark.parametrize(
    ("operation", "answer", "expected"),
    [
        ("GetItem", {"Item": OF_RECORD}, {"Item": {**KEY, **OF_RECORD}}),
        ("GetItem", {"Item": {"n": {"N": "1"}}}, {"Item": {"n": {"N": "1"}}}),
        ("Scan", {"Items": [CLAIMED], "LastEvaluatedKey": CLAIMED}, {"Items": [CLAIM], "LastEvaluatedKey": CLAIM}),
        ("UpdateItem", {"Attributes": OF_RECORD}, {"Attributes": {**KEY, **OF_RECORD}}),
        (
            "BatchGetItem",
            {"Responses": {"t": [CLAIMED]}, "UnprocessedKeys": {"t": {"Keys": [CLAIMED]}}},
            {"Responses": {"t": [CLAIM]}, "UnprocessedKeys": {"t": {"Keys": [CLAIM]}}},
        ),
        (
            "BatchWriteItem",
            {"UnprocessedItems": {"t": [{"DeleteRequest": {"Key": CLAIMED}}]}},
            {"UnprocessedItems": {"t": [{"DeleteRequest": {"Key": CLAIM}}]}},
        ),
        ("TransactGetItems", {"Responses": [{}, {"Item": CLAIMED}]}, {"Responses": [{}, {"Item": CLAIM}]}),
        (
            "TransactWriteItems",
            {"CancellationReasons": [{"Code": "None"}, {"Code": "x", "Item": CLAIMED}]},
            {"CancellationReasons": [{"Code": "None"}, {"Code": "x", "Item": CLAIM}]},
        ),
    ],
)
def test_every_item_of_an_answer_has_a_key_of_two_parts(operation: str, answer: Any, expected: Any) -> None:
    assert TRANSLATOR.response(operation, {}, answer) == expected


def test_the_setting_is_one_of_two() -> None:
    place = "dynamodb://127.0.0.1:8001/single-table?key="
    assert parse("default", f"{place}id").key == "id"
    with pytest.raises(ConfigurationError, match=r"\['KEY'\] must be 'pk' or 'id', not 'uuid'"):
        parse("default", f"{place}uuid")
