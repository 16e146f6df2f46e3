"""The text of an identity: reversible, injective, and safe in a URL."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.schema.keys.identity import join_identity, split_identity

texts = st.one_of(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.sampled_from("~a/%2F.é ")))


@pytest.mark.parametrize(
    ("texts", "identity"),
    [
        (("company-1",), "company-1"),
        (("a b/é",), "a b/é"),
        (("company-1", "person-9"), "company-1~~person-9"),
        (("a/b", "~"), "a~2Fb~~~7E"),
        (("é", "", "x"), "~C3~A9~~~~x"),
    ],
)
def test_identity_text(texts: tuple[str, ...], identity: str) -> None:
    """A single value is unchanged, and several are escaped and joined."""
    assert join_identity(texts) == identity
    assert split_identity(identity, len(texts)) == texts


@given(st.lists(texts, min_size=2, max_size=4))
def test_identities_come_back(values: list[str]) -> None:
    """The join is reversible, and uses only unreserved characters of RFC 3986."""
    identity = join_identity(values)
    assert re.fullmatch(r"[A-Za-z0-9._~-]*", identity)
    assert split_identity(identity, len(values)) == tuple(values)


@given(st.text(st.sampled_from("~ab2FC3A9-"), max_size=14))
def test_an_identity_has_one_spelling(text: str) -> None:
    """A valid identity is always the join of its values."""
    try:
        values = split_identity(text, 2)
    except InvalidValue:
        return
    assert join_identity(values) == text


@pytest.mark.parametrize(
    ("text", "count", "reason"),
    [
        ("a", 2, "it has 1"),
        ("a~~b~~c", 2, "it has 3"),
        ("a~~b/c", 2, "only letters"),
        ("a~~b~2f", 2, "only letters"),
        ("a~~~41", 2, "'~41' is spelled 'A'"),
        ("a~~~FF", 2, "does not spell UTF-8"),
        ("a~~b\n", 2, "only letters"),
        ("\ud800", 1, "lone surrogate"),
    ],
)
def test_splitting_refuses(text: str, count: int, reason: str) -> None:
    """An invalid string raises an error instead of a guess."""
    with pytest.raises(InvalidValue, match=reason):
        split_identity(text, count)


def test_an_identity_has_a_value() -> None:
    """No values are no identity."""
    with pytest.raises(InvalidValue, match="at least one value"):
        join_identity(())
