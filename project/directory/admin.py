"""The directory in the admin."""

from __future__ import annotations

from django.contrib import admin

from dynamo_single.admin import DynamoModelAdmin, DynamoTabularInline
from project.directory.models import Company, Office, Person


class PersonInline(DynamoTabularInline):
    """A company's people."""

    model = Person
    fields = ("name", "email", "role")
    show_change_link = True


class OfficeInline(DynamoTabularInline):
    """A company's offices."""

    model = Office
    fields = ("city", "address", "opened")
    show_change_link = True


@admin.register(Company)
class CompanyAdmin(DynamoModelAdmin):
    """Companies, by name."""

    list_display = ("name", "stock", "founded", "public")
    list_filter = ("public",)
    search_fields = ("name",)
    inlines = (PersonInline, OfficeInline)


@admin.register(Person)
class PersonAdmin(DynamoModelAdmin):
    """People of all companies, by name."""

    list_display = ("name", "email", "role", "company")
    list_filter = ("role",)
    search_fields = ("name", "email")
    autocomplete_fields = ("company",)


@admin.register(Office)
class OfficeAdmin(DynamoModelAdmin):
    """Offices of all companies, by city."""

    list_display = ("city", "address", "opened", "company")
    search_fields = ("city",)
    autocomplete_fields = ("company",)
