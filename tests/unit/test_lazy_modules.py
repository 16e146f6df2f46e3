"""Modules that are imported at their first use."""

from __future__ import annotations

import sys

import pytest

from dynamo_single.lazy_modules import LazyModule


def test_a_module_is_imported_by_the_first_attribute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Naming it imports nothing."""
    module = LazyModule("colorsys")
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    assert "colorsys" not in sys.modules
    assert module.rgb_to_hsv(0, 0, 0) == (0.0, 0.0, 0)
    assert "colorsys" in sys.modules


def test_attributes_are_those_of_the_module_at_that_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The attribute includes a test's replacement."""
    monkeypatch.setattr("colorsys.ONE_THIRD", "ours")
    assert LazyModule("colorsys").ONE_THIRD == "ours"


def test_an_attribute_that_is_missing_is_the_modules_error() -> None:
    """The message names the module."""
    with pytest.raises(AttributeError, match="module 'colorsys' has no attribute 'nothing'"):
        _ = LazyModule("colorsys").nothing
