"""A test that fails, and prints its requests."""

import pytest

from dynamo_single.testing import Requests
from tests.isolated_project.stock import write


@pytest.mark.django_db
def test_a_failure(dynamo_requests: Requests) -> None:
    """Fail after one request."""
    write()
    assert len(dynamo_requests) == 0
