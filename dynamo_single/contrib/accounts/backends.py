"""The authentication backend: logins, limits of attempts, and permissions.

Permissions are strings stored with users and groups; an active superuser has all permissions.
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

#: Logs the reason of a rejected login without the typed identifier: users type passwords into the wrong field.
logger = logging.getLogger("accounts")


def _typed(username: str | None, identifiers: dict[str, object]) -> tuple[str, str] | None:
    """Return the kind and the stored value of the identifier; ``None`` for arguments of another backend."""
    given = {name: value for name, value in identifiers.items() if name in ("email", "phone") and value is not None}
    if len(given) + (username is not None) != 1:
        return None
    if username is not None:
        return read(username)
    if "email" in given:
        return EMAIL, str(given["email"])
    # An invalid number has no user, but takes the same requests.
    return PHONE, phone_of(str(given["phone"])) or str(given["phone"])


class EmailOrUsernameBackend(StoredPermissions, BaseBackend):
    """Logs users in with an e-mail address, a user name or a telephone number in one field, ignoring case.

    An unknown name, a wrong password and an inactive user take the same requests and one password hash each.
    Therefore neither the response nor its duration reveals which names exist, or which have a separate secret. An
    attempt that comes too early is rejected like a wrong password, and Django does not try other backends: see
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
        """Return the active user with this identifier and password, or ``None``.

        ``username`` can be an identifier of any kind, which is derived from its format; ``email=`` and ``phone=`` set
        the kind. Sends a BatchGetItem for earlier failures, and the requests of ``UserManager.get_by_identifier()`` for
        any kind. Always pass the request: the backend counts failures only if it can read the client address from it.
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
        """Run ``authenticate()`` asynchronously; hash the password in a thread."""
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
            logger.info("A login was rejected: user %s has not confirmed the address yet.", user.pk)
            lockout.tell(request, lockout.UNCONFIRMED)
            return None
        return user

    @sensitive_variables("identifier", "password")
    async def _user_of(self, kind: str, identifier: str, password: str) -> AbstractUser | None:
        """Return the active user with this password; compute one password hash in any case."""
        try:
            if ATTRIBUTES[kind] not in account_settings().login_with:
                raise user_model().DoesNotExist
            user: AbstractUser = await call_method(user_model().objects, "get_by_login", kind, identifier)
        except user_model().DoesNotExist:
            await call_sync(partial(user_model()().set_password, password))  # the time that checking takes
            logger.info("A login was rejected: the identifier does not belong to a user who can log in.")
            return None
        if not await call_sync(partial(user.check_login, kind, password)):
            logger.info("A login was rejected: a wrong password for user %s.", user.pk)
        elif not user.is_active:
            logger.info("A login was rejected: user %s is not active.", user.pk)
        else:
            return user
        return None

    def user_can_authenticate(self, user: AbstractUser) -> bool:
        """Return whether the user is active and does not have to confirm the address first."""
        return user.is_active and (not user.must_confirm or account_settings().unconfirmed_may_log_in)

    def get_user(self, user_id: object) -> AbstractUser | None:
        """Return the user of a session: one strongly consistent GetItem, so a new password ends other sessions."""
        return run(self._user(user_id))

    async def aget_user(self, user_id: object) -> AbstractUser | None:
        """Run ``get_user()`` asynchronously."""
        if type(self).get_user is not EmailOrUsernameBackend.get_user:
            return await sync_to_async(self.get_user)(user_id)
        return await self._user(user_id)

    async def _user(self, user_id: object) -> AbstractUser | None:
        user: AbstractUser | None = await call_method(user_model().objects.consistent().filter(pk=user_id), "first")
        return user if user is not None and self.user_can_authenticate(user) else None
