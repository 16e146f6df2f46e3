"""Who may log in, and what they may do.

Permissions are texts stored with the user; an active superuser has all of them.
"""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.backends import BaseBackend
from django.db.models import Q
from django.http import HttpRequest

from accounts.models import User
from dynamo_single.auth import all_permissions


class EmailOrUsernameBackend(BaseBackend):
    """Logs users in by e-mail address or user name, in one field, whatever its case.

    A name that is nobody's, a wrong password and an inactive user take the same requests and one password hash each,
    so that neither the answer nor its time tells which names exist.
    """

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **kwargs: Any
    ) -> User | None:
        """The user of this identifier and password, if active: see ``UserManager.get_by_identifier()``."""
        if username is None or password is None:
            return None
        try:
            user = User.objects.get_by_identifier(username)
        except User.DoesNotExist:
            User().set_password(password)  # the time that checking takes
            return None
        return user if user.check_password(password) and self.user_can_authenticate(user) else None

    def user_can_authenticate(self, user: User) -> bool:
        """Refuse inactive users."""
        return user.is_active

    def get_user(self, user_id: Any) -> User | None:
        """The user of a session: one GetItem, strongly consistent, so that a change of password ends other sessions."""
        user = User.objects.consistent().filter(pk=user_id).first()
        return user if user is not None and self.user_can_authenticate(user) else None

    def get_user_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        """The user's permissions for everything; there are none for single objects."""
        if not user_obj.is_active or user_obj.is_anonymous or obj is not None:
            return set()
        return set(all_permissions() if user_obj.is_superuser else user_obj.permissions or ())

    def has_perm(self, user_obj: Any, perm: str, obj: Any = None) -> bool:
        """Whether the user is active and has the permission."""
        return user_obj.is_active and super().has_perm(user_obj, perm, obj=obj)

    async def ahas_perm(self, user_obj: Any, perm: str, obj: Any = None) -> bool:
        """See ``has_perm()``."""
        return user_obj.is_active and await super().ahas_perm(user_obj, perm, obj=obj)

    def has_module_perms(self, user_obj: Any, app_label: str) -> bool:
        """Whether the user has any permission for an app."""
        return any(perm.startswith(f"{app_label}.") for perm in self.get_all_permissions(user_obj))

    async def ahas_module_perms(self, user_obj: Any, app_label: str) -> bool:
        """See ``has_module_perms()``."""
        return await sync_to_async(self.has_module_perms)(user_obj, app_label)

    def with_perm(
        self, perm: str, is_active: bool | None = True, include_superusers: bool = True, obj: Any = None
    ) -> Any:
        """The users with a permission: a Query that reads every user and filters."""
        if not isinstance(perm, str):
            raise TypeError("The `perm` argument must be a string: permissions are texts here.")
        if "." not in perm:
            raise ValueError("Permission name should be in the form app_label.permission_codename.")
        if obj is not None:
            return User.objects.none()
        wanted = Q(permissions__contains=perm)
        if include_superusers:
            wanted |= Q(is_superuser=True)
        return User.objects.filter(wanted if is_active is None else wanted & Q(is_active=is_active))
