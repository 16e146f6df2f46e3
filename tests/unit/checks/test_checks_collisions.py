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
    """Two record types with similar keys collide only if their values can be equal."""
    assert bool(found((one, RECORD), (other, RECORD))) is collides


def test_a_child_of_users_stands_beside_their_logins() -> None:
    """A login's sort key begins with its kind, which is an address or a user name."""
    with forgotten():
        key = ("USER#{user_id}", "ORG#{org_id}")
        model = declare("OrgOfUser", key, user_id=models.UnicodeAttribute(), org_id=models.UnicodeAttribute())
        assert [identifier for identifier, _ in messages(model)] == []


@pytest.mark.parametrize(("prefixes", "collides"), [(("firm", "branch"), False), (("firm", "firm"), True)])
def test_what_is_known_of_an_identifier_is_known_of_a_reference_to_it(
    prefixes: tuple[str, str], collides: bool
) -> None:
    """Children have the key of their parent, and do not collide with those of a parent with another prefix."""
    with forgotten():
        firm = declare("PrefixedFirm", ("F#{firm_id}", "#F"), firm_id=models.IdAttribute(prefix=prefixes[0]))
        branch = declare("PrefixedBranch", ("B#{branch_id}", "#B"), branch_id=models.IdAttribute(prefix=prefixes[1]))
        declare("OfFirm", ("X#{firm_id}", "#X"), firm=models.ReferenceAttribute(firm, on_delete=models.DO_NOTHING))
        last = declare(
            "OfBranch", ("X#{branch_id}", "#X"), branch=models.ReferenceAttribute(branch, on_delete=models.DO_NOTHING)
        )
        assert bool([identifier for identifier, _ in messages(last)]) is collides


@pytest.mark.parametrize("target", ["composite", "auth.Permission"])
def test_a_reference_to_a_key_of_which_nothing_is_known_meets_every_other(target: str) -> None:
    """An identity of several values, or a number in SQL, promises nothing."""
    with forgotten():
        attributes = {"one_id": models.IdAttribute(prefix="one"), "two_id": models.IdAttribute(prefix="two")}
        to = declare("OfTwo", ("O#{one_id}", "O#{two_id}"), **attributes) if target == "composite" else target
        declare("OfIt", ("X#{it_id}", "#X"), it=models.ReferenceAttribute(to, on_delete=models.DO_NOTHING))
        last = declare("Beside", ("X#{beside_id}", "#X"), beside_id=models.IdAttribute(prefix="beside"))
        assert [identifier for identifier, _ in messages(last)] == ["dynamo_single.E007"]
