"""The user service in the admin."""

from __future__ import annotations

from django.contrib import admin

from dynamo_single.admin import DynamoModelAdmin, DynamoTabularInline
from project.service.models import Beneficiary, Email, User


class EmailInline(DynamoTabularInline):
    """A user's addresses."""

    model = Email
    fields = ("email",)
    extra = 0


@admin.register(User)
class UserAdmin(DynamoModelAdmin):
    """Users, the newest first."""

    list_display = ("last_name", "first_name", "beneficiary", "created")
    list_filter = ("beneficiary",)
    search_fields = ("last_name_canonical",)
    ordering = ("-created",)
    inlines = (EmailInline,)


@admin.register(Email)
class EmailAdmin(DynamoModelAdmin):
    """E-mail addresses of all users."""

    list_display = ("email", "user", "created")
    search_fields = ("email",)
    autocomplete_fields = ("user",)


@admin.register(Beneficiary)
class BeneficiaryAdmin(DynamoModelAdmin):
    """Beneficiaries, to which users belong."""

    list_display = ("name", "beneficiary_id")
