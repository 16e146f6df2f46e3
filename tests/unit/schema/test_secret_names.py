"""Names and forms of secrets: whole words in names, and strings that are secrets by their form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_single.orm.schema.keys.secret_values import _NAMES, MASK, hide, hide_in, is_secret_name, words_of

#: Words that contain the name of a secret, or are nearly one.
INNOCENT = (
    "shipping opinion spin pinned hashtag basalt salted tokenizer secretary secretariat passwordless option topology "
    "pint pinto classname assassin saltwater reopened maintain hashable rehash cooking optout pincer signatory"
)
SECRETS = (
    "password passwords passwordHash password_hash userPassword PASSWORD_RESET pin userPIN PINCode pin_code pins PINs "
    "apiKey api_key APIKey apikey x-api-key accessKeyId Set-Cookie oauth2Token otp OTPs mfaSecret 2fa two_2fa ssn SSN "
    "sessionKey session_data phoneSecret usernameSecret privateKeyPem salt hash md5Hash pwd user.pwd creds "
    "authorization recoveryCodes socialSecurityNumber"
)

_names = st.sampled_from(sorted(_NAMES)).map(str.split)
_fillers = st.lists(st.sampled_from(["user", "old", "data", "shop", "is"]), max_size=2)


@pytest.mark.parametrize("name", SECRETS.split())
def test_whole_word_makes_name_secret(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", INNOCENT.split())
def test_part_of_word_makes_no_secret(name: str) -> None:
    assert not is_secret_name(name)


@given(_fillers, _names, _fillers)
def test_name_is_found_in_snake_case(before: list[str], name: list[str], after: list[str]) -> None:
    assert is_secret_name("_".join([*before, *name, *after]))


@given(_fillers, _names, _fillers)
def test_name_is_found_in_camel_case(before: list[str], name: list[str], after: list[str]) -> None:
    first, *rest = [*before, *name, *after]
    assert is_secret_name(first + "".join(map(str.capitalize, rest)))


@given(st.sampled_from(sorted(name for name in _NAMES if name.isalpha())), st.text("bcdfglmqrxyz", min_size=1))
def test_longer_word_is_no_secret(name: str, more: str) -> None:
    assert not is_secret_name(more + name)


@given(st.text())
def test_words_keep_all_letters(name: str) -> None:
    assert "".join(words_of(name)) == "".join(each.lower() for each in name if each.isalnum())


#: Invented strings with a secret, and their masked form. They are assembled so that scanners ignore them.
SHAPES = {
    "-----BEGIN " + "PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY----- x": f"{MASK} x",
    "-----BEGIN " + "RSA PRIVATE KEY-----\ncut off": MASK,
    "eyJ" + "hbGciOiJub25lIn0.eyJzdWIiOiIxIn0.c2ln": MASK,
    "use sk_" + "live_0000000000 now": f"use {MASK} now",
    "AKIA" + "0000000000000000": MASK,
    "pbkdf2_sha256" + "$1000000$abc$defghijk=": MASK,
    "postgres://shop:" + "swordfish@db/shop": f"postgres://{MASK}@db/shop",
    "Bearer " + "abcdefgh12345": f"Bearer {MASK}",
    '{"user": "ann", "password": "x"}': f'{{"user": "ann", "password": "{MASK}"}}',
    '[{"deep": {"apiKey": 1}}]': f'[{{"deep": {{"apiKey": "{MASK}"}}}}]',
    '{"credentials": {"user": "ann"}}': f'{{"credentials": "{MASK}"}}',
    'cut off: {"pin": 12, "password": "a\\"b': f'cut off: {{"pin": "{MASK}", "password": "{MASK}"',
}


@pytest.mark.parametrize("text", SHAPES)
def test_secret_in_text_is_masked(text: str) -> None:
    assert hide(text) == SHAPES[text]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "a: b", '{"name": "Ann", "shipping": 3}', "https://example.com/a:b", "skill_live", "AKIA"]
)
def test_harmless_text_is_unchanged(text: str) -> None:
    assert hide(text) == text


@given(st.text(st.characters(codec="utf-8"), max_size=40))
def test_hidden_text_has_no_more_to_hide(text: str) -> None:
    assert hide(hide(text)) == hide(text)


def test_member_with_secret_name_is_masked_at_any_depth() -> None:
    value = {"a": [{"password": {"x": 1}}, ("pin", {"pin": 2})], "b": {"sk_" + "live_0000000000"}}

    assert hide_in(value) == {"a": [{"password": MASK}, ["pin", {"pin": MASK}]], "b": {MASK}}
