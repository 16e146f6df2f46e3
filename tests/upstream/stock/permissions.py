"""The permissions that upstream gives to users, as names: they are stored with the user, and in no table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.apps import apps
from django.contrib.auth.backends import ModelBackend
from django.contrib.contenttypes import models as contenttypes

from dynamo_single.permissions import StoredPermissions, permissions_of


class Backend(StoredPermissions, ModelBackend):
    """Django's backend, for users whose permissions are stored with them."""


class ContentTypes:
    """What upstream asks for the type of a model to name a permission with."""

    def get_for_model(self, model: Any, for_concrete_model: bool = True) -> Any:
        """A type that is stored nowhere."""
        itself = model if isinstance(model, type) else type(model)
        options = (model._meta.concrete_model if for_concrete_model else itself)._meta
        return contenttypes.ContentType(app_label=options.app_label, model=options.model_name)

    def clear_cache(self) -> None:
        """Nothing: none are kept."""


class ContentType:
    """What is asked for types of models."""

    objects = ContentTypes()


class Permission:
    """A permission by its name, such as ``admin_views.add_article``."""

    def __init__(self, name: str) -> None:
        self.name = name


class Found(list[Permission]):
    """What a question for permissions finds."""

    def get(self) -> Permission:
        """The only one."""
        (found,) = self
        return found

    def values_list(self, *names: str, flat: bool = True) -> Found:
        """The permissions themselves, which are given to users."""
        return self

    def first(self) -> Permission | None:
        """The first one."""
        return self[0] if self else None


class Permissions:
    """What upstream asks for permissions: those of every model that is installed, and those that it makes itself."""

    def __init__(self) -> None:
        self.made: set[str] = set()

    def filter(self, codename: str | None = None, content_type: Any = None, codename__endswith: str = "") -> Found:
        """The permissions of a name, or of a model."""
        found = {
            f"{model._meta.app_label}.{code}"
            for model in apps.get_models()
            if content_type is None or _names(content_type) == (model._meta.app_label, model._meta.model_name)
            for code in permissions_of(model)
        }
        ending = codename__endswith if codename is None else f".{codename}"
        return Found(Permission(name) for name in sorted(found | self.made) if name.endswith(ending))

    def get(self, **asked: Any) -> Permission:
        """The only one."""
        return self.filter(**asked).get()

    def create(self, codename: str, content_type: Any, name: str = "") -> Permission:
        """One that no model declares."""
        self.made.add(f"{content_type.app_label}.{codename}")
        return Permission(f"{content_type.app_label}.{codename}")


def _names(content_type: Any) -> tuple[str, str]:
    return content_type.app_label, content_type.model


Permission.objects = Permissions()  # type: ignore[attr-defined]  # as on a model


class Granted:
    """The manager ``user.user_permissions``: what is added is stored with the user."""

    def __init__(self, user: Any) -> None:
        self.user = user

    def _save(self, names: Iterable[str]) -> None:
        self.user.permissions = set(names)
        self.user.save(update_fields=["permissions"])

    def add(self, *permissions: Permission) -> None:
        """Grant permissions."""
        self._save({*(self.user.permissions or ()), *(each.name for each in permissions)})

    def remove(self, *permissions: Permission) -> None:
        """Take permissions away."""
        self._save({*(self.user.permissions or ())} - {each.name for each in permissions})

    def clear(self) -> None:
        """Take all permissions away."""
        self._save(())

    def set(self, permissions: Iterable[Permission]) -> None:
        """Grant these and no others."""
        self._save(each.name for each in permissions)
