"""Who may log in, how often they may try, and what they may do.

Permissions are texts stored with users and groups; an active superuser has all of them.
"""

from __future__ import annotations

import logging
from functools import partial

from asgiref.sync import sync_to_async
from django.contrib.auth.backends import BaseBackend
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.views.decorators.debug import sensitive_variables

from dynamo_single.contrib.accounts.conf import account_settings
from dynamo_single.contrib.accounts.limits import lockout
from dynamo_single.contrib.accounts.logins.identifiers import ATTRIBUTES, EMAIL, PHONE, phone_of, read
from dynamo_single.contrib.accounts.models import AbstractUser, user_model
from dynamo_single.permissions import StoredPermissions
from dynamo_single.table.flow import call_method, call_sync, run

#: Says why logins are refused; never what was typed, since people type passwords into the wrong field.
logger = logging.getLogger("accounts")


def _typed(username: str | None, identifiers: dict[str, object]) -> tuple[str, str] | None:
    """The kind of what was typed, and the form in which it is stored; ``None`` for arguments of another backend."""
    given = {name: value for name, value in identifiers.items() if name in ("email", "phone") and value is not None}
    if len(given) + (username is not None) != 1:
        return None
    if username is not None:
        return read(username)
    if "email" in given:
        return EMAIL, str(given["email"])
    # What is no number is nobody's, and is looked for all the same.
    return PHONE, phone_of(str(given["phone"])) or str(given["phone"])


class EmailOrUsernameBackend(StoredPermissions, BaseBackend):
    """Logs users in by e-mail address, user name or telephone number, in one field, whatever its case.

    A name that is nobody's, a wrong password and an inactive user take the same requests and one password hash each,
    so that neither the answer nor its time tells which names exist, or which have a secret of their own. An attempt
    that comes too early is refused as if the password were wrong, whatever it is, and no other backend is asked: see
    ``lockout``.
    """

    @sensitive_variables("username", "password", "identifiers")
    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **identifiers: object,
    ) -> AbstractUser | None:
        """The user of this identifier and password, if active.

        ``username`` may be of any kind, and is read by how it looks; ``email=`` and ``phone=`` say the kind. A
        BatchGetItem for earlier failures, and what ``UserManager.get_by_identifier()`` sends, whatever the kind.
        Failures are counted by the request's address, so without a request they are not: always pass it on.
        """
        return run(self._authenticated(request, username, password, identifiers))

    @sensitive_variables("username", "password", "identifiers")
    async def aauthenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **identifiers: object,
    ) -> AbstractUser | None:
        """See ``authenticate()``; a password is hashed in a thread."""
        if type(self).authenticate is not EmailOrUsernameBackend.authenticate:
            return await sync_to_async(self.authenticate)(request, username=username, password=password, **identifiers)
        return await self._authenticated(request, username, password, identifiers)

    @sensitive_variables("username", "password", "identifiers", "identifier", "typed")
    async def _authenticated(
        self, request: HttpRequest | None, username: str | None, password: str | None, identifiers: dict[str, object]
    ) -> AbstractUser | None:
        typed = _typed(username, identifiers)
        if typed is None or password is None:
            return None
        kind, identifier = typed
        counts = request is not None and account_settings().lockout
        attempt = await lockout.begun(request, identifier) if request is not None and counts else None
        if attempt is not None and attempt.wait is not None:
            await call_sync(partial(user_model()().set_password, password))  # the time that checking takes
            lockout.tell(request, attempt.wait)
            raise PermissionDenied
        user = await self._user_of(kind, identifier, password)
        if attempt is not None:
            await attempt.ended(succeeded=user is not None)
        if user is not None and not (self.user_can_authenticate(user) and user.is_opened_by(kind, identifier)):
            logger.info("A login was refused: user %s has not confirmed the address yet.", user.pk)
            lockout.tell(request, lockout.UNCONFIRMED)
            return None
        return user

    @sensitive_variables("identifier", "password")
    async def _user_of(self, kind: str, identifier: str, password: str) -> AbstractUser | None:
        """The active user whose password this is; one password hash, whatever is wrong."""
        try:
            if ATTRIBUTES[kind] not in account_settings().login_with:
                raise user_model().DoesNotExist
            user: AbstractUser = await call_method(user_model().objects, "get_by_login", kind, identifier)
        except user_model().DoesNotExist:
            await call_sync(partial(user_model()().set_password, password))  # the time that checking takes
            logger.info("A login was rejected: the identifier does not belong to a user who can log in.")
            return None
        if not await call_sync(partial(user.check_login, kind, password)):
            logger.info("A login was refused: a wrong password for user %s.", user.pk)
        elif not user.is_active:
            logger.info("A login was refused: user %s is not active.", user.pk)
        else:
            return user
        return None

    def user_can_authenticate(self, user: AbstractUser) -> bool:
        """Refuse inactive users, and those who signed up and have to confirm their address first."""
        return user.is_active and (not user.must_confirm or account_settings().unconfirmed_may_log_in)

    def get_user(self, user_id: object) -> AbstractUser | None:
        """The user of a session: one GetItem, strongly consistent, so that a change of password ends other sessions."""
        return run(self._user(user_id))

    async def aget_user(self, user_id: object) -> AbstractUser | None:
        """See ``get_user()``."""
        if type(self).get_user is not EmailOrUsernameBackend.get_user:
            return await sync_to_async(self.get_user)(user_id)
        return await self._user(user_id)

    async def _user(self, user_id: object) -> AbstractUser | None:
        user: AbstractUser | None = await call_method(user_model().objects.consistent().filter(pk=user_id), "first")
        return user if user is not None and self.user_can_authenticate(user) else None
