"""The permissions of users and groups as objects of Django's ``Permission``.

These are ``user.user_permissions`` and ``permission.user_set``, ``group.permissions`` and ``permission.group_set``. The
item of the *holder*, a user or a group, contains the permissions as strings. Without an SQL database the objects are
computed from the models. This module must not know what users and groups are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from django.apps import apps as installed
from django.apps.registry import Apps
from django.conf import settings
from django.db import models, router
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from dynamo_single.auth.kept_keys import HoldersManager, KeysManager
from dynamo_single.backend.router import uses_engine
from dynamo_single.orm.model.many_to_many import KeptManyToMany
from dynamo_single.orm.query.many_to_many import End, RelationDescriptor
from dynamo_single.orm.schema.fields.references import without_slice
from dynamo_single.permissions import permission_choices
from dynamo_single.table.flow import call_method, call_sync

PERMISSION = "auth.Permission"


def name_of(permission: Any) -> str:
    """Return a permission as holders store it."""
    return f"{permission.content_type.app_label}.{permission.codename}"


def _named(names: Iterable[str]) -> Q:
    """Return the condition for the permissions with these names."""
    by_app: dict[str, list[str]] = {}
    for name in sorted(names):
        label, _dot, codename = name.partition(".")
        by_app.setdefault(label, []).append(codename)
    parts: list[Any] = [Q(content_type__app_label=label, codename__in=codes) for label, codes in by_app.items()]
    return Q.create(parts, Q.OR) if parts else Q(pk__in=[])


def _permissions() -> Any:
    return installed.get_model(PERMISSION)._default_manager.select_related("content_type")


def usable() -> Q:
    """Return the condition for the permissions that a form offers; without SQL, those of the models that work."""
    if not uses_engine(router.db_for_read(installed.get_model(PERMISSION))):
        return Q()
    return _named(name for name, _title in permission_choices())


class GrantedManager(KeysManager):
    """The permissions of a holder: reading sends no request to DynamoDB, and each change saves the holder.

    ``set()`` and ``clear()`` keep the strings that no permission of an installed app has.
    """

    def _narrow(self, queryset: Any) -> Any:
        return queryset.filter(_named(self._names(self.instance)))

    def get_prefetch_querysets(self, instances: Any, querysets: Any = None) -> Any:
        """Return what ``prefetch_related()`` needs: one query for all holders."""
        names = {each.pk: self._names(each) for each in instances}
        whole, start, stop = without_slice(querysets[0] if querysets else self.model._default_manager.all())
        found = list(whole.select_related("content_type").filter(_named(set().union(*names.values()))))
        owned = {pk: [each.pk for each in found if name_of(each) in held] for pk, held in names.items()}
        pairs = [(pk, each) for pk, permissions in owned.items() for each in permissions[start:stop]]
        return self._prefetched_from(pairs, {each.pk: each for each in found})

    def _names(self, holder: Any) -> set[str]:
        return getattr(holder, self.kept_in) or set()

    async def _resolved(self, objs: Iterable[object], *, adds: bool = True) -> dict[Any, Any]:
        return await call_sync(partial(_by_name, self.model, list(objs)))

    async def _set(self, wanted: Mapping[Any, Any], clear: bool, through_defaults: Any) -> None:
        """Grant exactly these: a GetItem, and an UpdateItem if something changes."""
        # An update writes the difference between two sets, which has to start with the stored one.
        await call_method(self.instance, "refresh_from_db", fields=[self.kept_in])
        unknown = await call_sync(partial(_unknown, self._names(self.instance)))
        await self._change(lambda held: {*wanted, *unknown})

    async def _clear(self) -> None:
        await self._set({}, True, None)


def _unknown(held: set[str]) -> set[str]:
    """Return the strings that no permission of an installed app has."""
    return held - {name_of(each) for each in _permissions().filter(_named(held))}


def _by_name(model: Any, objs: Sequence[Any]) -> dict[str, Any]:
    """Return permissions by name, given as objects or by ``pk``."""
    for each in objs:
        if isinstance(each, models.Model) and not isinstance(each, model):
            raise TypeError(f"{model._meta.object_name!r} instance expected, got {each!r}")
    pks = [model._meta.pk.to_python(each) for each in objs if not isinstance(each, models.Model)]
    there = _permissions().in_bulk(pks) if pks else {}
    if missing := [pk for pk in pks if pk not in there]:
        raise model.DoesNotExist(f"No {model._meta.label} has pk {missing[0]!r}. Nothing was written.")
    found = [*(each for each in objs if isinstance(each, models.Model)), *there.values()]
    return {name_of(each): each for each in found}


class HoldersOfPermission(HoldersManager):
    """The users, or the groups, that have a permission themselves.

    Reading them reads all of them by a key, and filters; each change saves one after the other.
    """

    @property
    def key(self) -> str:
        """The name of the permission."""
        return name_of(self.instance)

    def _narrow(self, queryset: Any) -> Any:
        """Return the holders: one Query per megabyte of all of them, on an index and eventually consistent."""
        return queryset.filter(**{f"{self.kept_in}__contains": self.key})

    async def _check(self, through_defaults: Any = None, *, adds: bool = False) -> None:
        """Any permission can be granted, since it is computed or a row."""

    def _key(self, pk: object) -> Any:
        return self.model._meta.pk.to_python(pk)


class _Relation(RelationDescriptor):
    """The base of both descriptors."""

    def __init__(self, field: Permissions) -> None:
        self.field = field
        strings = f"{field.model._meta.object_name}.{field.kept_in}"
        self._instead = f"with objects of Permission, or assign a set of strings to {strings}"

    @property
    def rel(self) -> Any:
        """The relation, under Django's name."""
        return self.field.remote_field

    @property
    def through(self) -> Any:
        """The model that stands for the edges, of which there are no rows."""
        return self.field.remote_field.through

    @cached_property
    def _manager_class(self) -> Any:
        found = super()._manager_class
        found.kept_in = self.field.kept_in
        return found


class GrantedDescriptor(_Relation):
    """The permissions of a holder."""

    manager = GrantedManager

    @cached_property
    def end(self) -> End:
        """The end of the relation at the holder."""
        options, field = self.through._meta, self.field
        return End(self.through, options.get_field(field.holder), options.get_field("permission"), field.name, False)


class HoldersDescriptor(_Relation):
    """The holders of a permission."""

    manager = HoldersOfPermission

    @cached_property
    def end(self) -> End:
        """The end of the relation at the permission."""
        options, holder = self.through._meta, self.field.holder
        return End(self.through, options.get_field("permission"), options.get_field(holder), f"{holder}_set", True)


class Permissions(KeptManyToMany):
    """The permissions of a model whose items contain them as strings: the base of both relations.

    To forms, filters, fixtures and the admin it is a ``ManyToManyField`` to ``auth.Permission``.
    """

    #: The name of the other side in the model of the edges.
    holder: str

    def __init__(self, **named: Any) -> None:
        super().__init__(PERMISSION, blank=True, limit_choices_to=usable, **named)
        # The strings are in fixtures already, and name permissions of apps that are not installed, too.
        self.serialize = False

    def deconstruct(self) -> tuple[str, str, list[Any], dict[str, Any]]:
        """Return what a copy is made of."""
        return self.name, f"{type(self).__module__}.{type(self).__qualname__}", [], {}

    def contribute_to_class(self, cls: Any, name: str, **kwargs: object) -> None:  # type: ignore[override]  # as ManyToMany
        """Contribute the field, with the relation from permissions if the project's users are of this model."""
        if cls._meta.abstract:
            super().contribute_to_class(cls, name, **kwargs)
            return
        relation: Any = self.remote_field
        relation.related_name, relation.related_query_name = self.related_names(cls)
        relation.through, relation.through_fields = _edges(cls, name, self.holder), (self.holder, "permission")
        self.connect(cls, name)

    def related_names(self, cls: Any) -> tuple[str, str | None]:
        """Return the name of the relation from permissions, and its name in filters; ``+`` if there is none."""
        return "+", None

    def descriptor(self) -> Any:
        """Return the descriptor of the relation."""
        return GrantedDescriptor(self)

    def reverse_descriptor(self) -> Any:
        """Return the descriptor for permissions."""
        return HoldersDescriptor(self)

    def formfield(self, **kwargs: Any) -> Any:
        """Return a form field that reads its choices with their content types: a label names both."""
        field: Any = super().formfield(**kwargs)
        field.queryset = field.queryset.select_related("content_type")
        return field

    def keys_of(self, objs: Iterable[Any]) -> set[str]:
        """Return the names of permissions, given as objects or by ``pk``."""
        return {*_by_name(installed.get_model(PERMISSION), list(objs))}

    def keys(self, instance: Any, objs: Iterable[Any]) -> set[str]:
        """Return the names of permissions, and those of the holder that no permission of an installed app has."""
        return self.keys_of(objs) | _unknown(set(getattr(instance, self.kept_in) or ()))

    def keys_by(self, condition: Q) -> list[str]:
        """Return the names of the permissions that meet a condition. Sends no request to DynamoDB."""
        return sorted({name_of(each) for each in _permissions().filter(condition)})


class UserPermissions(Permissions):
    """Django's ``user_permissions``; ``permission.user_set`` is the project's users."""

    kept_in = "permissions"
    holder = "user"

    def __init__(self) -> None:
        super().__init__(verbose_name=_("user permissions"), help_text=_("Specific permissions for this user."))

    def related_names(self, cls: Any) -> tuple[str, str | None]:
        """Return the names on permissions, for the project's users."""
        is_project_users = f"{cls._meta.app_label}.{cls._meta.object_name}" == settings.AUTH_USER_MODEL
        return ("user_set", "user") if is_project_users else ("+", None)


class GroupPermissions(Permissions):
    """Django's ``permissions`` of a group; ``permission.group_set`` is the groups of the project's users."""

    kept_in = "permission_names"
    holder = "group"

    def __init__(self) -> None:
        super().__init__(verbose_name=_("permissions"))

    def relate_back(self) -> None:
        """Give permissions ``group_set``. Django's own group has the name already, so it is no relation in filters."""
        installed.get_model(PERMISSION, require_ready=False).group_set = self.reverse_descriptor()


def _edges(cls: Any, name: str, holder: str) -> Any:
    """Return a model for the places where Django asks for the edges; it is in no registry and has no rows."""
    options = {
        "app_label": cls._meta.app_label,
        "apps": Apps(),
        "managed": False,
        "auto_created": cls,
        "db_table": f"{cls._meta.app_label}_{cls._meta.model_name}_{name}",
    }
    reference = partial(models.ForeignKey, on_delete=models.DO_NOTHING, related_name="+", db_constraint=False)
    return type(
        f"{cls._meta.object_name}_{name}",
        (models.Model,),
        {
            "__module__": cls.__module__,
            "Meta": type("Meta", (), options),
            holder: reference(cls),
            "permission": reference(installed.get_model(PERMISSION, require_ready=False)),
        },
    )
