"""Users in DynamoDB: Django's abstract user models with attributes instead of SQL fields.

The methods are Django's own, synchronous and asynchronous. This module replaces the parts that depend on SQL: fields
and many-to-many relations. ``groups`` contains the groups, and ``permissions`` checks permissions. The apps
``django.contrib.auth`` and ``django.contrib.contenttypes`` must be installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from asgiref.sync import sync_to_async
from django.contrib.auth import base_user
from django.contrib.auth import models as auth_models
from django.contrib.auth.password_validation import password_changed
from django.contrib.auth.signals import user_logged_in
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from dynamo_single import clock, models
from dynamo_single.auth.granted import UserPermissions
from dynamo_single.auth.groups import ByUnique, GroupsDescriptor
from dynamo_single.exceptions import UniqueViolation
from dynamo_single.orm.schema.types import DynamoModel, all_plain, awaited
from dynamo_single.permission_fields import PermissionsAttribute

U = TypeVar("U", bound="AbstractBaseUser")


class UserExists(UniqueViolation, ValidationError):
    """A new user's name or e-mail address is taken. Nothing was written. Commands show it as a validation error."""

    def __str__(self) -> str:
        return str(self.message)


class BaseUserManager(ByUnique[U], base_user.BaseUserManager[U]):
    """A manager that finds users by their unique values, strongly consistent."""

    def get_by_natural_key(self, username: str | None) -> U:
        """Return the user with this user name, regardless of its case: two strongly consistent GetItems."""
        model: Any = self.model
        return self.get_by_unique(model.USERNAME_FIELD, username)

    async def aget_by_natural_key(self, username: str | None) -> U:
        """Return the same as ``get_by_natural_key()``, asynchronously."""
        model: Any = self.model
        return await awaited(self.get_by_natural_key, partial(self.aget_by_unique, model.USERNAME_FIELD), username)


class UserManager(BaseUserManager[U], auth_models.UserManager[U]):
    """Django's manager of this name. It raises ``UserExists`` if a user name or address is taken."""

    # Django calls these two private methods at the end of create_user() and create_superuser().

    def _create_user(self, username: str, email: str | None, password: str | None, **extra_fields: object) -> U:
        user: U = self._create_user_object(username, email, password, **extra_fields)  # type: ignore[attr-defined]  # not in the stubs
        try:
            self._store(user)
        except UniqueViolation as error:
            raise self._taken(user, error) from error
        return user

    async def _acreate_user(self, username: str, email: str | None, password: str | None, **extra_fields: object) -> U:
        if not all_plain(type(self), ("_create_user",)):
            return await sync_to_async(self._create_user)(username, email, password, **extra_fields)
        # Hashing a password takes long, so that it runs in a thread.
        make: Any = sync_to_async(self._create_user_object)  # type: ignore[attr-defined]  # as above
        user: U = await make(username, email, password, **extra_fields)
        try:
            await self._astore(user)
        except UniqueViolation as error:
            raise self._taken(user, error) from error
        return user

    def _store(self, user: U) -> None:
        """Write a new user."""
        user.save()

    async def _astore(self, user: U) -> None:
        """Write a new user asynchronously."""
        await user.asave()

    def _taken(self, user: DynamoModel, error: UniqueViolation) -> UserExists:
        message = user.unique_error_message(type(user), error.fields).message
        return UserExists(str(message), label=error.label, field=error.field, value=error.value, fields=error.fields)


class _Address(models.EmailAttribute):
    """An address that reads as an empty string if it is missing, like Django's, and is then not stored."""

    if not TYPE_CHECKING:  # to a type checker it is a str, like every e-mail attribute

        def __get__(self, instance: object, owner: object) -> Any:
            value = super().__get__(instance, owner)
            return "" if value is None else value

        def __set__(self, instance: object, value: object) -> None:
            super().__set__(instance, None if value == "" else value)


class AbstractBaseUser(base_user.AbstractBaseUser, models.Model):
    """Django's ``AbstractBaseUser`` in DynamoDB: a password, and the last login."""

    password = models.UnicodeAttribute(_("password"), max_length=128)
    last_login = models.TimestampAttribute(_("last login"), null=True, attr_name="lastLogin")

    class Meta:
        abstract = True

    async def asave(self, *args: object, **options: object) -> None:
        """Save asynchronously, and notify the password validators of a new password, as Django's ``save()`` does."""
        await super().asave(*args, **options)
        password: str | None = self.__dict__.get("_password")
        if password is not None:
            # If Django's save() ran in a thread, it has already notified them.
            await sync_to_async(password_changed)(password, self)
            self._password = None

    @property
    def id(self) -> Any:
        """The ``pk``, under its name on Django's own user. An attribute with this name replaces it."""
        return self.pk


class PermissionsMixin(auth_models.PermissionsMixin, models.Model):
    """Django's ``PermissionsMixin`` in DynamoDB: the user's item stores permissions as ``has_perm()`` names them.

    A subclass whose users can be in groups declares ``groups = Groups("Membership")``.
    """

    is_superuser = models.BooleanAttribute(
        _("superuser status"),
        default=False,
        help_text=_("Designates that this user has all permissions without explicitly assigning them."),
        attr_name="isSuperuser",
    )
    #: The permissions as strings. They decide what the user may do.
    permissions = PermissionsAttribute(_("user permissions"), editable=False)
    user_permissions: Any = UserPermissions()
    #: The ``pk`` of each group. They decide which groups the user is in.
    group_ids = models.UnicodeSetAttribute(_("groups"), editable=False, attr_name="groups")
    # A subclass declares the groups of its users.
    groups: Any = None

    derived_from: ClassVar[tuple[str, ...]] = ("group_ids",)

    class Meta:
        abstract = True

    def derived_objects(self) -> Iterator[models.Model]:
        """Yield one membership for each group. A subclass with further derived objects must yield these too."""
        if isinstance(type(self).groups, GroupsDescriptor):
            for group_id in sorted(self.group_ids or ()):
                yield type(self).groups.through(user_id=self.pk, group_id=group_id)


class AbstractUser(AbstractBaseUser, PermissionsMixin, auth_models.AbstractUser):
    """Django's ``AbstractUser`` in DynamoDB; user names and e-mail addresses are unique regardless of case.

    A subclass adds the identifier and the keys.
    """

    username = models.UnicodeAttribute(
        _("username"),
        max_length=150,
        unique=True,
        canonical=True,
        help_text=_("Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only."),
        validators=[UnicodeUsernameValidator()],
        error_messages={"unique": _("A user with that username already exists.")},
    )
    email = _Address(
        _("email address"),
        null=True,
        unique=True,
        canonical=True,
        error_messages={"unique": _("A user with that email address already exists.")},
    )
    first_name = models.UnicodeAttribute(_("first name"), max_length=150, blank=True, default="", attr_name="firstName")
    last_name = models.UnicodeAttribute(_("last name"), max_length=150, blank=True, default="", attr_name="lastName")
    is_staff = models.BooleanAttribute(
        _("staff status"),
        default=False,
        help_text=_("Designates whether the user can log into this admin site."),
        attr_name="isStaff",
    )
    is_active = models.BooleanAttribute(
        _("active"),
        default=True,
        help_text=_(
            "Designates whether this user should be treated as active. Unselect this instead of deleting accounts."
        ),
        attr_name="isActive",
    )
    date_joined = models.TimestampAttribute(_("date joined"), default=clock.now, attr_name="dateJoined")
    groups: Any = None

    objects: ClassVar[UserManager[Any]] = UserManager()

    class Meta:
        abstract = True
        verbose_name = _("user")
        verbose_name_plural = _("users")


# Django connects its receiver only if last_login is an SQL field. The identifier is also Django's, so that it is never
# connected twice, and disconnecting it works as Django documents.
user_logged_in.connect(auth_models.update_last_login, dispatch_uid="update_last_login")
