"""The system check reports uses of Django's users, groups and admin that need an SQL database."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.backends import BaseBackend, ModelBackend
from django.contrib.auth.models import Group, Permission
from django.db import models as django_models
from django.test import override_settings

from accounts.models import User
from dynamo_single import models
from dynamo_single.admin import DynamoAdminSite, DynamoModelAdmin
from dynamo_single.checks.admin import check_admin_logs, check_admin_sites, check_backends
from dynamo_single.checks.models import check_models
from dynamo_single.permissions import StoredPermissions
from tests.unit.declaring import declare, forgotten


class OwnBackend(StoredPermissions, ModelBackend):
    """Django's backend with the permissions of this app."""


class OtherBackend(BaseBackend):
    """A backend without permissions."""


class StockBackend(ModelBackend):
    """Django's backend with a change elsewhere."""


HERE = f"{__name__}."


def names(messages: Any) -> list[str]:
    """Return the subjects of the messages."""
    return [f"{message.id} {message.msg.split()[0]}" for message in messages]


@pytest.mark.parametrize(
    ("path", "is_wrong"),
    [
        ("dynamo_single.contrib.accounts.backends.EmailOrUsernameBackend", False),
        ("django.contrib.auth.backends.ModelBackend", True),
        ("django.contrib.auth.backends.RemoteUserBackend", True),
        (f"{HERE}StockBackend", True),
        (f"{HERE}OwnBackend", False),
        (f"{HERE}OtherBackend", False),
    ],
)
def test_a_backend_that_reads_permissions_from_sql(path: str, is_wrong: bool) -> None:
    """E012 names Django's backend, which is the default, and its subclasses."""
    with override_settings(AUTHENTICATION_BACKENDS=[path]):
        found = check_backends()
    assert [message.id for message in found] == (["dynamo_single.E012"] if is_wrong else [])
    if is_wrong:
        assert path in found[0].msg
        assert "dynamo_single.contrib.accounts.backends.EmailOrUsernameBackend" in str(found[0].hint)


def test_users_in_sql_need_djangos_backend() -> None:
    """E012 is about users in DynamoDB only."""
    with override_settings(
        AUTH_USER_MODEL="auth.User", AUTHENTICATION_BACKENDS=["django.contrib.auth.backends.ModelBackend"]
    ):
        assert check_backends() == []


@pytest.fixture
def stock_site() -> Iterator[admin.AdminSite]:
    """A site of Django's."""
    site = admin.AdminSite(name="stock")
    yield site
    admin.sites.all_sites.discard(site)


@pytest.fixture
def own_site() -> Iterator[DynamoAdminSite]:
    """A site of ours."""
    site = DynamoAdminSite(name="own")
    yield site
    admin.sites.all_sites.discard(site)


def test_sql_groups_in_the_stock_admin(stock_site: admin.AdminSite) -> None:
    """E013 names auth.Group if no database can store it, and the alternative."""
    assert check_admin_sites() == []
    stock_site.register(Group)
    (found,) = check_admin_sites()
    assert found.id == "dynamo_single.E013"
    assert found.msg == (
        "auth.Group is registered in the admin (site 'stock'), but no database of this project can store it: "
        "DATABASES['default'] is dynamo_single.backend."
    )
    assert "DynamoAdminConfig" in str(found.hint)


def test_a_site_that_keeps_its_log_in_sql(stock_site: admin.AdminSite) -> None:
    """E017 names Django's own site if users are in DynamoDB, whatever is registered there."""
    assert check_admin_logs() == []
    stock_site.register(User, DynamoModelAdmin)
    (found,) = check_admin_logs()
    assert found.id == "dynamo_single.E017"
    assert found.msg == (
        "The admin's site 'stock' keeps its log in SQL, and accounts.User is stored in DynamoDB: the site's first page "
        "would fail, and so would saving an object of an SQL model."
    )
    assert "dynamo_single.admin.DynamoAdminSite" in str(found.hint)
    with override_settings(AUTH_USER_MODEL="auth.User"):
        assert check_admin_logs() == []


def test_djangos_own_models_are_left_out_by_our_site(own_site: DynamoAdminSite) -> None:
    """Groups and permissions that Django registers are no mistake there; a project's SQL model is."""
    own_site.register([Group, Permission])
    assert check_admin_sites() == []

    class Parcel(django_models.Model):
        class Meta:
            app_label = "catalog"

        def __str__(self) -> str:
            return "a parcel"

    try:
        own_site.register(Parcel)
        assert names(check_admin_sites()) == ["dynamo_single.E013 catalog.Parcel"]
    finally:
        Parcel._meta.apps.all_models["catalog"].pop("parcel")
        Parcel._meta.apps.clear_cache()


@pytest.mark.parametrize("to", ["auth.Permission", "auth.Group", Group])
def test_a_relation_to_sql_permissions(to: Any) -> None:
    """E008 names the alternative to many-to-many fields for permissions and groups."""
    with forgotten():
        model = declare(
            "Keeper",
            ("KEEPER#{k}", "#X"),
            k=models.IdAttribute(),
            rights=django_models.ManyToManyField(to, related_name="+"),
        )
        (found,) = [m for m in check_models() if m.obj is model and m.id == "dynamo_single.E008"]
    assert "derive the model from dynamo_single.auth.PermissionsMixin" in str(found.hint)
