"""Making users, and finding the one who logs in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamo_single import models
from dynamo_single.auth import UserManager as BaseUserManager
from dynamo_single.exceptions import InvalidValue
from dynamo_single.keys import canonical

if TYPE_CHECKING:
    from accounts.models import Login, User

#: The kinds of identifiers that follow from the user's own attributes, and the attribute that each one is.
EMAIL = "EMAIL"
USERNAME = "USERNAME"
ATTRIBUTES = {EMAIL: "email", USERNAME: "username"}


def kind_of(identifier: str) -> str:
    """Whether somebody typed an e-mail address or a user name; no user name contains an ``@``."""
    return EMAIL if "@" in identifier else USERNAME


class LoginManager(models.Manager["Login"]):
    """The ways to log in."""

    def find(self, kind: str, identifier: str) -> Login | None:
        """The login of this kind and identifier, whatever its case: one Query on the index, eventually consistent."""
        if not canonical(identifier):
            return None
        try:
            return self.filter(kind=kind, identifier__canonical=identifier).first()
        except InvalidValue:
            return None  # what cannot be stored is nobody's


class UserManager(BaseUserManager["User"]):
    """Makes users, and finds them by what they log in with."""

    def get_by_identifier(self, identifier: str) -> User:
        """The user of an e-mail address or a user name, whatever its case; raises ``DoesNotExist``.

        A Query for the login item and a strongly consistent GetItem of its user. If the index does not know the
        identifier (yet), the claim on it decides, strongly consistent: one GetItem more, and the user's.
        """
        kind = kind_of(identifier)
        login = self._logins().find(kind, identifier)
        user = None if login is None else self.consistent().filter(pk=login.user_id).first()
        # The index may lag behind a change of the identifier; the user's own item does not.
        if user is not None and login is not None and user.has_identifier(kind, login.identifier):
            return user
        return self.get_by_unique(ATTRIBUTES[kind], identifier)

    def _logins(self) -> LoginManager:
        logins: LoginManager = self.model.logins.model.objects
        return logins

    # Private to Django (checked with 5.2).
    def _create_user_object(self, username: str, email: str | None, password: str | None, **extra_fields: Any) -> User:
        if username and "@" in username:
            raise InvalidValue(
                f"A user name cannot contain an @, as {username!r} does: it could be taken for an e-mail address."
            )
        return super()._create_user_object(username, email, password, **extra_fields)
