"""Users, and one item for each way that a user can log in.

A user's items share a partition: the user at ``#METADATA`` and the ways to log in beside it. They, and the claims that
keep user names and e-mail addresses unique, are written in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from django.utils.translation import gettext_lazy as _

from accounts.managers import ATTRIBUTES, EMAIL, LoginManager, UserManager
from accounts.validators import UsernameValidator
from dynamo_single import models
from dynamo_single.auth import AbstractUser
from dynamo_single.keys import canonical


class User(AbstractUser):
    """Somebody with an account, who logs in by e-mail address or by user name."""

    user_id = models.IdAttribute(prefix="user", attr_name="userId")
    username = models.UnicodeAttribute(
        _("username"),
        max_length=150,
        unique=True,
        canonical=True,
        help_text="Required. 150 characters or fewer. Letters, digits and . + - _ only.",
        validators=[UsernameValidator()],
        error_messages={"unique": _("A user with that username already exists.")},
    )

    logins = models.Children("Login")

    objects = UserManager()

    derived_from: ClassVar[tuple[str, ...]] = tuple(ATTRIBUTES.values())

    class Keys:
        primary = models.Key("USER#{user_id}", "#METADATA")
        by_username = models.IndexKey("gs1", "USER", "{username}#{user_id}")

    class Meta(AbstractUser.Meta):
        abstract = False

    def derived_objects(self) -> Iterable[Login]:
        """One login for the e-mail address, if there is one, and one for the user name."""
        for kind, attribute in ATTRIBUTES.items():
            identifier = getattr(self, attribute)
            if identifier:
                confirmed = False if kind == EMAIL else None
                yield Login(user_id=self.user_id, kind=kind, identifier=identifier, confirmed=confirmed)

    def has_identifier(self, kind: str, identifier: str) -> bool:
        """Whether this is the user's e-mail address or user name, whatever its case. Sends nothing."""
        return canonical(getattr(self, ATTRIBUTES[kind]) or "") == canonical(identifier)


class Login(models.Model):
    """One way for a user to log in: what is typed to say who one is.

    The password is the user's. ``confirmed`` says whether an e-mail address is known to be the user's. A further way
    (an account elsewhere, a telephone number) is a further ``kind``, found by the same index.
    """

    user = models.ReferenceAttribute(User, attr_name="userId")
    user_id: str
    kind = models.UnicodeAttribute(max_length=30)
    identifier = models.UnicodeAttribute(max_length=254)
    confirmed = models.BooleanAttribute(null=True)

    objects = LoginManager()

    class Keys:
        primary = models.Key("USER#{user_id}", "{kind}#{identifier}")
        by_identifier = models.IndexKey("gs1", "{kind}#{identifier:canonical}", "USER#{user_id}")

    def __str__(self) -> str:
        return f"{self.kind} {self.identifier}"
