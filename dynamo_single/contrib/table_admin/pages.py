"""The pages about the table: their addresses, and their links in the admin's index."""

from __future__ import annotations

from django.urls import URLPattern
from django.utils.translation import gettext as _

from dynamo_single.admin.sites import DynamoAdminSite
from dynamo_single.admin.viewing.pages import Listed
from dynamo_single.contrib.table_admin import health, patterns, views
from dynamo_single.contrib.table_admin.explorer import table_page
from dynamo_single.contrib.table_admin.pictures import page
from dynamo_single.contrib.table_admin.visible_items import HEALTH, PATTERNS, TABLE


def urls(site: DynamoAdminSite) -> list[URLPattern]:
    """Return the addresses of all pages."""
    return [*table_page.urls(site), *views.urls(site), *patterns.urls(site), *page.urls(site), *health.urls(site)]


def listed() -> list[Listed]:
    """Return the pages for the admin's index, each with its permission."""
    return [
        (_("Table"), "dynamodb_table", TABLE),
        (_("Access patterns"), "dynamodb_patterns", PATTERNS),
        (_("Pictures"), "dynamodb_pictures", TABLE),
        (_("Health"), "dynamodb_health", HEALTH),
    ]
