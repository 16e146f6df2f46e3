"""Find the condition of a write that a stored item breaks, for the error."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_single.orm.conditions.terms import Stored
from dynamo_single.orm.effects.base import BrokenCondition, CallerConditions, WriteConditions
from dynamo_single.orm.schema import registry
from tests.catalog.models import Firm


def _is(name: str) -> Stored:
    return Stored(name, "=", ({"S": "yes"},))


EVERY = WriteConditions(
    CallerConditions(_is("queried"), _is("demanded")), _is("computed"), _is("needed"), (_is("read"),)
)
NAMES = ("queried", "computed", "demanded", "needed", "read")


@pytest.mark.parametrize(
    ("broken", "met"),
    [
        ("gone", None),
        ("queried", ()),
        ("computed", NAMES[:1]),
        ("demanded", NAMES[:2]),
        ("needed", NAMES[:3]),
        ("as_read", NAMES[:4]),
    ],
)
def test_the_first_condition_that_is_broken_is_named(broken: BrokenCondition, met: tuple[str, ...] | None) -> None:
    """They are looked at in one order, whatever else is broken too."""
    found: Any = None if met is None else {"pk": {"S": "p"}, **{name: {"S": "yes"} for name in met}}
    assert EVERY.broken_by(found, registry.layout_of(Firm)) == broken


def test_terms_that_ask_for_nothing_are_false() -> None:
    """A plain write joins no condition of a caller's."""
    assert not CallerConditions()
    assert CallerConditions(queried=_is("x"))
    assert CallerConditions(demanded=_is("x"))
