"""Create and check the signed links in e-mails: their content, validity, and expiry.

A link that confirms an address is bound to the user and to that address. A link that changes or adds an address is also
bound to the user's password, to the user's current address, and to the last time an address was added or confirmed. The
app does not store links, and this module does not send requests.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.core import signing
from django.utils.crypto import constant_time_compare, salted_hmac
from msgspec import Struct
from msgspec.structs import asdict

from dynamo_single import clock
from dynamo_single.contrib.accounts.conf import account_settings
from dynamo_single.contrib.accounts.models import AbstractUser

_SALT: Final = "accounts.tokens"


class Confirmation(Struct, frozen=True):
    """The content of a link, which proves that its reader receives the e-mail to ``address``.

    The address is the user's current address, a new primary address, or, with ``is_more``, an additional address.
    """

    user: str
    address: str
    is_change: bool
    mark: str
    is_more: bool = False

    def holds_for(self, user: AbstractUser) -> bool:
        """Return whether the link is still valid for this user.

        A later change of the address invalidates the link. A new password also invalidates a link that changes or adds
        an address.
        """
        if not user.is_active or user.pk != self.user:
            return False
        if user.has_mailbox(self.address):
            return True  # confirming an address twice is harmless
        if self.is_more and self.address in (user.more_emails or ()):
            return True  # adding an existing address is harmless too
        return self.is_change and constant_time_compare(self.mark, _mark(user))


def make(user: AbstractUser, address: str, *, is_more: bool = False) -> str:
    """Return the token of a link that confirms the user's address, changes it, or adds an address."""
    is_change = address != user.email
    found = Confirmation(user=user.pk, address=address, is_change=is_change, mark=_mark(user), is_more=is_more)
    return _ClockSigner(salt=_SALT).sign_object(asdict(found))


def read(token: str) -> Confirmation | None:
    """Return the content of a token, or ``None`` if it is forged or older than ``CONFIRMATION_LIFETIME``."""
    lifetime = timedelta(seconds=account_settings().confirmation_lifetime)
    try:
        return Confirmation(**_ClockSigner(salt=_SALT).unsign_object(token, max_age=lifetime))
    except signing.BadSignature:
        return None


class ResetTokens(PasswordResetTokenGenerator):
    """Django's tokens of links that reset a password, with this app's clock."""

    def _now(self) -> datetime:
        return datetime.fromtimestamp(clock.timestamp())


class _ClockSigner(signing.TimestampSigner):
    """Django's signer with this app's clock; both signers read each other's values."""

    def timestamp(self) -> str:
        return signing.b62_encode(int(clock.timestamp()))

    def unsign(self, value: str, max_age: int | timedelta | None = None) -> str:
        text, _, signed_at = signing.Signer.unsign(self, value).rpartition(self.sep)
        longest = max_age.total_seconds() if isinstance(max_age, timedelta) else max_age
        if longest is not None and clock.timestamp() - signing.b62_decode(signed_at) > longest:
            raise signing.SignatureExpired(f"Its signature is more than {longest} seconds old.")
        return text


def _mark(user: AbstractUser) -> str:
    """Return a hash that changes with the password and each time an address is added or confirmed.

    The hash also differs after an added address is removed again. It does not reveal the password or the addresses.
    """
    present = f"{user.password}|{user.confirmed_at}|{user.email}"
    return salted_hmac(_SALT, present, algorithm="sha256").hexdigest()
