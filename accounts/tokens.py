"""The signed links that confirm an e-mail address: what a link says, and whether it still holds.

A link is bound to a user and to the address it was sent to; one that puts this address in another's place also to the
user's password and address, and to the last time that an address was confirmed. Nothing is stored for it, and this
module sends no request.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Final

from django.core import signing
from django.utils.crypto import constant_time_compare, salted_hmac

from accounts.conf import account_settings
from accounts.models import User

_SALT: Final = "accounts.tokens"


@dataclass(frozen=True, slots=True)
class Confirmation:
    """That whoever follows the link reads the mail of ``address``, a user's own one or one to take its place."""

    user: str
    address: str
    is_change: bool
    mark: str

    def holds_for(self, user: User) -> bool:
        """Whether nothing happened since that makes the link void: another address, or for a change a new password."""
        if not user.is_active or user.pk != self.user:
            return False
        if user.has_mailbox(self.address):
            return True  # confirming twice does no harm
        return self.is_change and constant_time_compare(self.mark, _mark(user))


def make(user: User, address: str) -> str:
    """The link's token, for the user's own address or for one to take its place."""
    found = Confirmation(user=user.pk, address=address, is_change=address != user.email, mark=_mark(user))
    return signing.dumps(asdict(found), salt=_SALT)


def read(token: str) -> Confirmation | None:
    """What a token says; ``None`` for one that is forged or older than ``CONFIRMATION_LIFETIME``."""
    lifetime = timedelta(seconds=account_settings().confirmation_lifetime)
    try:
        return Confirmation(**signing.loads(token, salt=_SALT, max_age=lifetime))
    except signing.BadSignature:
        return None


def _mark(user: User) -> str:
    """Changes with the password and with each change of the address, also one back and forth; tells nothing of them."""
    present = f"{user.password}|{user.confirmed_at}|{user.email}"
    return salted_hmac(_SALT, present, algorithm="sha256").hexdigest()
