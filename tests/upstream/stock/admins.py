"""Replace Django's admin for upstream's tests with this app's, registered as in a project."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import Any

from django.contrib import admin
from django.contrib.admin import models as log_models
from django.contrib.admin import options, sites
from django.contrib.auth import admin as auth_admin
from django.contrib.auth import models as auth_models
from django.contrib.contenttypes import models as contenttypes_models

from dynamo_single.admin import DynamoAdminSite, DynamoModelAdmin, DynamoStackedInline, DynamoTabularInline
from dynamo_single.admin.log import LogEntry
from tests.upstream.converted import Refusing
from tests.upstream.stock import permissions

__all__ = ["AdminSite", "LogEntry", "ModelAdmin", "StackedInline", "TabularInline"]

#: The modules that provide all names that are not replaced.
DJANGO: tuple[ModuleType, ...] = (
    *(admin, options, sites, log_models),
    # auth_models contains our users and groups; auth_admin imported Django's before.
    *(auth_models, auth_admin, contenttypes_models),
)


auth_models.PermissionManager.create = permissions.declared  # type: ignore[method-assign, assignment]


class ModelAdmin(DynamoModelAdmin[Any]):
    """Ours, under Django's name. Upstream looks for a year that is written as a number, ``2,000``."""

    list_max_in_memory = 1999


class TabularInline(DynamoTabularInline):
    """Ours, with as many empty rows as Django's."""

    extra = 3


class StackedInline(DynamoStackedInline):
    """Ours, with as many empty rows as Django's."""

    extra = 3


class AdminSite(DynamoAdminSite):
    """Our site; it registers our admin for a model without its own, and skips a model that cannot be declared."""

    def register(self, model_or_iterable: Any, admin_class: Any = None, **options: Any) -> None:
        """Register the models that could be declared."""
        models = model_or_iterable if isinstance(model_or_iterable, Iterable) else [model_or_iterable]
        found = [model for model in models if not isinstance(model, Refusing)]
        super().register(found, admin_class or ModelAdmin, **options)


class UserAdmin(ModelAdmin, auth_admin.UserAdmin):  # type: ignore[type-arg]  # not generic at run time
    """Django's page for users."""


class GroupAdmin(ModelAdmin):
    """A page for groups."""

    search_fields = ("name",)


def __getattr__(name: str) -> Any:
    for module in DJANGO:
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(name)
