"""W916 and W917: options of an admin that name secrets, and copies of secrets that are declared as not secret.

The admin omits or masks the secrets that W916 names. The checks do not send requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from django.apps import AppConfig
from django.core.checks import CheckMessage, Warning

from dynamo_single.admin import secrets
from dynamo_single.checks.admin import registered_admins
from dynamo_single.orm.schema import registry

#: The options of an admin that must not name secrets. It omits or masks them.
_OPTIONS: Final = (
    "date_hierarchy",
    "list_display",
    "list_editable",
    "list_filter",
    "ordering",
    "search_fields",
)


def check_admins(app_configs: Sequence[AppConfig] | None = None, **kwargs: object) -> list[CheckMessage]:
    """W916: an admin with an option that names a secret, or with addresses that contain one."""
    return [warning for model_admin in registered_admins() for warning in _of_admin(model_admin)]


def _of_admin(model_admin: Any) -> Iterator[CheckMessage]:
    own, label = type(model_admin), model_admin.model._meta.label
    found = []
    for option in _OPTIONS:
        names = getattr(own, option) or ()
        named = [names] if isinstance(names, str) else names
        found += [f"{option}: {name!r}" for name in named if secrets.is_secret(model_admin, name)]
    if found:
        yield Warning(
            f"The admin of {label} names secrets in {', '.join(found)}. The list does not filter, search or order by "
            "them, and its columns have masks.",
            hint="Remove them. If one is no secret, declare the attribute with secret=False.",
            obj=own,
            id="dynamo_single.W916",
        )
    if secrets.is_secret(model_admin, "pk"):
        yield Warning(
            f"The primary key of {label} contains a secret, and addresses and the log of its admin contain the key.",
            hint="Unregister the model, give it another primary key, or declare the attribute with secret=False.",
            obj=own,
            id="dynamo_single.W916",
        )


def check_copies(app_configs: Sequence[AppConfig] | None = None, **kwargs: object) -> list[CheckMessage]:
    """W917: an attribute that is declared with ``secret=False`` but repeats the value of a secret."""
    labels = None if app_configs is None else {config.label for config in app_configs}
    return [
        Warning(
            f"{model._meta.label}.{name} is declared with secret=False, and repeats {origin.name}, a secret.",
            hint="Remove secret=False, or declare the original with secret=False too.",
            obj=model,
            id="dynamo_single.W917",
        )
        for model in registry.all_models()
        if labels is None or model._meta.app_label in labels
        for name, attribute in registry.attributes_of(model).items()
        if attribute.secret is False
        for origin, path in attribute.origins()
        if origin.hides(path)
    ]
