"""Django's admin pages of users and groups, without SQL relations."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.admin.forms import AdminPasswordChangeForm as DjangoPasswordChangeForm
from django.contrib.auth import admin as auth_admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from dynamo_single.admin import DynamoModelAdmin
from dynamo_single.contrib.accounts.conf import EMAIL, PHONE, USERNAME, account_settings
from dynamo_single.contrib.accounts.forms import (
    GroupForm,
    LoginForm,
    PasswordChangeForm,
    UserChangeForm,
    UserCreationForm,
)
from dynamo_single.contrib.accounts.models import AbstractUser


class AdminLoginForm(LoginForm, AdminAuthenticationForm):
    """The login form of the admin: ``admin.site.login_form = AdminLoginForm``."""

    error_messages = {  # noqa: RUF012 - as Django declares it
        **LoginForm.error_messages,
        "invalid_login": _(
            "Please enter the correct %(identifier)s and password for a staff account. Passwords are case-sensitive."
        ),
    }

    def confirm_login_allowed(self, user: Any) -> None:
        """Reject users who are not active staff members, with the same message as for a wrong password."""
        if not (user.is_active and user.is_staff):
            raise self.get_invalid_login_error()


class AdminPasswordChangeForm(PasswordChangeForm, DjangoPasswordChangeForm):
    """The password change form of the admin: ``admin.site.password_change_form = AdminPasswordChangeForm``."""


class GroupAdmin(DynamoModelAdmin):
    """The admin pages of groups."""

    form = GroupForm
    fields = ("name", "permissions")
    filter_horizontal = ("permissions",)
    list_display = ("name",)
    search_fields = ("name",)


class UserAdmin(DynamoModelAdmin, auth_admin.UserAdmin):  # type: ignore[type-arg]  # not generic at run time
    """The admin pages of users."""

    form = UserChangeForm
    add_form = UserCreationForm
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        (_("Personal info"), {"fields": ("first_name", "last_name", "email")}),
        (_("Permissions"), {"fields": ("is_active", "is_staff", "is_superuser", "groups", "user_permissions")}),
        (_("Important dates"), {"fields": ("last_login", "date_joined")}),
    )
    add_fieldsets = (
        (None, {"classes": ("wide",), "fields": ("username", "email", "usable_password", "password1", "password2")}),
    )
    list_display = ("username", "email", "first_name", "last_name", "is_staff")
    list_filter = ("is_staff", "is_superuser", "is_active")
    search_fields = ("username", "email")
    filter_horizontal = ("groups", "user_permissions")
    readonly_fields = ("last_login", "date_joined", "ways")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Add the telephone number and the login methods if there are more than a name and an address."""
        found = super().get_fieldsets(request, obj)
        wanted = account_settings().login_with
        has_more = set(wanted) - {EMAIL, USERNAME} or (obj is not None and (obj.more_emails or obj.must_confirm))
        more = [*([PHONE] if PHONE in wanted else []), *(["ways"] if has_more else [])]
        if obj is None or not more:
            return found
        name, options = self.fieldsets[1]
        longer = (name, {**options, "fields": (*options["fields"], *more)})
        return [longer if each == self.fieldsets[1] else each for each in found]

    @admin.display(description=_("Login methods"))
    def ways(self, user: AbstractUser) -> str:
        """Return the kinds and identifiers of the user's login methods. Does not send a request."""
        waits = f" ({_('not confirmed')})"
        shown = (
            f"{each.kind.lower()} {each.identifier}{waits if each.confirmed is False else ''}" for each in user.ways
        )
        return ", ".join(shown)
