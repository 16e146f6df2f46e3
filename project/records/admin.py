"""The records in the admin."""

from __future__ import annotations

from django.contrib import admin

from dynamo_single.admin import DynamoModelAdmin
from project.records.models import Book


@admin.register(Book)
class BookAdmin(DynamoModelAdmin):
    """Books, the newest first; the map is edited as JSON."""

    list_display = ("__str__", "author", "price", "created_at")
    list_filter = ("author",)
    ordering = ("-created_at",)
    fields = ("data",)
