"""System checks of users, groups and permissions: what of Django's own takes an SQL database that is not there.

They are about settings and admin sites; ``checks`` looks at models.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.apps import AppConfig, apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.checks import CheckMessage, Error
from django.db import router
from django.utils.module_loading import import_string

from dynamo_single.backend.errors import is_stored_in_dynamodb
from dynamo_single.backend.router import uses_engine


def check_backends(app_configs: Sequence[AppConfig] | None = None, **kwargs: object) -> list[CheckMessage]:
    """E012: a backend that reads the permissions of users in DynamoDB from SQL tables."""
    if not apps.is_installed("django.contrib.auth"):
        return []
    from django.contrib.auth.backends import ModelBackend
    from django.contrib.auth.models import PermissionsMixin

    user_model: Any = get_user_model()
    if not (is_stored_in_dynamodb(user_model) and issubclass(user_model, PermissionsMixin)):
        return []
    return [
        Error(
            f"AUTHENTICATION_BACKENDS names {path}, which reads permissions from SQL tables, and "
            f"{user_model._meta.label} is stored in DynamoDB: every permission check would fail.",
            hint="Use accounts.backends.EmailOrUsernameBackend, or put dynamo_single.permissions.StoredPermissions in "
            "front of the bases of your own backend.",
            obj=user_model,
            id="dynamo_single.E012",
        )
        for path in settings.AUTHENTICATION_BACKENDS
        if (backend := _backend(path)) is not None
        and issubclass(backend, ModelBackend)
        and backend.get_user_permissions is ModelBackend.get_user_permissions
    ]


def _backend(path: str) -> Any:
    try:
        return import_string(path)
    except ImportError:
        return None  # E020 says so


def check_admin_sites(app_configs: Sequence[AppConfig] | None = None, **kwargs: object) -> list[CheckMessage]:
    """E013: a model for an SQL database on a site of the admin, where there is no such database.

    An error and no warning: every page of the model would fail, and what registers it can be taken out.
    """
    if not apps.is_installed("django.contrib.admin"):
        return []
    from django.contrib.admin.sites import all_sites

    from dynamo_single.admin.sites import DynamoAdminSite

    messages: list[CheckMessage] = []
    for site in all_sites:
        unusable = [model for model in site._registry if _has_no_database(model)]
        if isinstance(site, DynamoAdminSite):
            # What Django registers by itself, such as auth.Group, this site leaves out.
            unusable = [model for model in unusable if not _is_djangos(model)]
        messages += _unusable(site, unusable)
    return messages


def check_admin_logs(app_configs: Sequence[AppConfig] | None = None, **kwargs: object) -> list[CheckMessage]:
    """E017: a site of the admin that keeps its log in SQL, while the users are in DynamoDB."""
    if not apps.is_installed("django.contrib.admin"):
        return []
    from django.contrib.admin.sites import all_sites

    from dynamo_single.admin.sites import DynamoAdminSite

    user_model: Any = get_user_model()
    if not is_stored_in_dynamodb(user_model):
        return []
    return [
        Error(
            f"The admin's site {site.name!r} keeps its log in SQL, and {user_model._meta.label} is stored in DynamoDB: "
            "the site's first page would fail, and so would saving an object of an SQL model.",
            hint="Make it a dynamo_single.admin.DynamoAdminSite. If it is the default site, put "
            "dynamo_single.admin.apps.DynamoAdminConfig into INSTALLED_APPS in the place of django.contrib.admin.",
            obj=site,
            id="dynamo_single.E017",
        )
        for site in all_sites
        if site._registry and not isinstance(site, DynamoAdminSite)
    ]


def _has_no_database(model: Any) -> bool:
    return not is_stored_in_dynamodb(model) and uses_engine(router.db_for_write(model))


def _is_djangos(model: object) -> bool:
    return str(model.__module__).startswith("django.contrib.")


def _unusable(site: Any, models: Sequence[Any]) -> Iterator[Error]:
    for model in models:
        hint = f"Leave {model._meta.object_name} out of the site, or keep its data in a model of dynamo_single.models."
        if _is_djangos(model):
            hint = (
                "Put dynamo_single.admin.apps.DynamoAdminConfig into INSTALLED_APPS in the place of "
                "django.contrib.admin: its site leaves such models out. Groups of users in DynamoDB are accounts.Group."
            )
        yield Error(
            f"{model._meta.label} is registered in the admin (site {site.name!r}), and no database of this project can "
            f"hold it: DATABASES[{router.db_for_write(model)!r}] is dynamo_single.backend.",
            hint=hint,
            obj=model,
            id="dynamo_single.E013",
        )
