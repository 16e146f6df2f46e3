"""Create users, and find the user who logs in."""

from __future__ import annotations

import logging
from typing import Any, TypeVar, cast

from asgiref.sync import sync_to_async

from dynamo_single import models
from dynamo_single.auth import AbstractUser
from dynamo_single.auth import UserManager as BaseUserManager
from dynamo_single.contrib.accounts.logins.identifiers import (
    ATTRIBUTES,
    Identified,
    Identifying,
    member_of,
    phone_of,
    read,
    refuse_unused,
)
from dynamo_single.contrib.accounts.ways import take_overdue
from dynamo_single.exceptions import (
    ConditionNotMet,
    InvalidValue,
    StaleObject,
    UnexpectedItem,
    UniqueViolation,
    UnreadableItem,
)
from dynamo_single.keys import canonical
from dynamo_single.table.flow import call_method, run

logger = logging.getLogger("accounts")

L = TypeVar("L", bound=models.Model)
U = TypeVar("U", bound=AbstractUser)


class LoginManager(models.Manager[L]):
    """The manager of login items."""

    def find(self, kind: str, identifier: str) -> L | None:
        """Return the login with this kind and identifier, ignoring case: one eventually consistent Query."""
        return run(self.found(kind, identifier))

    async def found(self, kind: str, identifier: str) -> L | None:
        """Run ``find()`` asynchronously. Log a damaged item and return ``None`` for it."""
        if not canonical(identifier):
            return None
        try:
            login: Any = await call_method(self.filter(kind=kind, identifier__canonical=identifier), "first")
            if login is None or (login.user_id and login.identifier):
                found: L | None = login
                return found
        except (UnexpectedItem, UnreadableItem):
            pass
        except InvalidValue:
            return None  # no user has an identifier that cannot be stored
        logger.error(
            "The login item of %s %r is damaged and was not used; `manage.py dynamo_rebuild` repairs it.",
            kind,
            identifier,
        )
        return None


class UserManager(BaseUserManager[U]):
    """Creates users, and finds them by their identifiers."""

    def create_user(
        self, username: str, email: str | None = None, password: str | None = None, **extra_fields: object
    ) -> U:
        """Create a user: one transaction. ``confirmed`` sets the state of the address, also in ``create_superuser()``.

        - Omitted: your code vouches for the address. The user can log in immediately and does not expire.
        - ``confirmed=False``: a visitor typed the address to sign up. The user cannot log in before the confirmation,
          and expires with the user name and the address after ``UNCONFIRMED_LIFETIME``.
        - ``confirmed=True``: the address is known to be the user's, so an external account can be linked by it.

        If another user has the address, sends two more GetItems. If that user did not confirm the address in time, one
        more transaction takes the address and creates the user, or does neither.
        """
        return super().create_user(username, email, password, **extra_fields)

    async def acreate_user(
        self, username: str, email: str | None = None, password: str | None = None, **extra_fields: object
    ) -> U:
        """Run ``create_user()`` asynchronously."""
        return await super().acreate_user(username, email, password, **extra_fields)

    def _store(self, user: U) -> None:
        try:
            super()._store(user)
        except UniqueViolation as refused:
            self._store_again(user, refused)

    async def _astore(self, user: U) -> None:
        try:
            await super()._astore(user)
        except UniqueViolation as refused:
            await sync_to_async(self._store_again)(user, refused)

    def _store_again(self, user: U, refused: UniqueViolation) -> None:
        try:
            take_overdue(user, str(user.email), refused, user.save)
        except (ConditionNotMet, StaleObject):
            user.save()  # the other user just confirmed the address: this raises UniqueViolation

    def get_by_identifier(self, identifier: str) -> U:
        """Return the user with an e-mail address, a user name or a telephone number, ignoring case.

        Sends a Query for the login item and a strongly consistent GetItem of its user. If the index does not contain
        the identifier (yet), a strongly consistent GetItem reads its claim, and another GetItem the user. Raises
        ``DoesNotExist``.
        """
        return self.get_by_login(*read(identifier))

    async def aget_by_identifier(self, identifier: str) -> U:
        """Run ``get_by_identifier()`` asynchronously."""
        return await self.aget_by_login(*read(identifier))

    def get_by_login(self, kind: str, identifier: str) -> U:
        """Return the user with an identifier of this kind, given as stored; see ``get_by_identifier()``."""
        return run(self.aget_by_login(kind, identifier))

    async def aget_by_login(self, kind: str, identifier: str) -> U:
        """Run ``get_by_login()`` asynchronously."""
        login = await self._login(kind, identifier)
        if login is not None:
            user: U | None = await call_method(self.consistent().filter(pk=login.user_id), "first")
            # The index may lag behind a change of the identifier; the user's own item does not.
            if user is not None and cast("Identified", user).has_identifier(kind, login.identifier):
                return user
        found: U = await call_method(self, "get_by_unique", ATTRIBUTES[kind], identifier)
        return found

    def get_by_identity(self, provider: str, subject: str) -> U:
        """Return the user with an external account, matching case: two strongly consistent GetItems.

        Raises ``DoesNotExist``, and ``InvalidValue`` for a provider that ``LOGIN_WITH`` does not contain.
        """
        refuse_unused(provider, elsewhere=True)
        model: Any = self.model
        identities: Any = model.identity_model().objects.consistent()
        found = identities.filter(provider=provider, subject=subject).first() if canonical(subject) else None
        user = None if found is None else self.consistent().filter(pk=found.user_id).first()
        if user is None or member_of(provider, subject) not in (cast("Any", user).identities or ()):
            raise model.DoesNotExist(f"No {model._meta.label} has the account {subject!r} of {provider!r}.")
        return user

    async def _login(self, kind: str, identifier: str) -> Identifying | None:
        model: Any = self.model
        logins: LoginManager[Any] = model.logins.model.objects
        return await logins.found(kind, identifier)

    # A private method of Django.
    def _create_user_object(
        self,
        username: str,
        email: str | None,
        password: str | None,
        confirmed: bool | None = None,
        **extra_fields: object,
    ) -> U:
        if username and "@" in username:
            raise InvalidValue(
                f"The user name {username!r} contains an @: it could be mistaken for an e-mail address. "
                "Nothing was written. Choose a name without an @."
            )
        if username and phone_of(username) is not None:
            raise InvalidValue(
                f"The user name {username!r} is a telephone number: it could belong to another user. "
                "Nothing was written. Choose another name."
            )
        if confirmed is not None and not email:
            raise InvalidValue(f"confirmed={confirmed!r} requires an e-mail address. Nothing was written. Pass email=.")
        user: Any = super()._create_user_object(username, email, password, **extra_fields)  # type: ignore[misc]  # not in the stubs
        if confirmed is not None:
            (user.confirm_email if confirmed else user.await_confirmation)()
        return cast("U", user)
