"""The app's own items of every kind are never in a table that the app does not own."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps

from dynamo_single import models
from dynamo_single.contrib.doctor.checks.items import OTHER_TYPES
from dynamo_single.table import Table
from tests import children

ROOT = Path(__file__).resolve().parents[3]
#: The app's own models. A session of an earlier version is read, but never written.
OWN_MODELS = {"AdminJob", "AdminLogEntry", "HashedSession", "TableSample"}
FORMER = {"Session"}


@pytest.fixture(scope="module")
def written(engine: Table) -> dict[str, set[str]]:
    """The types of the items that a project has written, by table."""
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.adopted_project.settings",
        "DYNAMO_PLACE": str(engine.settings.endpoint_url).removeprefix("http://"),
        "PYTHONPATH": str(ROOT),
    }
    done = children.run(["-m", "tests.adopted_project.run"], env=environment)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["answer"] == 302
    found: dict[str, set[str]] = {"own": set(), "theirs": set()}
    for table, item_type in result["written"]:
        found[table].add(item_type)
    return found


def test_adopted_table_has_only_items_of_models(written: Any) -> None:
    assert written["theirs"] == {"Company", "User", "Login", "key USER"}


def test_companion_has_every_other_kind_of_item(written: Any) -> None:
    types = {each for each in written["own"] if not each.startswith("key ")}

    assert types == OTHER_TYPES | OWN_MODELS


def test_every_model_of_the_app_is_known_here() -> None:
    """``tests.adopted_project.run`` must also write a new model of the app."""
    own = {each._options.item_type for each in apps.get_app_config("dynamo_single").get_models() if is_ours(each)}

    assert own == OWN_MODELS | FORMER


def is_ours(model: Any) -> bool:
    """Return whether a model is stored in DynamoDB."""
    return issubclass(model, models.Model)
