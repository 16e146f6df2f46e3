"""What the suite leaves out of each test to be fast is there for a test that asks for it."""

from __future__ import annotations

import pytest
from pytest_django import plugin

from tests.conftest import FOR_MARKS


def test_a_test_has_no_fixture_for_a_mark_that_it_does_not_have(request: pytest.FixtureRequest) -> None:
    """Of those that pytest-django has."""
    assert [name for name in FOR_MARKS if not hasattr(plugin, name)] == []
    assert FOR_MARKS.keys() & {*request.fixturenames} == set()


@pytest.mark.urls("tests.admin_project.urls")
def test_a_mark_brings_its_fixture_along(request: pytest.FixtureRequest) -> None:
    """And no other one."""
    assert FOR_MARKS.keys() & {*request.fixturenames} == {"_django_set_urlconf"}
