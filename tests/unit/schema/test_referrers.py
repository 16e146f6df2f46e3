"""The references to all models are found together."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from django.db.models import CASCADE

from dynamo_single.orm.schema import references, registry
from dynamo_single.orm.schema.references import references_to
from tests.catalog.clubs import Club


def test_each_model_is_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding every model's references takes one pass over all models instead of one per model."""
    looked: Counter[Any] = Counter()
    inner = references.references

    def counting(holder: Any) -> list[Any]:
        looked[holder] += 1
        return inner(holder)

    monkeypatch.setattr(references, "references", counting)
    registry.invalidate()
    found = [references.referrers(model, CASCADE) for model in registry.all_models()]
    assert any(found)
    assert set(looked.values()) == {1}


def test_what_moves_along_is_looked_for_once() -> None:
    """A family is searched once for all of its objects, and again after a change of models."""
    found = references_to(Club)
    assert found
    assert references_to(Club) is found
    registry.invalidate()
    again = references_to(Club)
    assert again is not found
    assert again == found
