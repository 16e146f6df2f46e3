"""The signed links in mails: what one that confirms an address says, and whether it still holds; when one expires.

A link that confirms an address is bound to a user and to the address it was sent to; one that puts this address in
another's place, or beside it, also to the user's password and address, and to the last time that an address was added
or confirmed. Nothing is stored for it, and this module sends no request.
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
    """That whoever follows the link reads the mail of ``address``: a user's own one, or one to take its place or, with
    ``is_more``, to stand beside it.
    """

    user: str
    address: str
    is_change: bool
    mark: str
    is_more: bool = False

    def holds_for(self, user: AbstractUser) -> bool:
        """Whether nothing happened since that makes the link void: another address, or for a change a new password."""
        if not user.is_active or user.pk != self.user:
            return False
        if user.has_mailbox(self.address):
            return True  # confirming twice does no harm
        if self.is_more and self.address in (user.more_emails or ()):
            return True  # nor does adding what is there
        return self.is_change and constant_time_compare(self.mark, _mark(user))


def make(user: AbstractUser, address: str, *, is_more: bool = False) -> str:
    """The link's token, for the user's own address, for one to take its place, or for one more."""
    is_change = address != user.email
    found = Confirmation(user=user.pk, address=address, is_change=is_change, mark=_mark(user), is_more=is_more)
    return _ClockSigner(salt=_SALT).sign_object(asdict(found))


def read(token: str) -> Confirmation | None:
    """What a token says; ``None`` for one that is forged or older than ``CONFIRMATION_LIFETIME``."""
    lifetime = timedelta(seconds=account_settings().confirmation_lifetime)
    try:
        return Confirmation(**_ClockSigner(salt=_SALT).unsign_object(token, max_age=lifetime))
    except signing.BadSignature:
        return None


class ResetTokens(PasswordResetTokenGenerator):
    """Django's tokens for setting a password, by the app's clock."""

    def _now(self) -> datetime:
        return datetime.fromtimestamp(clock.timestamp())


class _ClockSigner(signing.TimestampSigner):
    """Django's signer, by the app's clock: what one of the two signs, the other reads."""

    def timestamp(self) -> str:
        return signing.b62_encode(int(clock.timestamp()))

    def unsign(self, value: str, max_age: int | timedelta | None = None) -> str:
        text, _, signed_at = signing.Signer.unsign(self, value).rpartition(self.sep)
        longest = max_age.total_seconds() if isinstance(max_age, timedelta) else max_age
        if longest is not None and clock.timestamp() - signing.b62_decode(signed_at) > longest:
            raise signing.SignatureExpired(f"It was signed more than {longest} seconds ago.")
        return text


def _mark(user: AbstractUser) -> str:
    """Changes with the password and with each address that is added or confirmed, also if it is removed again.

    It tells nothing of them.
    """
    present = f"{user.password}|{user.confirmed_at}|{user.email}"
    return salted_hmac(_SALT, present, algorithm="sha256").hexdigest()
