"""The signed links that confirm an e-mail address: what a link says, and whether it still holds.

A link is bound to a user, to the address it was sent to and to the address that the user had then. Nothing is stored
for it, and this module sends no request.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Final

from django.core import signing
from django.utils.crypto import constant_time_compare, salted_hmac

from accounts.conf import account_settings
from accounts.models import User
from dynamo_single.keys import canonical

_SALT: Final = "accounts.tokens"


@dataclass(frozen=True, slots=True)
class Confirmation:
    """That whoever follows the link reads the mail of ``address``, for a user whose address was ``held``."""

    user: str
    address: str
    held: str
    mark: str

    @property
    def is_change(self) -> bool:
        """Whether the address takes the place of another one, or of none."""
        return self.held != canonical(self.address)

    def holds_for(self, user: User) -> bool:
        """Whether nothing happened since that makes the link void: another address, or for a change a new password."""
        if not user.is_active or user.pk != self.user:
            return False
        present = canonical(user.email or "")
        if present == canonical(self.address):
            return True  # confirming twice does no harm
        return self.is_change and present == self.held and constant_time_compare(self.mark, _mark(user))


def make(user: User, address: str) -> str:
    """The link's token, for the user's own address or for one to take its place."""
    found = Confirmation(user=user.pk, address=address, held=canonical(user.email or ""), mark=_mark(user))
    return signing.dumps(asdict(found), salt=_SALT)


def read(token: str) -> Confirmation | None:
    """What a token says; ``None`` for one that is forged or older than ``CONFIRMATION_LIFETIME``."""
    lifetime = timedelta(seconds=account_settings().confirmation_lifetime)
    try:
        return Confirmation(**signing.loads(token, salt=_SALT, max_age=lifetime))
    except signing.BadSignature:
        return None


def _mark(user: User) -> str:
    """Changes with the password, and tells nothing of it."""
    return salted_hmac(_SALT, user.password, algorithm="sha256").hexdigest()[:16]
