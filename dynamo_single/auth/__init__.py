"""Users and groups in DynamoDB: the abstract models for those of a project."""

from dynamo_single.auth.groups import AbstractGroup, AbstractMembership, GroupManager, Groups, Members
from dynamo_single.auth.users import (
    AbstractBaseUser,
    AbstractUser,
    BaseUserManager,
    PermissionsMixin,
    UserExists,
    UserManager,
)
from dynamo_single.permissions import all_permissions

__all__ = [
    "AbstractBaseUser",
    "AbstractGroup",
    "AbstractMembership",
    "AbstractUser",
    "BaseUserManager",
    "GroupManager",
    "Groups",
    "Members",
    "PermissionsMixin",
    "UserExists",
    "UserManager",
    "all_permissions",
]
