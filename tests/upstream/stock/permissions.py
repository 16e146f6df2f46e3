"""The permissions that upstream's tests create, and the backend of its users, with whom they are stored."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import ModelBackend

from dynamo_single.permissions import StoredPermissions


class Backend(StoredPermissions, ModelBackend):
    """Django's backend, for users whose permissions are stored with them."""


def declared(manager: Any, *, codename: str, content_type: Any, name: str = "") -> Any:
    """The permission that upstream creates, as a project declares it that was ported: in ``Meta.permissions``."""
    options = content_type.model_class()._meta
    options.permissions = [*options.permissions, (codename, name)]
    return manager.get(codename=codename, content_type=content_type)
