"""The pages about the table: their addresses, and their links in the admin's index."""

from __future__ import annotations

from django.urls import URLPattern
from django.utils.translation import gettext as _

from dynamo_single.admin.sites import DynamoAdminSite
from dynamo_single.admin.viewing.pages import Listed
from dynamo_single.contrib.table_admin import health, patterns, table_page, views
from dynamo_single.contrib.table_admin.visible_items import HEALTH, PATTERNS, TABLE


def urls(site: DynamoAdminSite) -> list[URLPattern]:
    """Return the addresses of all pages."""
    return [*table_page.urls(site), *views.urls(site), *patterns.urls(site), *health.urls(site)]


def listed() -> list[Listed]:
    """Return the pages for the admin's index, each with its permission."""
    return [
        (_("Table"), "dynamodb_table", TABLE),
        (_("Access patterns"), "dynamodb_patterns", PATTERNS),
        (_("Health"), "dynamodb_health", HEALTH),
    ]
