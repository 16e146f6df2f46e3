"""Permissions as strings, their names, and the backend methods that check them.

A permission is the string ``app_label.codename``, which users and groups store. If an SQL database contains Django's
``Permission`` rows, this module adds the rows that Django does not create. It must not depend on the storage of users.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from django.apps import apps as installed
from django.contrib.auth import get_user_model
from django.db import DEFAULT_DB_ALIAS, router
from django.db.models import Q

from dynamo_single.backend.errors import is_stored_in_dynamodb
from dynamo_single.backend.router import uses_engine
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.table.flow import call_method, run

if TYPE_CHECKING:
    from django.contrib.auth.backends import BaseBackend as _Base

    from dynamo_single.backend import computed_models
else:
    computed_models = LazyModule("dynamo_single.backend.computed_models")
    # Django's module imports the user model, which may not exist yet.
    _Base = object


def permissions_of(model: Any) -> dict[str, str]:
    """Return the codenames and names of a model's permissions, including the default permissions."""
    return computed_models.permissions_of(model)


def all_permissions() -> frozenset[str]:
    """Return all permissions of this app and of each registered model in any database.

    Sends no request.
    """
    of_models = (
        f"{model._meta.app_label}.{code}" for model in installed.get_models() for code in permissions_of(model)
    )
    return frozenset((*(f"{computed_models.APP}.{code}" for code in computed_models.OWN), *of_models))


def permission_choices() -> list[tuple[str, str]]:
    """Return the choices of a form: permissions with their names as in Django, sorted by name.

    In a project without an SQL database, omit the permissions of SQL models. Sends no request.
    """
    found = {f"{computed_models.APP}.{code}": f"DynamoDB | {name}" for code, name in computed_models.OWN.items()}
    for model in installed.get_models():
        if not is_stored_in_dynamodb(model) and uses_engine(router.db_for_read(model)):
            continue
        options = model._meta
        for code, name in permissions_of(model).items():
            found[f"{options.app_label}.{code}"] = (
                f"{options.app_config.verbose_name} | {options.verbose_name} | {name}"
            )
    return sorted(found.items(), key=lambda choice: (choice[1].casefold(), choice[0]))


def create_rows(
    app_config: Any, verbosity: int = 2, using: str = DEFAULT_DB_ALIAS, apps: Any = installed, **kwargs: object
) -> None:
    """Add missing ``Permission`` rows of an app's models after ``migrate``.

    Django's own handler uses the models of an app's migrations. It misses models without migrations, and the
    permissions of the trash. If no SQL database contains ``Permission``, this function does nothing.
    """
    config = installed.app_configs.get(app_config.label)
    models: list[Any] = [] if config is None else [*config.get_models()]
    models = [model for model in models if is_stored_in_dynamodb(model)]
    try:
        permission_model, type_model = apps.get_model("auth.Permission"), apps.get_model("contenttypes.ContentType")
    except LookupError:
        return
    wanted = {model._meta.model_name: permissions_of(model) for model in models}
    if app_config.label == computed_models.APP:
        wanted[computed_models.TABLE] = computed_models.OWN
    if not wanted or not router.allow_migrate_model(using, permission_model):
        return
    rows = permission_model._default_manager.using(using)
    known = {(label, model, code) for label, model, code in rows.values_list(*_NATURAL_KEY)}
    missing = []
    label = app_config.label
    for name, permissions in wanted.items():
        content_type, _ = type_model._default_manager.using(using).get_or_create(app_label=label, model=name)
        missing += [
            permission_model(codename=code, name=title, content_type=content_type)
            for code, title in permissions.items()
            if (label, name, code) not in known
        ]
    rows.bulk_create(missing)
    if verbosity >= 2:
        for row in missing:
            print(f"Adding permission '{app_config.label} | {row.content_type.model} | {row.name}'")


_NATURAL_KEY = ("content_type__app_label", "content_type__model", "codename")


class StoredPermissions(_Base):
    """The permission methods of an authentication backend, a base to list before Django's backend class.

    Reading a user's own permissions sends no request. Reading the permissions of groups sends one strongly consistent
    request if the user is in a group and not a superuser. The user object caches the result, as in Django. Inactive
    users have no permissions, and there are no permissions for individual objects.
    """

    def get_user_permissions(self, user_obj: object, obj: object = None) -> set[str]:
        """Return the permissions stored with the user, or all permissions for a superuser."""
        return run(self._permissions(user_obj, obj, "user"))

    def get_group_permissions(self, user_obj: object, obj: object = None) -> set[str]:
        """Return the permissions of the user's groups, or all permissions for a superuser."""
        return run(self._permissions(user_obj, obj, "group"))

    def get_all_permissions(self, user_obj: Any, obj: object = None) -> set[str]:
        """Return the permissions of the user and of the user's groups."""
        return run(self._all_permissions(user_obj, obj))

    async def _all_permissions(self, user_obj: Any, obj: object = None) -> set[str]:
        if not _may_have_any(user_obj, obj):
            return set()
        if not hasattr(user_obj, "_perm_cache"):
            own = await call_method(self, "get_user_permissions", user_obj)
            user_obj._perm_cache = {*own, *await call_method(self, "get_group_permissions", user_obj)}
        found: set[str] = user_obj._perm_cache
        return found

    # Without these methods, the asynchronous methods of a ModelBackend after this class would read SQL tables.

    async def aget_user_permissions(self, user_obj: object, obj: object = None) -> set[str]:
        """Return the result of ``get_user_permissions()``."""
        if self._is_overridden("get_user_permissions"):
            return await sync_to_async(self.get_user_permissions)(user_obj, obj)
        return await self._permissions(user_obj, obj, "user")

    async def aget_group_permissions(self, user_obj: object, obj: object = None) -> set[str]:
        """Return the result of ``get_group_permissions()``."""
        if self._is_overridden("get_group_permissions"):
            return await sync_to_async(self.get_group_permissions)(user_obj, obj)
        return await self._permissions(user_obj, obj, "group")

    async def aget_all_permissions(self, user_obj: Any, obj: object = None) -> set[str]:
        """Return the result of ``get_all_permissions()``."""
        if self._is_overridden("get_all_permissions"):
            return await sync_to_async(self.get_all_permissions)(user_obj, obj)
        return await self._all_permissions(user_obj, obj)

    def has_perm(self, user_obj: object, perm: str, obj: object = None) -> bool:
        """Return whether the user is active and has the permission."""
        return perm in self.get_all_permissions(user_obj, obj)

    async def ahas_perm(self, user_obj: object, perm: str, obj: object = None) -> bool:
        """Return the result of ``has_perm()``."""
        if self._is_overridden("has_perm"):
            return await sync_to_async(self.has_perm)(user_obj, perm, obj)
        return perm in await self.aget_all_permissions(user_obj, obj)

    def has_module_perms(self, user_obj: object, app_label: str) -> bool:
        """Return whether the user has any permission for an app."""
        return any(perm.partition(".")[0] == app_label for perm in self.get_all_permissions(user_obj))

    async def ahas_module_perms(self, user_obj: object, app_label: str) -> bool:
        """Return the result of ``has_module_perms()``."""
        if self._is_overridden("has_module_perms"):
            return await sync_to_async(self.has_module_perms)(user_obj, app_label)
        return any(perm.partition(".")[0] == app_label for perm in await self.aget_all_permissions(user_obj))

    def _is_overridden(self, name: str) -> bool:
        """Return whether a subclass overrides a synchronous method, which must then run in a thread."""
        return getattr(type(self), name) is not getattr(StoredPermissions, name)

    def with_perm(
        self, perm: str, is_active: bool | None = True, include_superusers: bool = True, obj: object = None
    ) -> Any:
        """Return the users who have a permission themselves or through a group.

        Sends one Query for the groups immediately. Evaluating the result reads all users, with one Query per megabyte.
        Both use an index and are eventually consistent.
        """
        if not isinstance(perm, str):
            raise TypeError("The `perm` argument must be a string: permissions are strings here.")
        if perm.count(".") != 1:
            raise ValueError("Permission name should be in the form app_label.permission_codename.")
        users: Any = get_user_model()._default_manager
        if obj is not None:
            return users.none()
        wanted = Q(permissions__contains=perm)
        groups = getattr(users.model, "groups", None)
        for group in groups.model._default_manager.filter(permission_names__contains=perm) if groups else ():
            wanted |= Q(group_ids__contains=group.pk)
        if include_superusers:
            wanted |= Q(is_superuser=True)
        return users.filter(wanted if is_active is None else wanted & Q(is_active=is_active))

    async def _permissions(self, user_obj: object, obj: object, source: str) -> set[str]:
        if not _may_have_any(user_obj, obj):
            return set()
        # The names are Django's: projects delete these attributes to reload the permissions.
        cache = f"_{source}_perm_cache"
        if not hasattr(user_obj, cache):
            setattr(user_obj, cache, await _read(user_obj, source))
        found: set[str] = getattr(user_obj, cache)
        return found


def _may_have_any(user: Any, obj: object) -> bool:
    return bool(user.is_active and not user.is_anonymous and obj is None)


async def _read(user: Any, source: str) -> set[str]:
    if user.is_superuser:
        return set(all_permissions())
    if source == "user":
        return set(user.permissions or ())
    groups = () if user.groups is None else await user.groups.all()._read()
    return {permission for group in groups for permission in group.permission_names or ()}
