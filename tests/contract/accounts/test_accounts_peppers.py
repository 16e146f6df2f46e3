"""Secrets are keyed before they are hashed: what the table reveals, and the effect of a new key."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.hashers import check_password, identify_hasher, make_password
from django.contrib.auth.models import update_last_login

from accounts.models import User
from dynamo_single.contrib.accounts.ways import LastWay
from dynamo_single.exceptions import Throttled
from dynamo_single.table import Table
from dynamo_single.testing import intercept, refuse
from tests.contract.accounts.test_accounts_secrets import ACCOUNTS, EMAIL, PASSWORD, PHONE, SECRET, costs
from tests.contract.tables import assert_consistent

pytestmark = pytest.mark.usefixtures("table")

FORMER, CURRENT, PEPPER = "former-key", "current-key", "pepper-key"


@pytest.fixture
def mike(table: Table, settings: Any) -> User:
    """A user whose number has a secret."""
    settings.ACCOUNTS, settings.SECRET_KEY = ACCOUNTS, FORMER
    return with_secret("Mike", EMAIL, PHONE)


def with_secret(name: str, email: str, phone: str) -> User:
    """Create a user with a number and a secret."""
    user = User.objects.create_user(name, email, PASSWORD)
    user.logins.add("phone", phone)
    user.logins.set_secret("phone", SECRET)
    return user


def opens(phone: str = PHONE, secret: str = SECRET) -> bool:
    """Return whether the secret opens the number."""
    return authenticate(phone=phone, password=secret) is not None


def stored(user: User) -> str:
    """Return the stored text of the user's secret."""
    user.refresh_from_db()
    return str(user.phone_secret)


def key_of(user: User) -> str:
    """Return the id of the key that peppers the user's secret."""
    return stored(user).split("$")[1]


def put(user: User, text: str) -> None:
    """Store a string as the user's secret."""
    user.phone_secret = text
    user.save()


def test_stored_text_names_key_and_hasher(mike: User) -> None:
    assert re.fullmatch(r"peppered\$[0-9a-f]{16}\$md5\$.+", stored(mike))


def test_hash_alone_does_not_tell_the_secret(mike: User) -> None:
    """A process that has the table and no key tries the right secret in vain."""
    encoded = stored(mike).split("$", 2)[2]
    assert identify_hasher(encoded).algorithm == "md5"
    assert not check_password(SECRET, encoded)


def test_hash_without_key_stays_valid(mike: User) -> None:
    put(mike, make_password(SECRET))
    assert opens()
    assert not opens(secret="000000")


def test_hash_without_key_is_renewed_at_login(mike: User) -> None:
    put(mike, make_password(SECRET))
    with costs(["Query", "GetItem", "TransactWriteItems"], 2):
        assert opens()
    assert stored(mike).startswith("peppered$")
    with costs(["Query", "GetItem"], 1):
        assert opens()
    assert_consistent()


@pytest.mark.parametrize("code", ["ThrottlingException", "AccessDeniedException", "InternalServerError"])
def test_failed_renewal_lets_login_continue(mike: User, caplog: Any, code: str) -> None:
    """The user keeps the stored hash and its session, and the log contains neither secret nor hash."""
    put(mike, make_password(SECRET))
    with refuse(code, operation="TransactWriteItems"):
        user = authenticate(phone=PHONE, password=SECRET)
    assert user is not None
    before = stored(mike)
    assert (user.phone_secret, user.get_session_auth_hash()) == (before, mike.get_session_auth_hash())
    (record,) = [each for each in caplog.records if "Cannot renew" in each.getMessage()]
    assert record.exc_info is None
    assert not any(secret in record.getMessage() for secret in (SECRET, before, "peppered"))


def test_failed_renewal_is_tried_again(mike: User) -> None:
    put(mike, make_password(SECRET))
    with refuse("ThrottlingException", operation="TransactWriteItems"):
        assert opens()
    assert opens()
    assert stored(mike).startswith("peppered$")


def test_refused_last_login_still_raises(mike: User) -> None:
    """Django writes it after the renewal."""
    user = authenticate(phone=PHONE, password=SECRET)
    with refuse("ThrottlingException", operation="UpdateItem"), pytest.raises(Throttled):
        update_last_login(User, user)


def test_wrong_secret_renews_nothing(mike: User) -> None:
    put(mike, make_password(SECRET))
    with costs(["Query", "GetItem"], 1):
        assert not opens(secret="000000")


@pytest.mark.parametrize(
    "changed",
    [
        {"SECRET_KEY": CURRENT, "SECRET_KEY_FALLBACKS": [FORMER]},
        {"ACCOUNTS": {**ACCOUNTS, "PEPPER_KEY": PEPPER}},
        {"SECRET_KEY": CURRENT, "ACCOUNTS": {**ACCOUNTS, "PEPPER_KEY_FALLBACKS": [FORMER]}},
        {"SECRET_KEY": CURRENT, "ACCOUNTS": {**ACCOUNTS, "PEPPER_KEY": PEPPER, "PEPPER_KEY_FALLBACKS": [FORMER]}},
    ],
)
def test_former_key_opens_and_is_replaced(mike: User, settings: Any, changed: dict[str, Any]) -> None:
    before = key_of(mike)
    for name, value in changed.items():
        setattr(settings, name, value)
    assert opens()
    assert key_of(mike) != before
    settings.SECRET_KEY_FALLBACKS = []
    settings.ACCOUNTS = {**settings.ACCOUNTS, "PEPPER_KEY_FALLBACKS": []}
    assert opens()


def test_own_key_outlives_a_new_secret_key(mike: User, settings: Any) -> None:
    settings.ACCOUNTS = {**ACCOUNTS, "PEPPER_KEY": PEPPER}
    assert opens()
    settings.SECRET_KEY = CURRENT
    assert opens()


def test_lost_key_opens_nothing_and_is_named(mike: User, settings: Any, caplog: Any) -> None:
    """The attempt costs the same hash as any other."""
    lost, settings.SECRET_KEY = key_of(mike), CURRENT
    with costs(["Query", "GetItem"], 1):
        assert not opens()
    assert f"the key {lost} that peppers it is not in the settings" in caplog.text
    assert "PEPPER_KEY_FALLBACKS" in caplog.text
    mike.logins.set_secret("phone", SECRET)
    assert opens()


def test_copied_hash_opens_no_other_user(mike: User) -> None:
    eve = with_secret("Eve", "eve@example.com", "+15550101")
    put(mike, stored(eve))
    assert not opens()


def test_copied_hash_opens_no_other_kind(mike: User) -> None:
    mike.username_secret = stored(mike)
    mike.save()
    assert authenticate(username="Mike", password=SECRET) is None


def test_copied_hash_is_no_password(mike: User) -> None:
    mike.password = stored(mike)
    mike.save()
    assert authenticate(username="Mike", password=SECRET) is None


@pytest.mark.parametrize(
    "text", ["peppered", "peppered$", "peppered$$", "peppered$x$y", "peppered$x", "gibberish", "!"]
)
def test_damaged_text_opens_nothing(mike: User, text: str) -> None:
    put(mike, text)
    with costs(["Query", "GetItem"], 1):
        assert not opens()


def test_renewal_keeps_a_secret_set_meanwhile(mike: User) -> None:
    put(mike, make_password(SECRET))
    other = User.objects.get(pk=mike.pk)

    done: list[str] = []

    def set_first(operation: str, params: Any) -> None:
        if operation == "TransactWriteItems" and not done:
            done.append(operation)
            other.logins.set_secret("phone", "000000")

    with intercept(set_first):
        assert opens()
    assert (opens(), opens(secret="000000")) == (False, True)
    assert_consistent()


def test_last_way_holds_with_peppered_secret(mike: User) -> None:
    mike.set_unusable_password()
    mike.save()
    mike.logins.set_secret("phone", SECRET)
    mike.logins.remove("email")
    with pytest.raises(LastWay):
        mike.logins.remove("phone")
    assert opens()
