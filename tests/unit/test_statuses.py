"""APIs return one status for each error."""

from __future__ import annotations

import pytest
from django.db import NotSupportedError

from dynamo_single import exceptions
from dynamo_single.unavailable import status_of


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("NoAccessPattern", 400),
        ("ItemTooLarge", 400),
        ("CheckViolation", 400),
        ("InvalidCursor", 404),
        ("SourceChanged", 409),
        ("Throttled", 503),
        # It is also ``NotSupported``, but the query works after the backfill.
        ("KeyNotFilled", 503),
        # It is also ``InvalidValue``, but the request is not wrong.
        ("UnreadableItem", None),
        ("ConfigurationError", None),
    ],
)
def test_error_has_its_status(name: str, status: int | None) -> None:
    assert status_of(getattr(exceptions, name)) == status


def test_djangos_error_of_a_filter_after_a_union_is_a_bad_request() -> None:
    assert status_of(NotSupportedError) == 400
