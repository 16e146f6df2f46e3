"""Replace ``django.contrib.auth.models`` for upstream's models with this app's users."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import models as auth_models

from dynamo_single import auth
from tests.upstream.converted import Model
from tests.upstream.stock.models import Group, User

__all__ = ["AbstractBaseUser", "AbstractUser", "BaseUserManager", "Group", "PermissionsMixin", "User", "UserManager"]

BaseUserManager = auth.BaseUserManager
UserManager = auth.UserManager


class AbstractBaseUser(auth.AbstractBaseUser, Model):
    """Ours, with the keys of the rule."""

    objects = None

    class Meta:
        abstract = True


class PermissionsMixin(auth.PermissionsMixin, Model):
    """Ours, with the keys of the rule."""

    class Meta:
        abstract = True


class AbstractUser(auth.AbstractUser, Model):
    """Ours, with the keys of the rule."""

    objects = UserManager()

    class Meta(auth.AbstractUser.Meta):
        abstract = True


def __getattr__(name: str) -> Any:
    return getattr(auth_models, name)
