"""Groups of users in DynamoDB and their memberships: the abstract models, and the relations between groups and users.

A user's item stores the identifiers of the groups and is authoritative. A separate membership item, written in the same
transaction, serves the list of a group's members. This module must not depend on how permissions are checked.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import cached_property, partial
from typing import Any, ClassVar, NoReturn, TypeVar

from django.apps import apps
from django.conf import settings
from django.db.models import Model as DjangoModel
from django.db.models import Q
from django.db.models.fields.related import lazy_related_operation
from django.utils.translation import gettext_lazy as _

from dynamo_single import models
from dynamo_single.auth.granted import GroupPermissions
from dynamo_single.auth.membership import GroupsManager, MembersManager
from dynamo_single.exceptions import ConfigurationError, InvalidValue, NotSupported, UnexpectedItem, UnreadableItem
from dynamo_single.keys import canonical
from dynamo_single.orm.effects.base import CallerConditions
from dynamo_single.orm.model.many_to_many import KeptManyToMany
from dynamo_single.orm.query.many_to_many import End, RelationDescriptor
from dynamo_single.orm.requests.atomic_block import Block
from dynamo_single.orm.schema.keys.values import shown
from dynamo_single.orm.schema.types import DynamoModel, awaited
from dynamo_single.permission_fields import PermissionsAttribute
from dynamo_single.table.flow import call_method, run

logger = logging.getLogger("dynamo_single.auth")

M = TypeVar("M", bound=models.Model)


class Related(RelationDescriptor):
    """The base of both relation descriptors, which name the model of the memberships."""

    #: The membership's reference to the objects that the manager returns.
    gives: str
    #: The class that a project declares.
    declared_as: str

    def __init__(self, through: str | type[DjangoModel]) -> None:
        self._through = through

    def __set_name__(self, owner: type[DynamoModel], name: str) -> None:
        self.owner = owner
        self.name = name

    @cached_property
    def through(self) -> Any:
        """The model of the memberships."""
        if not isinstance(self._through, str):
            return self._through
        label, _, name = self._through.rpartition(".")
        try:
            return apps.get_model(label or self.owner._meta.app_label, name)
        except LookupError as error:
            raise ConfigurationError(
                f"{self.owner._meta.label}.{self.name} = {self.declared_as}({self._through!r}): there is no such "
                "model. Declare it, derived from dynamo_single.auth.AbstractMembership."
            ) from error

    @cached_property
    def end(self) -> End:
        """The end of the relation on this side."""
        takes = self.through._meta.get_field("user" if self.gives == "group" else "group")
        return End(self.through, takes, self.through._meta.get_field(self.gives), self.name, self.gives == "user")

    @property
    def model(self) -> Any:
        """The model of the objects that the manager returns."""
        return self.end.model


class GroupsDescriptor(Related):
    """``user.groups`` as a manager of the user's groups."""

    gives = "group"
    manager = GroupsManager
    declared_as = "Groups"


class Members(Related):
    """Declare ``user_set = Members("Membership")`` on a group model, for a manager ``group.user_set`` of its members.

    Reading the members sends one Query per megabyte of memberships, on an index and therefore eventually consistent,
    and one strongly consistent BatchGetItem for each hundred users. The second one excludes users who have left the
    group. ``add``, ``remove``, ``set`` and ``clear`` send one transaction for each user.
    """

    gives = "user"
    manager = MembersManager
    declared_as = "Members"

    def way_out(self, path: str) -> str:
        """Return the alternative to a ``filter()`` by the name of the manager."""
        rest = path and f"__{path}"
        return f"a filter names the relation 'user': filter(user{rest}=...), as in Django"


class Groups(KeptManyToMany):
    """Declare ``groups = Groups("Membership")`` on a user model, for a manager ``user.groups`` of the user's groups.

    To forms, filters, fixtures and the admin it is a ``ManyToManyField``. Reading the groups sends one strongly
    consistent request, or none for a user without groups. ``add``, ``remove``, ``set`` and ``clear`` send one
    transaction each, for any number of groups.
    """

    kept_in = "group_ids"

    def __init__(self, through: str | type[DjangoModel]) -> None:
        super().__init__(
            # The membership refers to the groups, and replaces this name when it is known.
            "auth.Group",
            verbose_name=_("groups"),
            blank=True,
            help_text=_(
                "The groups this user belongs to. A user will get all permissions granted to each of their groups."
            ),
        )
        self._through = through

    def deconstruct(self) -> tuple[str, str, list[Any], dict[str, Any]]:
        """Return what a copy is made of."""
        return self.name, f"{type(self).__module__}.{type(self).__qualname__}", [self._through], {}

    def contribute_to_class(self, cls: Any, name: str, **kwargs: object) -> None:  # type: ignore[override]  # as ManyToMany
        """Contribute the manager now, and the field when the memberships and the groups are known."""
        if cls._meta.abstract:
            super().contribute_to_class(cls, name, **kwargs)
            return
        self.set_attributes_from_name(name)
        self._manager = GroupsDescriptor(self._through)
        self._manager.__set_name__(cls, name)
        setattr(cls, name, self._manager)
        lazy_related_operation(self._take_memberships, cls, self._through)

    def _take_memberships(self, cls: Any, through: Any) -> None:
        relation: Any = self.remote_field
        relation.through, relation.through_fields = through, ("user", "group")
        # Forms, the admin and serializers check this before they write the relation.
        through._meta.auto_created = cls
        group = through._meta.get_field("group").remote_field.model
        lazy_related_operation(self._take_groups, through, group, owner=cls)

    def _take_groups(self, through: Any, group: Any, owner: Any) -> None:
        relation: Any = self.remote_field
        relation.model = group
        members = next((name for name in dir(group) if isinstance(vars(group).get(name), Members)), None)
        relation.related_name, relation.related_query_name = members or "+", members and "user"
        # A fixture names the groups, by natural keys if it is asked to.
        owner._meta.get_field(self.kept_in).serialize = False
        self.connect(owner, self.name)
        if f"{owner._meta.app_label}.{owner._meta.object_name}" == settings.AUTH_USER_MODEL:
            for relation in (each for each in group._meta.many_to_many if isinstance(each, GroupPermissions)):
                relation.relate_back()

    def descriptor(self) -> Any:
        """Return the descriptor that the class has had from its declaration."""
        return self._manager

    def value_from_object(self, obj: Any) -> Any:
        """Return the ``pk`` of each group, with which a form begins. Sends no request, unlike Django's."""
        return sorted(obj.group_ids or ())

    def keys_of(self, objs: Iterable[Any]) -> set[str]:
        """Return the ``pk`` of each group."""
        return {str(getattr(each, "pk", each)) for each in objs}

    def keys_by(self, condition: Q) -> list[str] | None:
        """Return the keys that a condition on the ``pk`` names."""
        (child,) = condition.children if len(condition.children) == 1 else (None,)
        if condition.negated or not isinstance(child, tuple):
            return None
        name, value = child
        identity = self.remote_field.model._meta.pk.name
        own, _, lookup = name.partition("__")
        if own not in ("pk", identity) or lookup not in ("", "exact", "in") or hasattr(value, "_asked"):
            return None
        return sorted(self.keys_of(value if lookup == "in" else [value]))

    def holders(self, keys: list[str]) -> Any:
        """Return the users of the memberships, which lag behind the users' items."""
        through: Any = self.remote_field.through
        return through._default_manager.filter(group__in=keys).values_list("user_id", flat=True)


class ByUnique(models.Manager[M]):
    """A manager that finds objects by their unique values, strongly consistent."""

    def get_by_unique(self, attribute: str, value: object) -> M:
        """Return the object that holds a value of a unique attribute, even if it was stored just now.

        Sends two strongly consistent GetItems, or one if no object holds the value. If the claim is damaged, or its
        object does not hold the value, the method logs an error with the fix and raises ``DoesNotExist``.
        """
        return run(self._by_unique(attribute, value))

    async def aget_by_unique(self, attribute: str, value: object) -> M:
        """Return the same as ``get_by_unique()``, asynchronously."""
        return await awaited(self.get_by_unique, self._by_unique, attribute, value)

    async def _by_unique(self, attribute: str, value: Any) -> M:
        field: Any = self.model._meta.get_field(attribute)
        folds = field.attribute.canonical
        try:
            if value is not None and (canonical(value) if folds else value):
                asked = {f"{attribute}__{'canonical' if folds else 'exact'}": value}
                found: M = await call_method(self.consistent(), "get", **asked)
                return found
        except (UnexpectedItem, UnreadableItem) as error:
            logger.error("%s: no users can be found by %s. %s", self.model._meta.label, attribute, error)
        except (InvalidValue, self.model.DoesNotExist):
            pass  # no object holds a value that cannot be stored
        raise self.model.DoesNotExist(f"No {self.model._meta.label} has {attribute} {shown(value)}.")


class GroupManager(ByUnique[M]):
    """A manager that finds groups by their names."""

    def get_by_natural_key(self, name: str) -> M:
        """Return the group with this name: two strongly consistent GetItems."""
        return self.get_by_unique("name", name)

    async def aget_by_natural_key(self, name: str) -> M:
        """Return the same as ``get_by_natural_key()``, asynchronously."""
        return await awaited(self.get_by_natural_key, partial(self.aget_by_unique, "name"), name)


class AbstractGroup(models.Model):
    """Django's ``Group`` in DynamoDB. Its users have its permissions.

    A subclass adds the identifier, the keys and ``user_set = Members("Membership")``. Never reuse the identifier of a
    deleted group.
    """

    name = models.UnicodeAttribute(_("name"), max_length=150, unique=True)
    #: The permissions as strings. They decide what the users of the group may do.
    permission_names = PermissionsAttribute(_("permissions"), editable=False, attr_name="permissions")
    permissions: Any = GroupPermissions()

    objects: ClassVar[GroupManager[Any]] = GroupManager()

    class Meta:
        abstract = True
        verbose_name = _("group")
        verbose_name_plural = _("groups")

    def __str__(self) -> str:
        return self.name

    def natural_key(self) -> tuple[str]:
        """Return the name."""
        return (self.name,)

    async def _hard_deleted(
        self, terms: CallerConditions, pending: Block | None, origin: object = None
    ) -> tuple[int, dict[str, int]]:
        # Users have no rights from a group that does not exist. Removing it from their items can therefore follow.
        counts = await super()._hard_deleted(terms, pending, origin)
        members = next((value for value in vars(type(self)).values() if isinstance(value, Members)), None)
        if counts[0] and members is not None:
            await members.__get__(self, type(self)).dissolved()
        return counts


class AbstractMembership(models.Model):
    """A user's membership of a group: an item derived from the user's item that serves the list of a group's members.

    A subclass adds the references ``user`` and ``group``, a primary key in the user's partition, and an ``IndexKey`` in
    a partition of the group. Only ``user.groups`` and ``group.user_set`` write memberships.
    """

    user_id: str
    group_id: str

    derived_by: ClassVar[str] = "user"

    class Meta:
        abstract = True
        verbose_name = _("membership")
        verbose_name_plural = _("memberships")

    def __str__(self) -> str:
        return f"{self.user_id} in {self.group_id}"

    def save(self, *args: object, **options: object) -> NoReturn:
        """Raise ``NotSupported``: the user's item decides who is in a group."""
        raise self._refused("saved")

    async def _hard_deleted(self, terms: CallerConditions, pending: Block | None, origin: object = None) -> NoReturn:
        raise self._refused("deleted")

    def _refused(self, done: str) -> NotSupported:
        return NotSupported(
            f"A {self._meta.label} cannot be {done} by itself: it is derived from the user and does not grant "
            "rights. Use user.groups or group.user_set."
        )
