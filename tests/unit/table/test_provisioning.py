"""Expected properties of a table, and reports of differences, without an engine."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from dynamo_single.conf import TableSettings, parse
from dynamo_single.conf.shapes import IndexShape, KeyAttribute, Shape, own_index
from dynamo_single.exceptions import NotSupported, TableMismatch
from dynamo_single.table import Table
from dynamo_single.table.schema import Observed, TableDefinition, differences, recreate, refuse


def indexes(*names: str) -> tuple[IndexShape, ...]:
    """Indexes whose keys have the app's own names."""
    return tuple(map(own_index, names))


SETTINGS = TableSettings(alias="default", table_name="single-table", shape=Shape(indexes=indexes("gs1")))
PROVISIONED = TableSettings(
    alias="default",
    table_name="single-table",
    shape=Shape(indexes=indexes("gs1")),
    billing_mode="PROVISIONED",
    read_capacity=5,
    write_capacity=6,
)
TTL = {"TimeToLiveStatus": "ENABLED", "AttributeName": "expiresAt"}
TABLE: dict[str, Any] = {
    "TableName": "single-table",
    "TableStatus": "ACTIVE",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "gs1pk", "gs1sk")],
    "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"},
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "gs1",
            "IndexStatus": "ACTIVE",
            "KeySchema": [
                {"AttributeName": "gs1pk", "KeyType": "HASH"},
                {"AttributeName": "gs1sk", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
}


def changed(**changes: Any) -> dict[str, Any]:
    """The right table, with parts of it replaced."""
    return {**deepcopy(TABLE), **changes}


def index(**changes: Any) -> dict[str, Any]:
    """The right index, with parts of it replaced."""
    return {**deepcopy(TABLE["GlobalSecondaryIndexes"][0]), **changes}


def test_create_asks_for_string_keys_and_full_indexes() -> None:
    """CreateTable names pk and sk and, for each index, its own pair of keys, all strings, projecting ALL."""
    request = TableDefinition(SETTINGS).create()
    assert request.operation == "CreateTable"
    assert request.params == {
        "KeySchema": TABLE["KeySchema"],
        "AttributeDefinitions": TABLE["AttributeDefinitions"],
        "BillingMode": "PAY_PER_REQUEST",
        "GlobalSecondaryIndexes": [
            {key: value for key, value in TABLE["GlobalSecondaryIndexes"][0].items() if key != "IndexStatus"}
        ],
    }


def test_provisioned_capacity_goes_to_the_table_and_to_each_index() -> None:
    """With PROVISIONED the table and its indexes get the capacity of the settings."""
    units = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 6}
    definition = TableDefinition(PROVISIONED)
    create = definition.create().params
    assert create["ProvisionedThroughput"] == units
    assert create["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"] == units
    update = definition.change_billing(TABLE).params
    assert update["GlobalSecondaryIndexUpdates"] == [
        {"Update": {"IndexName": "gs1", "ProvisionedThroughput": units}},
    ]


def test_a_table_without_indexes_is_created_without_the_parameter() -> None:
    """DynamoDB rejects an empty list of indexes, so the parameter is omitted."""
    settings = TableSettings(alias="default", table_name="single-table", shape=Shape(indexes=()))
    assert "GlobalSecondaryIndexes" not in TableDefinition(settings).create().params


def test_the_right_table_has_no_differences() -> None:
    """A table that matches the settings has no report."""
    assert differences(SETTINGS, Observed(TABLE, TTL)) == []
    assert differences(SETTINGS, Observed(TABLE, {**TTL, "TimeToLiveStatus": "ENABLING"})) == []


def test_a_missing_table_is_created_and_gets_its_time_to_live() -> None:
    """Both steps are automatic, the table first."""
    found = differences(SETTINGS, Observed(None, {}))
    assert [(each.kind, each.repair) for each in found] == [("table", "automatic"), ("time to live", "automatic")]


@pytest.mark.parametrize(
    ("table", "ttl", "kind", "repair", "told"),
    [
        (changed(GlobalSecondaryIndexes=[]), TTL, "index", "automatic", "The index 'gs1' is missing."),
        (
            changed(GlobalSecondaryIndexes=[index(Projection={"ProjectionType": "KEYS_ONLY"})]),
            TTL,
            "index",
            "impossible",
            "The index 'gs1' projects KEYS_ONLY, but ALL is required. Use another name in INDEXES, or delete the index",
        ),
        (
            changed(GlobalSecondaryIndexes=[index(KeySchema=[{"AttributeName": "gs1pk", "KeyType": "HASH"}])]),
            TTL,
            "index",
            "impossible",
            "The index 'gs1' has the keys 'gs1pk' (HASH, S), but the settings require 'gs1pk' (HASH, "
            "S) and 'gs1sk' (RANGE, S).",
        ),
        (
            changed(GlobalSecondaryIndexes=[index(), index(IndexName="old")]),
            TTL,
            "extra index",
            "unneeded",
            "The index 'old' is not in the settings. It was not changed.",
        ),
        (
            changed(BillingModeSummary={}),
            TTL,
            "billing mode",
            "automatic",
            "The billing mode is PROVISIONED, but the settings require PAY_PER_REQUEST.",
        ),
        (TABLE, {}, "time to live", "automatic", "Time to live on 'expiresAt' is not enabled."),
        (
            TABLE,
            {**TTL, "AttributeName": "ttl"},
            "time to live",
            "impossible",
            "Time to live is ENABLED on 'ttl', but 'expiresAt' is required. Disable it",
        ),
        (
            TABLE,
            {**TTL, "TimeToLiveStatus": "DISABLING"},
            "time to live",
            "impossible",
            "Time to live is DISABLING on 'expiresAt'",
        ),
        (
            changed(KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}]),
            {},
            "keys",
            "impossible",
            "but the settings require 'pk' (HASH, S) and 'sk' (RANGE, S). DynamoDB cannot change the "
            "keys of a table. Name another table in",
        ),
        (
            changed(AttributeDefinitions=[{"AttributeName": name, "AttributeType": "N"} for name in ("pk", "sk")]),
            TTL,
            "keys",
            "impossible",
            "Its keys are 'pk' (HASH, N) and 'sk' (RANGE, N)",
        ),
    ],
)
def test_each_difference_says_what_it_is_and_what_can_be_done(
    table: dict[str, Any], ttl: dict[str, Any], kind: str, repair: str, told: str
) -> None:
    """Each difference has one sentence, with the possible repair of dynamo_setup."""
    (found,) = differences(SETTINGS, Observed(table, ttl))
    assert (found.kind, found.repair) == (kind, repair)
    assert told in found.sentence


def test_capacity_that_auto_scaling_may_have_set_is_only_noted() -> None:
    """A capacity that differs from the settings is reported and kept."""
    table = changed(BillingModeSummary={}, ProvisionedThroughput={"ReadCapacityUnits": 50, "WriteCapacityUnits": 6})
    (found,) = differences(PROVISIONED, Observed(table, TTL))
    assert (found.kind, found.repair) == ("capacity", "unneeded")


def test_a_new_index_keeps_the_known_attribute_definitions() -> None:
    """Adding an index sends the definitions that are there and the two new ones."""
    settings = TableSettings(alias="default", table_name="single-table", shape=Shape(indexes=indexes("gs1", "gs2")))
    params = TableDefinition(settings).add_index("gs2", TABLE).params
    assert [each["AttributeName"] for each in params["AttributeDefinitions"]] == [
        "pk",
        "sk",
        "gs1pk",
        "gs1sk",
        "gs2pk",
        "gs2sk",
    ]
    assert [update["Create"]["IndexName"] for update in params["GlobalSecondaryIndexUpdates"]] == ["gs2"]


SINGLE = TableSettings(
    alias="default", table_name="single-table", shape=Shape(KeyAttribute("id"), None, indexes("gs1"), by_prefix=True)
)
SINGLE_TABLE = {
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("id", "gs1pk", "gs1sk")],
}


def test_a_table_whose_key_is_id_alone_is_made_and_found_right() -> None:
    params = TableDefinition(SINGLE).create().params
    assert {name: params[name] for name in SINGLE_TABLE} == SINGLE_TABLE
    assert differences(SINGLE, Observed(changed(**SINGLE_TABLE), TTL)) == []


@pytest.mark.parametrize(
    ("settings", "described", "other"),
    [(SETTINGS, changed(**SINGLE_TABLE), "id"), (SINGLE, changed(), "pk")],
    ids=["id alone", "a pair"],
)
def test_a_key_of_the_other_form_names_the_setting(settings: TableSettings, described: Any, other: str) -> None:
    (found,) = differences(settings, Observed(described, TTL))
    assert found.repair == "impossible"
    assert f"DYNAMO_SINGLE['default']['KEY'] = {other!r} accepts the table unchanged." in found.sentence


def test_any_other_key_does_not() -> None:
    keys = [{"AttributeName": "gs1pk", "KeyType": "HASH"}]
    (found,) = differences(SINGLE, Observed(changed(KeySchema=keys), TTL))
    assert "'KEY'" not in found.sentence


def test_what_cannot_be_repaired_is_refused_as_one_error() -> None:
    """TableMismatch holds every sentence that has no automatic remedy."""
    table = changed(GlobalSecondaryIndexes=[index(Projection={"ProjectionType": "KEYS_ONLY"})])
    found = differences(SETTINGS, Observed(table, {**TTL, "AttributeName": "ttl"}))
    with pytest.raises(TableMismatch) as caught:
        refuse(SETTINGS, found)
    assert "Nothing was changed" in str(caught.value)
    assert "projects KEYS_ONLY" in str(caught.value)
    assert "on 'ttl'" in str(caught.value)


def test_a_table_that_is_not_local_is_never_made_anew() -> None:
    """The test helper that deletes a table rejects a remote endpoint without a request."""
    with pytest.raises(NotSupported, match="is not deleted"):
        recreate(Table(SETTINGS))


OTHER = {
    "TABLE_NAME": "Thread",
    "ENDPOINT_URL": "http://127.0.0.1:8000",
    "PARTITION_KEY": "forum_name",
    "SORT_KEY": "subject",
    "TTL_ATTRIBUTE": "ttl",
    "INDEXES": {
        "views": {"name": "views-index", "partition": "views:N"},
        "recent": {"name": "last-post", "partition": "forum_name", "sort": "last_post", "local": True},
        "status": {"name": "by-status", "partition": "status", "sort": "subject", "projection": "KEYS_ONLY"},
        "author": {"name": "by-author", "partition": "author", "projection": ["title", "body"]},
    },
}


def described(params: dict[str, Any]) -> dict[str, Any]:
    """Return DynamoDB's description of a table that a request created."""
    active = [{**each, "IndexStatus": "ACTIVE"} for each in params["GlobalSecondaryIndexes"]]
    summary = {"BillingMode": params["BillingMode"]}
    return {**params, "TableStatus": "ACTIVE", "GlobalSecondaryIndexes": active, "BillingModeSummary": summary}


def test_create_follows_the_shape_of_the_settings() -> None:
    params = TableDefinition(parse("default", OTHER)).create().params
    assert [each["AttributeName"] for each in params["KeySchema"]] == ["forum_name", "subject"]
    assert {each["AttributeName"]: each["AttributeType"] for each in params["AttributeDefinitions"]} == {
        "forum_name": "S",
        "subject": "S",
        "views": "N",
        "last_post": "S",
        "status": "S",
        "author": "S",
    }
    assert {each["IndexName"]: each["Projection"] for each in params["GlobalSecondaryIndexes"]} == {
        "views-index": {"ProjectionType": "ALL"},
        "by-status": {"ProjectionType": "KEYS_ONLY"},
        "by-author": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["body", "title"]},
    }
    assert [each["IndexName"] for each in params["LocalSecondaryIndexes"]] == ["last-post"]


def test_a_created_table_fits_its_shape() -> None:
    settings = parse("default", OTHER)
    table = described(TableDefinition(settings).create().params)
    assert differences(settings, Observed(table, {**TTL, "AttributeName": "ttl"})) == []


@pytest.mark.parametrize(
    ("index", "changes", "told"),
    [
        ("recent", {"local": False}, "The index 'last-post' is local; set 'local': True in INDEXES."),
        ("status", {"projection": "ALL"}, "The index 'by-status' projects KEYS_ONLY, but ALL is required."),
        ("author", {"projection": ["body"]}, "projects INCLUDE 'body', 'title', but INCLUDE 'body' is required."),
        (
            "views",
            {"partition": "views"},
            "has the keys 'views' (HASH, N), but the settings require 'views' (HASH, S).",
        ),
    ],
)
def test_an_index_of_another_shape_is_reported(index: str, changes: dict[str, Any], told: str) -> None:
    table = described(TableDefinition(parse("default", OTHER)).create().params)
    indexes: dict[str, Any] = OTHER["INDEXES"]  # type: ignore[assignment]
    wanted = {**OTHER, "INDEXES": {**indexes, index: {**indexes[index], **changes}}}
    found = differences(parse("default", wanted), Observed(table, {**TTL, "AttributeName": "ttl"}))
    assert [told in each.sentence for each in found] == [True]


def test_a_missing_local_index_cannot_be_added() -> None:
    table = described(TableDefinition(parse("default", OTHER)).create().params)
    del table["LocalSecondaryIndexes"]
    (found,) = differences(parse("default", OTHER), Observed(table, {**TTL, "AttributeName": "ttl"}))
    assert (found.repair, found.subject) == ("impossible", "last-post")
