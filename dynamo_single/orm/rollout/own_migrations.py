"""The migrations of this process's code: their names, which are read from the folders without an import."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from django.apps import apps
from django.conf import settings
from django.core.signals import setting_changed

from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.schema import registry

if TYPE_CHECKING:
    from django.db.migrations import loader
else:
    # Processes that serve requests do not need it.
    loader = LazyModule("django.db.migrations.loader")


@cache
def has_migrations(app_label: str) -> bool:
    """Return whether an app has migrations, including migrations of SQL models; ignore Django's apps."""
    return bool(migration_names(app_label))


@cache
def migration_names(app_label: str) -> tuple[str, ...]:
    """Return the names of an app's migrations in order. They are not imported."""
    # As Django's loader of migrations finds them, which a process that only serves requests does not import.
    modules = settings.MIGRATION_MODULES
    module = modules[app_label] if app_label in modules else f"{apps.get_app_config(app_label).name}.migrations"
    if module is not None and module.startswith("django."):
        return ()
    try:
        spec = None if module is None else find_spec(module)
    except ModuleNotFoundError:
        return ()
    # Django also ignores a module that is not a package, such as dynamo_single.migrations.
    folders = None if spec is None else spec.submodule_search_locations
    if folders is None:
        return ()
    return tuple(sorted(each.name for each in iter_modules(folders) if each.name[0] not in "_~"))


def newest_migrations() -> dict[str, str]:
    """Return the last migration of each app with models: what a process's code knows."""
    labels = sorted({model._meta.app_label for model in registry.all_models()})
    return {label: migration_names(label)[-1] for label in labels if has_migrations(label)}


@cache
def has_migration(name: str) -> bool:
    """Return whether this code has a migration, by ``app.name``, or one that replaces it."""
    app_label, _, migration = name.partition(".")
    if migration in migration_names(app_label):
        return True
    found = loader.MigrationLoader(None, ignore_no_migrations=True, replace_migrations=False)
    return any((app_label, migration) in each.replaces for each in found.disk_migrations.values())


def _forget(*, setting: str, **_: object) -> None:
    if setting in {"DYNAMO_SINGLE", "MIGRATION_MODULES"}:
        for each in (has_migrations, migration_names, has_migration):
            each.cache_clear()


setting_changed.connect(_forget, dispatch_uid="dynamo_single.orm.rollout.own_migrations")
