"""Operations of a plain model enter no more of the app's code than today, as on the benchmarks' page."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from dynamo_single.table.redirects import UNGUARDED, VARIABLE
from tests import children

#: The most modules and calls of the first operations, which may become fewer.
BOUNDS = {
    "get(pk=), Memo": (12, 41),
    "filter(title=) to an object, Memo": (34, 164),
    "save() of one attribute, Memo": (14, 55),
    "save(update_fields=) of one, Memo": (15, 69),
    "update() of one key, Memo": (20, 72),
    "hard_delete() of one key, Memo": (10, 39),
    "soft delete, Memo": (18, 88),
    "create(), Memo": (18, 54),
}
#: The modules of the table that a request enters if DynamoDB responds normally.
PATH = {"flow", "lease", "table", "transport", "answers", "http.connections"}
#: Where features are that the model does not have.
NEVER_ENTERED = re.compile(r"rollout|shards|copies|copy_|counter|claim|unique|upgrades")
README = Path(__file__).resolve().parents[2] / "benchmarks" / "README.md"


@pytest.fixture(scope="module")
def counted() -> Any:
    """Return the command's counts in a separate process."""
    hidden = ("DJANGO_SETTINGS_MODULE", "TEST_TRANSPORT", "TEST_STRICT")
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    ended = children.run(["-m", "benchmarks.walks.run", "--json"], env={**env, VARIABLE: UNGUARDED})
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.mark.parametrize("operation", BOUNDS)
def test_plain_model_walks_no_further(counted: Any, operation: str) -> None:
    """Lower the limits if you make a walk shorter."""
    (walk,) = [walk for walk in counted["walks"] if walk["name"] == operation]
    modules, calls = BOUNDS[operation]
    entered = sorted(module["name"] for module in walk["modules"])
    assert len(entered) <= modules, entered
    assert walk["calls"] <= calls


@pytest.mark.parametrize("operation", BOUNDS)
def test_plain_answer_enters_few_modules_of_the_table(counted: Any, operation: str) -> None:
    """Retries, credentials, limits and AWS mocks are not entered."""
    (walk,) = [walk for walk in counted["walks"] if walk["name"] == operation]
    assert {module["name"] for module in walk["modules"] if f".{module['name']}".startswith(".table.")} == {
        f"table.{name}" for name in PATH
    }


@pytest.mark.parametrize("operation", BOUNDS)
def test_plain_model_enters_no_feature_it_lacks(counted: Any, operation: str) -> None:
    """Rollouts, shards, copies, counters, claims and upgrades are not entered."""
    (walk,) = [walk for walk in counted["walks"] if walk["name"] == operation]
    assert [module["name"] for module in walk["modules"] if NEVER_ENTERED.search(module["name"])] == []


def test_page_prints_what_the_command_counts(counted: Any) -> None:
    """``python -m benchmarks.walks.run --readme`` updates it."""
    if not (counted["python"].startswith("3.11.") and counted["django"].startswith("5.2")):
        pytest.skip("the page prints the counts of Python 3.11 and Django 5.2")
    assert counted["counts"] in README.read_text()
