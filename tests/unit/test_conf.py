"""The settings: the value of each form, and the message of each mistake."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings

from dynamo_single import models
from dynamo_single.conf import CostSettings, TableSettings, aliases, cost_settings, parse, table_settings
from dynamo_single.conf.shapes import BY_ID, OWN, IndexShape, KeyAttribute, Shape, declared, own_index
from dynamo_single.exceptions import ConfigurationError
from tests.unit.declaring import declare, forgotten


def own(*names: str) -> Shape:
    """The shape of a table of the app's own with some indexes."""
    return Shape(indexes=tuple(map(own_index, names)))


LOCAL = "dynamodb://127.0.0.1:8000/single-table"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (LOCAL, {"endpoint_url": "http://127.0.0.1:8000"}),
        (f"{LOCAL}?region=eu-west-1", {"endpoint_url": "http://127.0.0.1:8000", "region": "eu-west-1"}),
        (f"{LOCAL}?indexes=gs1,by_name", {"endpoint_url": "http://127.0.0.1:8000", "shape": own("gs1", "by_name")}),
        (f"{LOCAL}?indexes=", {"endpoint_url": "http://127.0.0.1:8000", "shape": own()}),
        ("dynamodb:///single-table?region=eu-west-1", {"endpoint_url": None, "region": "eu-west-1"}),
        (
            "dynamodb://db.example.com/single-table?region=eu-west-1&tls=true",
            {"endpoint_url": "https://db.example.com", "region": "eu-west-1"},
        ),
        ("dynamodb://[::1]:8000/single-table", {"endpoint_url": "http://[::1]:8000"}),
        (
            f"{LOCAL}?read_timeout=1.5&connect_timeout=1&max_attempts=7&max_pool_connections=50",
            {
                "endpoint_url": "http://127.0.0.1:8000",
                "read_timeout": 1.5,
                "connect_timeout": 1.0,
                "max_attempts": 7,
                "max_pool_connections": 50,
            },
        ),
        (
            {
                "TABLE_NAME": "single-table",
                "REGION": "eu-west-1",
                "INDEXES": ["gs1"],
                "BILLING_MODE": "PROVISIONED",
                "READ_CAPACITY": 5,
                "WRITE_CAPACITY": 6,
            },
            {
                "region": "eu-west-1",
                "shape": own("gs1"),
                "billing_mode": "PROVISIONED",
                "read_capacity": 5,
                "write_capacity": 6,
            },
        ),
        (
            {"TABLE_NAME": "single-table", "ENDPOINT_URL": "http://localhost:8000/"},
            {"endpoint_url": "http://localhost:8000"},
        ),
    ],
)
def test_a_url_or_a_dict_gives_the_settings(value: Any, expected: dict[str, Any]) -> None:
    """Both forms lead to the same value, with defaults for missing keys."""
    assert parse("default", value) == TableSettings(alias="default", table_name="single-table", **expected)


@pytest.mark.parametrize(
    ("url", "local"),
    [
        (LOCAL, True),
        ("dynamodb://localhost:8000/single-table", True),
        ("dynamodb://[::1]:8000/single-table", True),
        ("dynamodb://127.8.9.1/single-table", True),
        ("dynamodb://192.0.2.1/single-table?region=us-east-1", False),
        ("dynamodb://localhost.example.com/single-table?region=us-east-1", False),
        ("dynamodb:///single-table?region=us-east-1", False),
    ],
)
def test_only_loopback_is_local(url: str, local: bool) -> None:
    """An endpoint is local if its host is this machine's loopback address."""
    assert parse("default", url).is_local is local


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (7, "DYNAMO_SINGLE['default'] must be a dynamodb:// URL or a dict, not int."),
        ("http://127.0.0.1:8000/single-table", "the URL must begin with dynamodb://, not with http."),
        ("", "the URL must begin with dynamodb://, but it is empty."),
        ("dynamodb://127.0.0.1:80000/single-table", "its host or its port is malformed."),
        ("dynamodb://127.0.0.1:x/single-table", "its host or its port is malformed."),
        ("dynamodb://:8000/single-table", "a port or tls needs a host before it."),
        ("dynamodb:///single-table?region=us-east-1&tls=true", "a port or tls needs a host before it."),
        (f"{LOCAL}#gs1", "the URL has a part after '#'."),
        (f"{LOCAL}?zone=a", "unknown query parameter 'zone'; allowed are billing_mode, companion, connect_timeout,"),
        (f"{LOCAL}?REGION=us-east-1", "unknown query parameter 'REGION'"),
        (f"{LOCAL}?table_name=other", "unknown query parameter 'table_name'"),
        (f"{LOCAL}?region=a&region=b", "the URL gives 'region' twice."),
        (f"{LOCAL}?tls=yes", "tls must be true or false, not 'yes'."),
        (
            "dynamodb://127.0.0.1:8000/",
            "the URL does not name a table: the part after // is the host. The form is dynamodb:",
        ),
        ("dynamodb://orders?region=eu-west-1", "the URL does not name a table: the part after // is the host."),
        ("dynamodb://127.0.0.1:8000/x", "DYNAMO_SINGLE['default']['TABLE_NAME'] must be 3 to 255 letters"),
        ("dynamodb://127.0.0.1:8000/a/b", "DYNAMO_SINGLE['default']['TABLE_NAME'] must be"),
        (
            "dynamodb:///single-table",
            "the URL does not name a region, which is required for every endpoint other than a local engine. The",
        ),
        (
            "dynamodb://db:8000/single-table",
            "the URL does not name a region, which is required for every endpoint other than",
        ),
        ("dynamodb://a db:8000/single-table?region=us-east-1", "['ENDPOINT_URL'] must be None or an address"),
        ({"TABLE_NAME": "single-table"}, "DYNAMO_SINGLE['default']['REGION'] is missing"),
        (f"{LOCAL}?region=", "DYNAMO_SINGLE['default']['REGION'] must be an AWS region"),
        (f"{LOCAL}?read_timeout=soon", "['READ_TIMEOUT'] must be a number of seconds above 0, not 'soon'."),
        (f"{LOCAL}?max_attempts=0", "['MAX_ATTEMPTS'] must be a whole number of at least 1, not 0."),
        (f"{LOCAL}?indexes=g", "['INDEXES'] must be a list of at most 20 different names"),
        ({}, "DYNAMO_SINGLE['default']['TABLE_NAME'] is missing"),
        ({"TABLE_NAME": "single-table", "TABEL": 1}, "DYNAMO_SINGLE['default']['TABEL'] is not a known key; allowed"),
        ({"TABLE_NAME": "no space"}, "['TABLE_NAME'] must be 3 to 255"),
        ({"TABLE_NAME": "single-table", "ENDPOINT_URL": "127.0.0.1:8000"}, "['ENDPOINT_URL'] must be None or"),
        ({"TABLE_NAME": "single-table", "ENDPOINT_URL": "http://127.0.0.1:8000/?x=1"}, "['ENDPOINT_URL'] must be"),
        ({"TABLE_NAME": "single-table", "INDEXES": "gs1"}, "['INDEXES'] must be a list"),
        ({"TABLE_NAME": "single-table", "INDEXES": ["gs1", "gs1"]}, "['INDEXES'] must be a list"),
        ({"TABLE_NAME": "single-table", "INDEXES": [["gs1"]]}, "['INDEXES'] must be a list"),
        ({"TABLE_NAME": "single-table", "INDEXES": ["gs-1"]}, "['INDEXES'] must be a list"),
        ({"TABLE_NAME": "single-table", "BILLING_MODE": "CHEAP"}, "['BILLING_MODE'] must be 'PAY_PER_REQUEST' or"),
        ({"TABLE_NAME": "single-table", "MAX_ATTEMPTS": True}, "['MAX_ATTEMPTS'] must be"),
        ({"TABLE_NAME": "single-table", "READ_TIMEOUT": -1}, "['READ_TIMEOUT'] must be"),
        ({"TABLE_NAME": "single-table", "READ_TIMEOUT": float("inf")}, "['READ_TIMEOUT'] must be"),
        (f"{LOCAL}?billing_mode=PROVISIONED&read_capacity=5", "['WRITE_CAPACITY'] is missing"),
        (f"{LOCAL}?read_capacity=5", "['READ_CAPACITY'] has no effect with BILLING_MODE 'PAY_PER_REQUEST'"),
    ],
)
def test_a_wrong_value_is_told_by_its_name(value: Any, told: str) -> None:
    """Every mistake raises a ConfigurationError that names the setting and its valid values."""
    with pytest.raises(ConfigurationError) as caught:
        parse("default", value)
    assert told in str(caught.value)
    assert "DYNAMO_SINGLE['default']" in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [
        "dynamodb://someone:hidden-word@127.0.0.1:8000/single-table",
        {"TABLE_NAME": "single-table", "ENDPOINT_URL": "http://someone:hidden-word@127.0.0.1:8000"},
    ],
)
def test_credentials_in_an_address_are_refused_and_not_repeated(value: Any) -> None:
    """A secret in a URL raises an error that does not contain it."""
    with pytest.raises(ConfigurationError, match="credentials") as caught:
        parse("default", value)
    assert "hidden-word" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "The setting DYNAMO_SINGLE is missing or empty"),
        ({}, "The setting DYNAMO_SINGLE is missing or empty"),
        (LOCAL, "DYNAMO_SINGLE must be a dict from alias to URL or dict"),
        ({"other": LOCAL}, "as long as Meta.table names no other; it declares 'other'. Add it, or name one of these."),
    ],
)
def test_the_setting_itself_may_be_wrong(value: Any, told: str) -> None:
    """The error for a missing setting or alias contains a valid value, or the existing aliases."""
    with override_settings(DYNAMO_SINGLE=value), pytest.raises(ConfigurationError) as caught:
        table_settings()
    assert told in str(caught.value)


def test_an_alias_that_is_missing_is_reported_with_the_models_that_name_it() -> None:
    """The first three of them, so that a large project has one line too."""
    with forgotten(), override_settings(DYNAMO_SINGLE={"default": LOCAL}):
        for number in range(1, 5):
            key, options = ("P#{sku}", "#METADATA"), {"table": "products", "item_type": f"Product{number}"}
            declare(f"Product{number}", key, options=options, sku=models.UnicodeAttribute())
            with pytest.raises(ConfigurationError) as caught:
                table_settings("products")
            if number == 1:
                assert str(caught.value) == (
                    "DYNAMO_SINGLE has no alias 'products', which Meta.table of catalog.Product1 names; it declares "
                    "'default'. Add it, or name one of these."
                )
    assert "Meta.table of catalog.Product1, catalog.Product2, catalog.Product3 and 1 more names" in str(caught.value)


def test_settings_are_read_once_and_again_after_a_change() -> None:
    """The value is cached, and a test that overrides the setting sees its own."""
    with override_settings(DYNAMO_SINGLE={"default": LOCAL, "other": f"{LOCAL}-2"}):
        assert table_settings() is table_settings()
        assert aliases() == ("default", "other")
        assert table_settings("other").table_name == "single-table-2"
        with override_settings(DYNAMO_SINGLE={"default": f"{LOCAL}-3"}):
            assert table_settings().table_name == "single-table-3"
        assert table_settings().table_name == "single-table"


def test_the_thresholds_of_costs_have_defaults() -> None:
    """Without ``DYNAMO_SINGLE_COSTS`` the defaults hold; a value replaces its own only."""
    assert cost_settings() == CostSettings()
    with override_settings(DYNAMO_SINGLE_COSTS={"WARN_REQUESTS": None, "WARN_UNITS": 0.5, "SHOW_KEYS": False}):
        assert cost_settings() == CostSettings(warn_requests=None, warn_units=0.5, show_keys=False)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "DYNAMO_SINGLE_COSTS must be a dict, not list."),
        (
            {"WARN": 1},
            "DYNAMO_SINGLE_COSTS['WARN'] is not a known key; allowed are WARN_REQUESTS, WARN_UNITS, WARN_MILLISECONDS, "
            "WARN_REPEATED, WARN_SINGLE_READS, WARN_READS, MAX_READS, SHOW_KEYS, ADMIN_PANEL.",
        ),
        (
            {"WARN_REQUESTS": 0},
            "DYNAMO_SINGLE_COSTS['WARN_REQUESTS'] must be a whole number of at least 1, or None, not 0.",
        ),
        ({"WARN_UNITS": -1}, "DYNAMO_SINGLE_COSTS['WARN_UNITS'] must be a number above 0, or None, not -1."),
        ({"WARN_MILLISECONDS": "1"}, "['WARN_MILLISECONDS'] must be a number above 0, or None, not '1'."),
        ({"WARN_REPEATED": 1}, "['WARN_REPEATED'] must be a whole number of at least 2, or None, not 1."),
        ({"WARN_SINGLE_READS": True}, "['WARN_SINGLE_READS'] must be a whole number of at least 1, or None, not True."),
        ({"SHOW_KEYS": 1}, "DYNAMO_SINGLE_COSTS['SHOW_KEYS'] must be True or False, not 1."),
    ],
)
def test_wrong_thresholds_of_costs_name_the_key(value: Any, message: str) -> None:
    """The error names the setting and its valid values."""
    with override_settings(DYNAMO_SINGLE_COSTS=value), pytest.raises(ConfigurationError) as caught:
        cost_settings()
    assert message in str(caught.value)


IN_AWS = {"TABLE_NAME": "shop", "REGION": "eu-west-1"}
THREAD = {
    "PARTITION_KEY": "forum_name",
    "SORT_KEY": "subject",
    "TYPE_ATTRIBUTE": None,
    "TTL_ATTRIBUTE": "ttl",
    "RAW_KEYS": True,
    "FOREIGN": "skip",
    "INDEXES": {
        "gs1": {},
        "views": {"name": "views-index", "partition": "views:N"},
        "recent": {"name": "last-post", "partition": "forum_name", "sort": "last_post", "local": True},
        "status": {"partition": "status", "sort": "subject", "projection": ["title", "body"]},
    },
}
THREAD_SHAPE = Shape(
    partition=KeyAttribute("forum_name"),
    sort=KeyAttribute("subject"),
    indexes=(
        own_index("gs1"),
        IndexShape("views", "views-index", KeyAttribute("views", "N"), None),
        IndexShape("recent", "last-post", KeyAttribute("forum_name"), KeyAttribute("last_post"), is_local=True),
        IndexShape("status", "status", KeyAttribute("status"), KeyAttribute("subject"), ("body", "title")),
    ),
    type_attribute=None,
    ttl_attribute="ttl",
    raw_keys=True,
    foreign="skip",
)


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        (IN_AWS, OWN),
        ({**IN_AWS, "KEY": "id"}, BY_ID),
        ({**IN_AWS, **THREAD}, THREAD_SHAPE),
        ({**IN_AWS, "SORT_KEY": None}, Shape(sort=None)),
        (f"{LOCAL}?partition_key=PK&sort_key=number:N&ttl_attribute=ttl", Shape(
            partition=KeyAttribute("PK"), sort=KeyAttribute("number", "N"), ttl_attribute="ttl"
        )),
        (f"{LOCAL}?sort_key=&type_attribute=&raw_keys=true", Shape(sort=None, type_attribute=None, raw_keys=True)),
    ],
)  # fmt: skip
def test_settings_give_a_shape(value: Any, shape: Shape) -> None:
    assert parse("default", value).shape == shape


@pytest.mark.parametrize("shape", [OWN, BY_ID, THREAD_SHAPE, Shape(sort=None)])
def test_a_shape_is_read_from_what_it_declares(shape: Shape) -> None:
    assert parse("default", {**IN_AWS, **declared(shape)}).shape == shape


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"PARTITION_KEY": ""}, "['PARTITION_KEY'] must be the name of an attribute, with ':N' or ':B'"),
        ({"KEY": "id", "PARTITION_KEY": "PK"}, "['PARTITION_KEY'] contradicts"),
        ({"KEY": "id", "RAW_KEYS": True}, "['RAW_KEYS'] contradicts"),
        ({"SORT_KEY": "pk"}, "['SORT_KEY'] is the partition key"),
        ({"TYPE_ATTRIBUTE": "sk"}, "['TYPE_ATTRIBUTE'] is 'sk', which is a key of the table"),
        ({"TTL_ATTRIBUTE": "itemType"}, "['TTL_ATTRIBUTE'] is the TYPE_ATTRIBUTE, too"),
        ({"INDEXES": {"gs1": {"hash": "a"}}}, "['INDEXES'] must be a list of at most 20"),
        ({"INDEXES": {"gs1": {"name": "no space"}}}, "['INDEXES'] must be a list of at most 20"),
        ({"INDEXES": {"gs1": {"projection": "SOME"}}}, "['INDEXES'] must be a list of at most 20"),
        ({"INDEXES": {"gs1": {"partition": "sk:N"}}}, "['INDEXES'] gives 'sk' the type N, and another key the type S"),
        ({"INDEXES": {"gs1": {"partition": "other", "sort": "sk", "local": True}}}, "is local, but DynamoDB's local"),
        ({"INDEXES": {"gs1": {"name": "one-"}, "gs2": {"name": "one-"}}}, "['INDEXES'] names one index twice"),
        ({"FOREIGN": "ignore"}, "['FOREIGN'] must be 'refuse' or 'skip'"),
    ],
)
def test_a_wrong_shape_names_the_setting(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse("default", {**IN_AWS, **options})
    assert told in str(caught.value)
