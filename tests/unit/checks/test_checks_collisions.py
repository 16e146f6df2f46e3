"""E007 knows what an attribute promises of its values: the prefix of an identifier, and choices."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_single import models
from tests.unit.declaring import declare, forgotten, messages

RECORD = ("{own_id}", "#RECORD")


def found(*declared: Any) -> list[str]:
    """The collisions of the last of some models, each an attribute and a key."""
    with forgotten():
        made = [
            declare(f"Colliding{number}", key, own_id=attribute) for number, (attribute, key) in enumerate(declared)
        ]
        return [identifier for identifier, _ in messages(made[-1]) if identifier == "dynamo_single.E007"]


@pytest.mark.parametrize(
    ("one", "other", "collides"),
    [
        (models.IdAttribute(prefix="movie"), models.IdAttribute(prefix="shelf"), False),
        (models.IdAttribute(prefix="movie"), models.IdAttribute(prefix="movie"), True),
        (models.IdAttribute(prefix="movie"), models.IdAttribute(), True),
        (models.UnicodeAttribute(choices=[("a", "A")]), models.UnicodeAttribute(choices=[("b", "B")]), False),
        (
            models.UnicodeAttribute(choices=[("a", "A")]),
            models.UnicodeAttribute(choices=[("b", "B"), ("a", "A")]),
            True,
        ),
        (models.UnicodeAttribute(choices=[("a", "A")]), models.UnicodeAttribute(), True),
    ],
)
def test_what_is_known_of_values_tells_keys_apart(one: Any, other: Any, collides: bool) -> None:
    """Two record types under keys of one form collide only where their values could be the same."""
    assert bool(found((one, RECORD), (other, RECORD))) is collides


def test_a_child_of_users_stands_beside_their_logins() -> None:
    """A login's sort key begins with its kind, which is an address or a user name."""
    with forgotten():
        key = ("USER#{user_id}", "ORG#{org_id}")
        model = declare("OrgOfUser", key, user_id=models.UnicodeAttribute(), org_id=models.UnicodeAttribute())
        assert [identifier for identifier, _ in messages(model)] == []
