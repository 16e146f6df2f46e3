"""Fixtures that the suite skips for speed are available to tests that need them."""

from __future__ import annotations

import os

import pytest
from pytest_django import plugin

from tests.conftest import FOR_SOME


def test_a_test_has_no_fixture_for_a_mark_that_it_does_not_have(request: pytest.FixtureRequest) -> None:
    """This applies to the marks of pytest-django."""
    assert [name for name in FOR_SOME if not hasattr(plugin, name)] == []
    assert FOR_SOME.keys() & {*request.fixturenames} == set()


@pytest.mark.urls("tests.admin_project.urls")
def test_a_mark_brings_its_fixture_along(request: pytest.FixtureRequest) -> None:
    """And no other one."""
    assert FOR_SOME.keys() & {*request.fixturenames} == {"_django_set_urlconf"}


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use one of these fixtures."""
    monkeypatch.setenv("CHANGED_FOR_A_TEST", "1")


@pytest.mark.usefixtures("changed")
def test_a_fixture_gets_what_it_asks_for() -> None:
    """Though the test does not name it."""
    assert os.environ["CHANGED_FOR_A_TEST"] == "1"


def test_it_ends_with_the_test() -> None:
    """The changes of a fixture are undone."""
    assert "CHANGED_FOR_A_TEST" not in os.environ
