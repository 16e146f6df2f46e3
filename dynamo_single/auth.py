"""Users in DynamoDB: Django's abstract user models with attributes in the place of their SQL fields.

The methods are Django's own, sync and async. This module replaces what is bound to SQL (fields and many-to-many
relations) and adds the strongly consistent look-up by a unique attribute. ``django.contrib.auth`` and
``django.contrib.contenttypes`` have to be installed.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from asgiref.sync import sync_to_async
from django.apps import apps
from django.contrib.auth import base_user, get_permission_codename
from django.contrib.auth import models as auth_models
from django.contrib.auth.signals import user_logged_in
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from dynamo_single import models, uniqueness
from dynamo_single.exceptions import InvalidValue, UniqueViolation

U = TypeVar("U", bound=base_user.AbstractBaseUser)


class UserExists(UniqueViolation, ValidationError):
    """A new user's name or e-mail address is taken; nothing was written. Commands show it as the message it is."""

    def __str__(self) -> str:
        return str(self.message)


class BaseUserManager(models.Manager[U], base_user.BaseUserManager[U]):
    """Looks users up by what is unique about them, strongly consistent."""

    def get_by_unique(self, attribute: str, value: Any) -> U:
        """The user who holds a value of a unique attribute, also one who signed up just now.

        Two GetItems, strongly consistent; one if nobody holds it.
        """
        model: Any = self.model
        described = model._meta.get_field(attribute).attribute
        try:
            wanted = uniqueness.claim_key(model, described, value)
            item = uniqueness.owner_item(model, described, value)
        except InvalidValue:
            item = None  # nobody holds what cannot be stored
        # Between the two reads the value may have gone to somebody else.
        if item is None or uniqueness.claims_of(model, item).get(attribute) != wanted:
            raise model.DoesNotExist(f"No {model._meta.label} has {attribute} {value!r}.")
        user: U = model.from_item(dict(item))
        return user

    def get_by_natural_key(self, username: str | None) -> U:
        """The user of this user name, whatever its case: two GetItems, strongly consistent."""
        model: Any = self.model
        return self.get_by_unique(model.USERNAME_FIELD, username)

    async def aget_by_natural_key(self, username: str | None) -> U:
        """See ``get_by_natural_key()``."""
        return await sync_to_async(self.get_by_natural_key)(username)


class UserManager(BaseUserManager[U], auth_models.UserManager[U]):
    """Creates users as Django's manager of this name does; ``UserExists`` if a name or address is taken."""

    # The three below are private to Django (checked with 5.2): what create_user() and create_superuser() end in.

    def _create_user_object(self, username: str, email: str | None, password: str | None, **extra_fields: Any) -> U:
        user: Any = super()._create_user_object(username, email, password, **extra_fields)  # type: ignore[misc]  # not in the stubs
        user.email = user.email or None
        result: U = user
        return result

    def _create_user(self, username: str, email: str | None, password: str | None, **extra_fields: Any) -> U:
        user = self._create_user_object(username, email, password, **extra_fields)
        try:
            user.save()
        except UniqueViolation as error:
            raise self._taken(user, error) from error
        return user

    async def _acreate_user(self, username: str, email: str | None, password: str | None, **extra_fields: Any) -> U:
        return await sync_to_async(self._create_user)(username, email, password, **extra_fields)

    def _taken(self, user: Any, error: UniqueViolation) -> UserExists:
        message = user.unique_error_message(type(user), [error.field]).message
        return UserExists(str(message), label=error.label, field=error.field, value=error.value)


class AbstractBaseUser(base_user.AbstractBaseUser, models.Model):
    """Django's ``AbstractBaseUser`` in DynamoDB: a password, and the last login."""

    password = models.UnicodeAttribute(_("password"), max_length=128)
    last_login = models.TimestampAttribute(_("last login"), null=True, attr_name="lastLogin")

    class Meta:
        abstract = True


class PermissionsMixin(auth_models.PermissionsMixin, models.Model):
    """Django's ``PermissionsMixin`` in DynamoDB: permissions are stored with the user, as has_perm() takes them."""

    is_superuser = models.BooleanAttribute(
        _("superuser status"),
        default=False,
        help_text=_("Designates that this user has all permissions without explicitly assigning them."),
        attr_name="isSuperuser",
    )
    permissions = models.UnicodeSetAttribute(
        _("user permissions"), help_text=_("Permissions such as directory.change_company, one a line.")
    )
    # The relations to SQL models of the same names are gone.
    groups = None  # type: ignore[assignment]  # the stubs know the relation only
    user_permissions = None  # type: ignore[assignment]  # see groups

    class Meta:
        abstract = True


class AbstractUser(AbstractBaseUser, PermissionsMixin, auth_models.AbstractUser):
    """Django's ``AbstractUser`` in DynamoDB; user names and e-mail addresses are unique, whatever their case.

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
    email = models.EmailAttribute(
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
    date_joined = models.TimestampAttribute(_("date joined"), default=timezone.now, attr_name="dateJoined")
    groups = None  # type: ignore[assignment]  # the stubs know the relation only
    user_permissions = None  # type: ignore[assignment]  # see groups

    objects: ClassVar[UserManager[Any]] = UserManager()

    class Meta:
        abstract = True
        verbose_name = _("user")
        verbose_name_plural = _("users")

    def clean(self) -> None:
        """Normalise the user name and the address; no address is ``None``."""
        super().clean()
        self.email = self.email or None


def all_permissions() -> frozenset[str]:
    """Every permission that there is: those of each registered model, wherever it is stored."""
    found = set()
    for model in apps.get_models(include_auto_created=True):
        options = model._meta
        if options.auto_created and not issubclass(model, models.Model):
            continue  # the table behind a many-to-many relation
        codenames = [get_permission_codename(action, options) for action in options.default_permissions]
        codenames += [codename for codename, _name in options.permissions]
        found |= {f"{options.app_label}.{codename}" for codename in codenames}
    return frozenset(found)


# Django connects its own receiver only if last_login is an SQL field. The identifier is Django's too, so that it is
# never connected twice, and disconnecting it works as Django documents.
user_logged_in.connect(auth_models.update_last_login, dispatch_uid="update_last_login")
