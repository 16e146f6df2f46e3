"""Fields that a package copies to a model of its own."""

from __future__ import annotations

from copy import copy

import pytest
from django.db import models

from dynamo_single.exceptions import ConfigurationError
from tests.catalog.models import Sample


def test_field_copied_to_sql_model_is_refused() -> None:
    """A package that keeps a history does this; the copy would take the attribute away from its own model."""
    field = Sample._meta.get_field("text")
    meta = type("Meta", (), {"app_label": "catalog"})
    with pytest.raises(ConfigurationError, match=r"SqlCopy is a model for an SQL database, and 'text' is a copy"):
        type("SqlCopy", (models.Model,), {"__module__": __name__, "Meta": meta, "text": copy(field)})
    assert Sample.text.field is field  # type: ignore[attr-defined]  # the attribute of the class
