"""The keys of claims: no two rules and no two tuples of values share one."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from django.db.models import Q, UniqueConstraint
from hypothesis import given
from hypothesis import strategies as st

from dynamo_single import models
from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.items.unique_rules import Rule, claim_keys, claim_prefix, rules_of
from tests.catalog.models import Member
from tests.catalog.seats import Seat
from tests.unit.declaring import declare, forgotten, messages

PARTS = st.text(alphabet="ab#$,~ \u00e9e\u0301\x00", min_size=1, max_size=4)
NAMES = st.lists(PARTS, min_size=1, max_size=3, unique=True)


def rule(names: list[str], constraint: str) -> Rule:
    """A rule over text attributes of these stored names, with a condition if it has a name."""
    attributes: list[Any] = []
    for name in names:
        attribute = models.UnicodeAttribute(attr_name=name)
        attribute.name = name
        attributes.append(attribute)
    declared: Any = models_constraint(constraint) if constraint else None
    condition: Any = rules_of(Seat)[1].condition if constraint else rules_of(Seat)[0].condition
    return Rule.of(Seat, tuple(attributes), condition, declared)


def models_constraint(name: str) -> Any:
    """A constraint of this name."""
    return UniqueConstraint(fields=["x"], condition=Q(x=1), name=name)


SPELLED = st.one_of(st.just(""), PARTS)


@given(NAMES, NAMES, SPELLED, SPELLED, st.data())
def test_claims_are_shared_by_equal_values_of_one_rule_only(
    one: list[str], other: list[str], first: str, second: str, data: st.DataObject
) -> None:
    """Equal keys mean the same attributes, the same constraint, and values that are equal in Unicode NFC."""
    values = [data.draw(st.lists(PARTS, min_size=len(each), max_size=len(each))) for each in (one, other)]
    keys = [rule(one, first).key(values[0]), rule(other, second).key(values[1])]
    normal = [tuple(unicodedata.normalize("NFC", value) for value in each) for each in values]
    assert (keys[0] == keys[1]) == ((one, first, normal[0]) == (other, second, normal[1]))


def test_the_claim_of_one_attribute_is_as_it_always_was() -> None:
    """Stored claims keep their keys."""
    (email, badge) = rules_of(Member)
    assert email.key(("A@example.org",)) == ("UNIQUE#Member#email#a@example.org", "#CLAIM")
    assert badge.key((7,)) == ("UNIQUE#Member#badge#p5007", "#CLAIM")


def test_what_is_declared_twice_is_one_rule() -> None:
    """Two claims with one key cannot be in one transaction."""
    assert [(each.fields, each.name) for each in rules_of(Seat)] == [
        (("hall", "row"), ""),
        (("guest",), "one_seat_each"),
        (("hall", "code"), ""),
    ]


def test_what_a_rule_depends_on() -> None:
    """The rule depends on its attributes and those of its condition, by stored name."""
    assert [sorted(each.stored_names) for each in rules_of(Seat)] == [
        ["hallName", "row"],
        ["guest", "status"],
        ["code", "hallName"],
    ]


def test_a_claim_has_to_fit_into_a_key() -> None:
    """The error names the attributes."""
    with pytest.raises(InvalidValue, match="these hall, code together cannot be unique, since that takes a key"):
        rules_of(Seat)[2].key(("a" * 1500, "b" * 1500))


def test_what_the_primary_key_keeps_unique_needs_no_claim() -> None:
    """This includes the identity itself, and all sets of attributes that contain it."""
    with forgotten():
        model = declare(
            "Pair",
            ("PAIR#{a}", "{b}"),
            a=models.UnicodeAttribute(),
            b=models.UnicodeAttribute(),
            c=models.UnicodeAttribute(),
            options={"unique_together": (("b", "a"), ("a", "c"), ("c", "b", "a"))},
        )
        assert [each.fields for each in rules_of(model)] == [("a", "c")]


def test_a_models_own_key_may_not_meet_a_claim() -> None:
    """E007 includes the claims of all declared rules, also over several attributes."""
    assert ("UNIQUE#{item_type}#{attribute}#{attribute1}#{value}#{value1}", "#CLAIM") in claim_keys()
    with forgotten():
        model = declare(
            "Thief", ("UNIQUE#{a}#x#y#{b}#z", "#CLAIM"), a=models.UnicodeAttribute(), b=models.UnicodeAttribute()
        )
        assert [id for id, _ in messages(model)] == ["dynamo_single.E007"]


def test_a_prefix_begins_the_claims_of_one_model_only() -> None:
    """A model whose type starts with another's is not mistaken for it."""
    assert claim_prefix(Seat) == "UNIQUE#Seat#"
