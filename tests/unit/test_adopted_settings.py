"""The settings of a table that the app does not own, and of its companion."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings

from dynamo_single import apps
from dynamo_single.conf import alias_of_own_models, own_alias, table_settings
from dynamo_single.exceptions import ConfigurationError

AWS = "dynamodb:///{}?region=eu-west-1"
OWN = AWS.format("own")


def settings_of(shop: Any, **others: Any) -> Any:
    """Return the context of these settings, with an own table as ``default``."""
    return override_settings(DYNAMO_SINGLE={"default": OWN, "shop": shop, **others})


def adopted(**changes: Any) -> dict[str, Any]:
    """Return the settings of an adopted table."""
    return {"TABLE_NAME": "shop", "REGION": "eu-west-1", "OWNS": False, "COMPANION": "default", **changes}


def test_items_in_a_companion_have_a_prefix() -> None:
    with settings_of(adopted()):
        found = table_settings("shop")

        assert (found.owns, found.companion, found.own_prefix) == (False, "default", "COMPANION#shop#")


def test_url_sets_owns_and_companion() -> None:
    with settings_of(AWS.format("shop") + "&owns=false&companion=default"):
        assert table_settings("shop").own_prefix == "COMPANION#shop#"


def test_own_table_has_no_prefix() -> None:
    with settings_of(adopted()):
        assert (table_settings().own_prefix, table_settings().keeps_own_items) == ("", True)


def test_table_without_companion_keeps_no_own_items() -> None:
    with settings_of(adopted(COMPANION="default", OWNS=False) | {"COMPANION": "default"}):
        assert table_settings("shop").keeps_own_items
    given = adopted()
    del given["COMPANION"]
    with settings_of(given):
        assert not table_settings("shop").keeps_own_items
        with pytest.raises(ConfigurationError, match=r"Set DYNAMO_SINGLE\['shop'\]\['COMPANION'\] to the alias"):
            _ = table_settings("shop").own_prefix


@pytest.mark.parametrize(
    ("shop", "others", "said"),
    [
        (adopted(OWNS=True), {}, "has no effect while OWNS is True"),
        (adopted(COMPANION="other"), {}, "no other alias of DYNAMO_SINGLE"),
        (adopted(COMPANION="shop"), {}, "no other alias of DYNAMO_SINGLE"),
        (adopted(REGION="eu-central-1"), {}, "must have the same endpoint and region"),
        (adopted(ENDPOINT_URL="http://127.0.0.1:8000"), {}, "must have the same endpoint and region"),
        (adopted(COMPANION="more"), {"more": adopted(TABLE_NAME="more")}, "whose OWNS is False"),
        (adopted(COMPANION="more"), {"more": AWS.format("more") + "&key=id"}, "have other names than the app's"),
        (adopted(), {"more": AWS.format("shop")}, "name the table 'shop'"),
        (adopted(), {"more": adopted()}, "name the table 'shop'"),
        (adopted(OWNS="no"), {}, "must be True or False"),
        (adopted(COMPANION=""), {}, "must be an alias of DYNAMO_SINGLE"),
    ],
)
def test_contradicting_settings_are_refused(shop: Any, others: Any, said: str) -> None:
    with settings_of(shop, **others), pytest.raises(ConfigurationError, match=said):
        table_settings("shop")


def test_alias_with_a_separator_has_no_companion() -> None:
    declared = {"default": OWN, "a#b": adopted()}
    with override_settings(DYNAMO_SINGLE=declared), pytest.raises(ConfigurationError, match="rename the alias"):
        table_settings("a#b")


def test_own_models_are_in_the_companion_of_default() -> None:
    with override_settings(DYNAMO_SINGLE={"default": adopted(COMPANION="own"), "own": OWN}):
        assert (own_alias(), alias_of_own_models(), own_alias("own")) == ("own", "own", "own")


def test_sessions_need_a_table_at_start() -> None:
    lone = adopted()
    del lone["COMPANION"]
    declared = {"default": lone, "own": OWN}
    with (
        override_settings(DYNAMO_SINGLE=declared, SESSION_ENGINE="dynamo_single.sessions"),
        pytest.raises(ConfigurationError, match="COMPANION"),
    ):
        apps._check_settings(())


def test_cache_in_an_adopted_table_is_refused() -> None:
    cache = {"default": {"BACKEND": "dynamo_single.cache.DynamoCache", "LOCATION": "shop"}}
    with settings_of(adopted()), override_settings(CACHES=cache), pytest.raises(ConfigurationError, match="CACHES"):
        apps._check_settings(())
