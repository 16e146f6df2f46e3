"""A user and a group as a project declares them, in the place and under the names of Django's own.

``auth.User`` and ``auth.Group`` are taken out of the registry of models, and these put there.
"""

from __future__ import annotations

from typing import Any

from django.apps import apps

from dynamo_single import auth, models
from tests.upstream.converted import AutoAttribute

for name in ("user", "group"):
    del apps.all_models["auth"][name]
apps.clear_cache()


class User(auth.AbstractUser):
    """Django's user; several may have one address, as Django's may."""

    id = AutoAttribute()
    username_folded = models.CanonicalAttribute(source="username")
    email = models.EmailAttribute("email address", null=True)
    email_folded = models.CanonicalAttribute(source="email")
    groups: Any = auth.Groups("Membership")

    class Keys:
        primary = models.Key("USER#{id}", "#METADATA")
        every = models.IndexKey("gs1", "USER", "{id}")

    class Meta(auth.AbstractUser.Meta):
        abstract = False
        app_label = "auth"
        item_type = "StockUser"
        swappable = "AUTH_USER_MODEL"


class GroupManager(auth.GroupManager):
    """Our manager; its querysets may work in memory, as with upstream's models."""

    def get_queryset(self) -> Any:
        """Every group."""
        return super().get_queryset().allow_in_memory()


class Group(auth.AbstractGroup):
    """Django's group."""

    id = AutoAttribute()
    user_set: Any = auth.Members("Membership")
    objects = GroupManager()

    class Keys:
        primary = models.Key("GROUP#{id}", "#METADATA")
        every = models.IndexKey("gs1", "GROUP", "{name}#{id}")

    class Meta(auth.AbstractGroup.Meta):
        abstract = False
        app_label = "auth"
        item_type = "StockGroup"


class Membership(auth.AbstractMembership):
    """That a user is in a group."""

    user = models.ReferenceAttribute(User, on_delete=models.DO_NOTHING, related_name="+")
    group = models.ReferenceAttribute(Group, on_delete=models.DO_NOTHING, related_name="+")

    class Keys:
        primary = models.Key("USER#{user_id}", "#GROUP#{group_id}")
        by_group = models.IndexKey("gs1", "GROUP#{group_id}", "USER#{user_id}")

    class Meta(auth.AbstractMembership.Meta):
        abstract = False
        app_label = "auth"
        item_type = "StockMembership"
