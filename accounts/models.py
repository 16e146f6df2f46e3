"""The users of this project, what they log in with, and their groups."""

from __future__ import annotations

from typing import ClassVar

from dynamo_single import models
from dynamo_single.auth import Groups, Members
from dynamo_single.contrib.accounts import models as base
from dynamo_single.contrib.accounts.managers import UserManager
from dynamo_single.contrib.accounts.ways import Ways


class User(base.AbstractUser):
    """A user, who logs in by e-mail address, by user name or by telephone number."""

    logins = models.Children("Login", manager=Ways)
    groups = Groups("Membership")

    objects: ClassVar[UserManager[User]] = UserManager()


class Login(base.AbstractLogin):
    """One way for a user to log in."""


class Identity(base.AbstractIdentity):
    """An account of another provider, which belongs to one user."""


class Group(base.AbstractGroup):
    """A group of users, who have its permissions."""

    user_set = Members("Membership")


class Membership(base.AbstractMembership):
    """A user's membership of a group."""


class LoginFailures(base.AbstractLoginFailures):
    """A counter of failed logins."""


class MailsAsked(base.AbstractMailsAsked):
    """A counter of e-mails."""
