"""Fixtures for tests of the API."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient


@pytest.fixture
def client(settings: Any) -> APIClient:
    """A client of the API; errors are responses, as in production."""
    settings.REST_FRAMEWORK = {
        "EXCEPTION_HANDLER": "dynamo_single.contrib.rest_framework.errors.exception_handler",
    }
    made = APIClient(raise_request_exception=False)
    made.default_format = "json"
    return made
