"""The rows of ContentType and Permission in a project without SQL, computed from the models.

Nothing is stored. An identifier is 31 bits of the SHA-256 of a name, so that every process computes the same one:
``app_label.model`` of a content type, and ``app_label.model.codename`` of a permission. The system check ``E048``
reports two names with the same identifier.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

from django.apps import apps
from django.contrib.auth import get_permission_codename

#: The permissions without a model: admin pages that show the table itself, or how it is read.
OWN: Final = {
    "view_table": "Can view the table",
    "view_access_patterns": "Can view the access patterns",
    "view_health": "Can view the health of the table",
    "view_costs": "Can view the costs of pages",
}
#: The app of these permissions, and the model's name in their content type.
APP, TABLE = "dynamo_single", "table"

#: The names of actions for which Django's "Can <action> <model>" does not read well.
_NAMES = {"hard_delete": "Can delete {} permanently"}


def permissions_of(model: Any) -> dict[str, str]:
    """Return the codenames and names of a model's permissions: those of ``Meta`` and the default ones."""
    options = model._meta
    found = {
        get_permission_codename(action, options): _NAMES.get(action, f"Can {action} {{}}").format(
            options.verbose_name_raw
        )
        for action in options.default_permissions
    }
    return found | dict(options.permissions)


@lru_cache(maxsize=4096)  # one for each model, and one for each permission
def identifier(name: str) -> int:
    """Return the first 31 bits of the SHA-256 of a name."""
    return int.from_bytes(sha256(name.encode()).digest()[:4]) >> 1


def content_types() -> list[Mapping[str, Any]]:
    """Return a row for each registered model, and one for the permissions without a model."""
    labels = [(model._meta.app_label, model._meta.model_name) for model in _models()]
    return [
        {"id": identifier(f"{app}.{model}"), "app_label": app, "model": model} for app, model in [*labels, (APP, TABLE)]
    ]


def permissions() -> list[Mapping[str, Any]]:
    """Return a row for each permission of each registered model, and for those without a model."""
    # Django creates none for the models of many-to-many fields.
    found = [(each._meta.app_label, each._meta.model_name, permissions_of(each)) for each in apps.get_models()]
    return [
        {
            "id": identifier(f"{app}.{model}.{code}"),
            "name": name,
            "content_type_id": identifier(f"{app}.{model}"),
            "codename": code,
        }
        for app, model, codes in [*found, (APP, TABLE, OWN)]
        for code, name in codes.items()
    ]


#: The functions that return the rows, by the names of the tables in SQL.
TABLES: Final[Mapping[str, Callable[[], list[Mapping[str, Any]]]]] = {
    "django_content_type": content_types,
    "auth_permission": permissions,
}


def collisions() -> list[list[str]]:
    """Return the names that have the same identifier."""
    types = (f"{row['app_label']}.{row['model']}" for row in content_types())
    codes = (
        f"{app}.{model}.{code}"
        for app, model, names in (
            (each._meta.app_label, each._meta.model_name, permissions_of(each)) for each in _models()
        )
        for code in names
    )
    return [*_same(types), *_same(codes)]


def _same(names: Iterator[str]) -> Iterator[list[str]]:
    found: dict[int, set[str]] = defaultdict(set)
    for name in names:
        found[identifier(name)].add(name)
    return (sorted(each) for each in found.values() if len(each) > 1)


def _models() -> list[Any]:
    return apps.get_models(include_auto_created=True)
