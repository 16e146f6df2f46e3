"""The demo's changelist of companies, on SQL."""

from __future__ import annotations

from django.contrib import admin

from benchmarks.sql.models import SqlCompany


@admin.register(SqlCompany)
class SqlCompanyAdmin(admin.ModelAdmin):
    """Companies, by name."""

    list_display = ("name", "stock", "founded", "public")
    list_filter = ("public",)
    search_fields = ("name",)
