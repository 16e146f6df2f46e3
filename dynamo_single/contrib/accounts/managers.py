"""Making users, and finding the one who logs in."""

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
    """The ways to log in."""

    def find(self, kind: str, identifier: str) -> L | None:
        """The login of this kind and identifier, whatever its case: one Query on the index, eventually consistent."""
        return run(self.found(kind, identifier))

    async def found(self, kind: str, identifier: str) -> L | None:
        """``find()`` for a coroutine. A damaged item is none, and the log names it."""
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
            return None  # what cannot be stored is nobody's
        logger.error(
            "The login item of %s %r is damaged and was not used; `manage.py dynamo_rebuild` repairs it.",
            kind,
            identifier,
        )
        return None


class UserManager(BaseUserManager[U]):
    """Makes users, and finds them by what they log in with."""

    def create_user(
        self, username: str, email: str | None = None, password: str | None = None, **extra_fields: object
    ) -> U:
        """Django's: one transaction. ``confirmed`` says what is known of the address, also for ``create_superuser()``.

        - Nothing said: whoever calls answers for it. The user logs in at once, and stays.
        - ``confirmed=False``: somebody typed it, to sign up. Nobody logs in before it is confirmed, and the user
          expires with name and address after ``UNCONFIRMED_LIFETIME``.
        - ``confirmed=True``: it is known to be the user's, so that an account elsewhere may be linked by it.

        Where somebody else has the address, two GetItems more; and where it was not confirmed in time, one transaction
        more, which takes it from its holder and makes the user, or does neither.
        """
        return super().create_user(username, email, password, **extra_fields)

    async def acreate_user(
        self, username: str, email: str | None = None, password: str | None = None, **extra_fields: object
    ) -> U:
        """See ``create_user()``."""
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
            user.save()  # whose address it is confirmed it at this moment: this is refused

    def get_by_identifier(self, identifier: str) -> U:
        """The user of an e-mail address, a user name or a telephone number, whatever its case; raises ``DoesNotExist``.

        A Query for the login item and a strongly consistent GetItem of its user. If the index does not know the
        identifier (yet), the claim on it decides, strongly consistent: one GetItem more, and the user's.
        """
        return self.get_by_login(*read(identifier))

    async def aget_by_identifier(self, identifier: str) -> U:
        """See ``get_by_identifier()``."""
        return await self.aget_by_login(*read(identifier))

    def get_by_login(self, kind: str, identifier: str) -> U:
        """The user of an identifier of this kind, in the form in which it is stored; as ``get_by_identifier()``."""
        return run(self.aget_by_login(kind, identifier))

    async def aget_by_login(self, kind: str, identifier: str) -> U:
        """See ``get_by_login()``."""
        login = await self._login(kind, identifier)
        if login is not None:
            user: U | None = await call_method(self.consistent().filter(pk=login.user_id), "first")
            # The index may lag behind a change of the identifier; the user's own item does not.
            if user is not None and cast("Identified", user).has_identifier(kind, login.identifier):
                return user
        found: U = await call_method(self, "get_by_unique", ATTRIBUTES[kind], identifier)
        return found

    def get_by_identity(self, provider: str, subject: str) -> U:
        """The user of an account elsewhere, to the letter; raises ``DoesNotExist``. Two consistent GetItems.

        ``InvalidValue`` for a provider that ``LOGIN_WITH`` does not have.
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

    # Private to Django.
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
                f"A user name cannot contain an @, as {username!r} does: it could be taken for an e-mail address."
            )
        if username and phone_of(username) is not None:
            raise InvalidValue(f"A user name cannot be a telephone number, as {username!r} is: it could be another's.")
        if confirmed is not None and not email:
            raise InvalidValue(f"confirmed={confirmed!r} requires an e-mail address, but there is none.")
        user: Any = super()._create_user_object(username, email, password, **extra_fields)  # type: ignore[misc]  # not in the stubs
        if confirmed is not None:
            (user.confirm_email if confirmed else user.await_confirmation)()
        return cast("U", user)
