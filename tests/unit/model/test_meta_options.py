"""Options that DynamoDB cannot support raise an error at the declaration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import models as django_models

from dynamo_single import models
from dynamo_single.exceptions import ConfigurationError
from tests.unit.declaring import declare, forgotten


@pytest.fixture(autouse=True)
def forget_models() -> Iterator[None]:
    """Remove the models that a test declares."""
    with forgotten():
        yield


def with_options(options: dict[str, Any]) -> Any:
    """A model with these options."""
    return declare("Strict", ("STRICT#{s}", "#X"), s=models.IdAttribute(), options=options)


OPTIONS = [
    ({"indexes": [django_models.Index(fields=["s"], name="quick")]}, r"models.IndexKey\("),
    ({"order_with_respect_to": "s"}, "name it in a sort key"),
    ({"db_tablespace": "fast"}, "all models share one table"),
    ({"db_table_comment": "things"}, "all models share one table"),
    ({"required_db_features": ["x"]}, "leave it out"),
    ({"required_db_vendor": "sqlite"}, "leave it out"),
    ({"select_on_save": True}, "save\\(\\) never reads first"),
]


@pytest.mark.parametrize(("options", "way_out"), OPTIONS, ids=lambda value: next(iter(value)))
def test_an_option_for_sql_is_refused(options: dict[str, Any], way_out: str) -> None:
    """The message names the option and its alternative."""
    (option,) = options
    with pytest.raises(ConfigurationError, match=rf"Strict.Meta.{option} is for SQL databases.* Instead: .*{way_out}"):
        with_options(options)


@pytest.mark.parametrize("options", [each for each, _ in OPTIONS], ids=lambda value: next(iter(value)))
def test_an_inherited_option_is_refused_too(options: dict[str, Any]) -> None:
    """This includes the model's own ``Meta`` and a base's."""
    base = type("Common", (), options)
    meta = type("Meta", (base,), {"app_label": "catalog", "abstract": True})
    with pytest.raises(ConfigurationError, match="is for SQL databases"):
        type(models.Model)("Strict", (models.Model,), {"__module__": __name__, "Meta": meta})


def test_an_option_that_is_switched_off_is_not_refused() -> None:
    """An empty value has no effect."""
    assert with_options({"unique_together": (), "constraints": [], "indexes": []})


def test_a_base_manager_of_ones_own_is_refused() -> None:
    """Relations must find every referenced object, so their manager is fixed."""
    with pytest.raises(ConfigurationError, match=r"Meta.base_manager_name cannot be set: .* hides no object"):
        with_options({"base_manager_name": "objects"})


def test_an_index_for_a_trash_that_is_not_there() -> None:
    """``trash_index`` belongs to models with soft delete."""
    with pytest.raises(ConfigurationError, match=r"trash_index has no effect: .* models.SoftDeleteModel"):
        with_options({"trash_index": "gs1"})


@pytest.mark.parametrize(
    "on_delete",
    [django_models.RESTRICT, django_models.SET(None)],
)
def test_what_is_not_done_on_deletion_is_refused(on_delete: Any) -> None:
    """An unsupported ``on_delete`` raises an error at the declaration."""
    with pytest.raises(ConfigurationError, match=r"on_delete=\w+ cannot be kept. It can be models.CASCADE, "):
        models.ReferenceAttribute("catalog.Firm", on_delete=on_delete)


def test_doing_nothing_on_deletion_can_be_said() -> None:
    """Django's name for the default is accepted."""
    assert models.ReferenceAttribute("catalog.Firm", on_delete=django_models.DO_NOTHING)
