"""W912 names a model of ``django.db.models`` in a project without SQL before its first query fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.db import connections
from django.db import models as django_models
from django.test import override_settings

from dynamo_single.checks.references import check_sql_models

Declare = Callable[..., type[django_models.Model]]


@pytest.fixture
def declare_sql() -> Iterator[Declare]:
    """Declares models for an SQL database, which are forgotten after the test."""
    declared: list[type[django_models.Model]] = []

    def declare(name: str, *bases: type[django_models.Model], app: str = "catalog", **meta: Any) -> Any:
        options = type("Meta", (), {"app_label": app, **meta})
        values = {"Meta": options, "__module__": __name__, "__str__": lambda self: name}
        model: Any = type(name, bases or (django_models.Model,), values)
        declared.append(model)
        return model

    yield declare
    for model in declared:
        apps.all_models[model._meta.app_label].pop(model._meta.model_name, None)
    apps.clear_cache()


def test_models_for_sql_are_named_with_the_ways_out(declare_sql: Declare) -> None:
    """Each app has one warning for any number of models."""
    declare_sql("Leaflet")
    declare_sql("Sticker")
    (found,) = check_sql_models()
    assert str(found) == (
        "catalog: (dynamo_single.W912) catalog.Leaflet, catalog.Sticker are models for an SQL database, but this "
        "project has no such database (DATABASES['default'] is dynamo_single.backend): every query of them "
        "raises an error.\n"
        "\tHINT: Keep this data in a model of dynamo_single.models, or add an SQL database to DATABASES and send the "
        "app's models to it with DATABASE_ROUTERS."
    )


def test_what_would_have_no_table_of_its_own_is_right(declare_sql: Declare) -> None:
    """This includes abstract models, views of another database, and swapped models."""
    declare_sql("Base", abstract=True)
    declare_sql("View", managed=False)
    declare_sql("Replaced", swappable="AUTH_USER_MODEL")
    assert check_sql_models() == []


def test_a_proxy_is_named_by_its_model_only(declare_sql: Declare) -> None:
    declare_sql("Short", declare_sql("Leaflet"), proxy=True)
    (found,) = check_sql_models()
    assert found.msg.startswith("catalog.Leaflet is a model for an SQL database")


def test_djangos_own_models_are_left_to_other_checks() -> None:
    """Users, groups, content types, sessions and the admin's log are installed here without a report."""
    installed = {config.name for config in apps.get_app_configs()} | {"django.contrib.sessions"}
    assert {f"django.contrib.{name}" for name in ("auth", "contenttypes", "admin")} <= installed
    with override_settings(INSTALLED_APPS=sorted(installed)):
        assert check_sql_models() == []


@pytest.mark.parametrize("name", ["catalog.Person2", "catalog.person2"])
def test_a_user_model_has_a_warning_of_its_own(declare_sql: Declare, name: str) -> None:
    """W902 explains the alternative for users; Django ignores the case of the model's name."""
    declare_sql("Person2")
    with override_settings(AUTH_USER_MODEL=name):
        assert check_sql_models() == []


def test_only_the_apps_that_are_asked_for_are_looked_at(declare_sql: Declare) -> None:
    declare_sql("Leaflet")
    assert check_sql_models([apps.get_app_config("accounts")]) == []
    assert len(check_sql_models([apps.get_app_config("catalog")])) == 1


class ToSQL:
    """A project's router."""

    def db_for_write(self, model: type[django_models.Model], **hints: object) -> str | None:
        """Everything of the catalogue is in the other database."""
        return "other" if model._meta.app_label == "catalog" else None


def test_a_model_that_a_router_sends_to_an_sql_database_is_right(
    declare_sql: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare_sql("Leaflet")
    monkeypatch.setitem(connections.settings, "other", {"ENGINE": "django.db.backends.sqlite3"})
    with override_settings(DATABASE_ROUTERS=[f"{__name__}.ToSQL"]):
        assert check_sql_models() == []


def test_sites_have_a_way_out_of_their_own() -> None:
    """You do not rewrite a model of Django."""
    installed = [*(config.name for config in apps.get_app_configs()), "django.contrib.sites"]
    with override_settings(INSTALLED_APPS=installed):
        (found,) = check_sql_models()
    # The admin has discovered that app's registrations, and pages of other tests would show them.
    for model in [each for each in admin.site._registry if each._meta.app_label == "sites"]:
        admin.site.unregister(model)
    assert str(found.hint).startswith("Leave django.contrib.sites out of INSTALLED_APPS: get_current_site() gives")
