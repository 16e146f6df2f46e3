"""The users of this project, their login methods and their groups."""

from __future__ import annotations

from typing import ClassVar

from dynamo_single import models
from dynamo_single.auth import Groups, Members
from dynamo_single.contrib.accounts import models as base
from dynamo_single.contrib.accounts.managers import UserManager
from dynamo_single.contrib.accounts.ways import Ways


class User(base.AbstractUser):
    """A user, who logs in with an e-mail address, a user name or a telephone number."""

    logins = models.Children("Login", manager=Ways)
    groups = Groups("Membership")

    objects: ClassVar[UserManager[User]] = UserManager()


class Login(base.AbstractLogin):
    """A login method of a user."""


class Identity(base.AbstractIdentity):
    """An external account of a user."""


class Group(base.AbstractGroup):
    """A group of users, which have its permissions."""

    user_set = Members("Membership")


class Membership(base.AbstractMembership):
    """A user's membership in a group."""


class LoginFailures(base.AbstractLoginFailures):
    """A counter of failed logins."""


class MailsAsked(base.AbstractMailsAsked):
    """A counter of e-mails."""
