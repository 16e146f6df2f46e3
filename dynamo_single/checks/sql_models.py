"""W912: models for an SQL database, where there is none.

A first model is easily derived from ``django.db.models.Model``; nothing says so before its first query is refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from django.apps import AppConfig, apps
from django.conf import settings
from django.core.checks import CheckMessage, Warning
from django.db import models, router

from dynamo_single.backend.errors import ENGINE, is_stored_in_dynamodb, way_out
from dynamo_single.backend.router import uses_engine

#: E013, W902 and W903 name what stands in for their models, where something would ask these.
_REPLACED: Final = frozenset(f"django.contrib.{name}" for name in ("admin", "auth", "contenttypes", "sessions"))


def check_sql_models(app_configs: Sequence[AppConfig] | None = None, **kwargs: object) -> list[CheckMessage]:
    """One warning for each app, with all of its models that no database can hold."""
    found: dict[tuple[AppConfig, str], list[type[models.Model]]] = defaultdict(list)
    for model in apps.get_models():
        config = model._meta.app_config
        if config is None or (app_configs is not None and config not in app_configs):
            continue
        if config.name not in _REPLACED and _is_table(model) and uses_engine(alias := router.db_for_write(model)):
            found[config, alias].append(model)
    return [_warning(config, alias, each) for (config, alias), each in found.items()]


def _is_table(model: type[models.Model]) -> bool:
    """Whether a model would have a table of its own; a user model has a warning of its own."""
    options = model._meta
    is_user = options.label_lower == settings.AUTH_USER_MODEL.lower()
    return options.managed and not (options.proxy or options.swapped or is_user or is_stored_in_dynamodb(model))


def _warning(config: AppConfig, alias: str, unusable: Sequence[type[models.Model]]) -> Warning:
    names = ", ".join(model._meta.label for model in unusable)
    is_one = len(unusable) == 1
    return Warning(
        f"{names} {'is a model' if is_one else 'are models'} for an SQL database, and this project has none "
        f"(DATABASES[{alias!r}] is {ENGINE}): every query of {'it' if is_one else 'them'} is an error.",
        hint=f"{way_out(unusable[0])}, or add an SQL database to DATABASES and send the app's models to it with "
        "DATABASE_ROUTERS.",
        obj=config.label,
        id="dynamo_single.W912",
    )
