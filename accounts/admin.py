"""Users in the admin: Django's pages for users, without relations to SQL."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth import admin as auth_admin
from django.utils.translation import gettext_lazy as _

from accounts.forms import UserChangeForm, UserCreationForm
from accounts.models import User
from dynamo_single.admin import DynamoModelAdmin


@admin.register(User)
class UserAdmin(DynamoModelAdmin, auth_admin.UserAdmin):  # type: ignore[type-arg]  # not generic at run time
    """Users, by name."""

    form = UserChangeForm
    add_form = UserCreationForm
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        (_("Personal info"), {"fields": ("first_name", "last_name", "email")}),
        (_("Permissions"), {"fields": ("is_active", "is_staff", "is_superuser", "permissions")}),
        (_("Important dates"), {"fields": ("last_login", "date_joined")}),
    )
    add_fieldsets = (
        (None, {"classes": ("wide",), "fields": ("username", "email", "usable_password", "password1", "password2")}),
    )
    list_display = ("username", "email", "first_name", "last_name", "is_staff")
    list_filter = ("is_staff", "is_superuser", "is_active")
    search_fields = ("username", "email")
    filter_horizontal = ()
    readonly_fields = ("last_login", "date_joined")
