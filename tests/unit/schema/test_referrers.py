"""Which references lead to a model is known of all models at once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from django.db.models import CASCADE

from dynamo_single.orm.schema import referrers, registry


def test_each_model_is_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking for every model's referrers costs as many looks as there are models, not their square."""
    looked: Counter[Any] = Counter()
    inner = referrers.references

    def counting(holder: Any) -> list[Any]:
        looked[holder] += 1
        return inner(holder)

    monkeypatch.setattr(referrers, "references", counting)
    registry.changed()
    found = [referrers.referrers(model, CASCADE) for model in registry.all_models()]
    assert any(found)
    assert set(looked.values()) == {1}
