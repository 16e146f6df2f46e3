"""Arguments of an operation on a stored list or set."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db.models import F

from dynamo_single import models


@pytest.mark.parametrize("operation", [models.Append, models.Prepend, models.AddToSet, models.RemoveFromSet])
def test_expression_is_refused(operation: Callable[[object], object]) -> None:
    """An expression has items without an end, so that a tuple of it would take all memory."""
    with pytest.raises(TypeError, match="takes a list of values, not F"):
        operation(F("tags"))
