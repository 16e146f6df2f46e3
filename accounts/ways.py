"""``user.logins``: the ways to log in of one user, added and removed.

They follow from the user's own item, which decides. It is written together with the login and the claim, and the last
way to log in is kept by a condition on it. This module must not know how somebody proves that an identifier is theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from django.db.models import Q

from accounts.conf import EMAIL, PHONE, account_settings
from accounts.identifiers import ATTRIBUTES, phone_of
from dynamo_single.exceptions import ConditionNotMet, DynamoSingleError, InvalidValue, StaleObject

if TYPE_CHECKING:
    from dynamo_single import models

    _Manager = models.Manager[Any]
else:
    _Manager = object

#: How often a way is removed again because another writer changed the user meanwhile.
ATTEMPTS = 5


class LastWay(InvalidValue):
    """A way to log in is not removed, since the user has no other one; nothing was written."""


class Ways(_Manager):
    """What ``user.logins`` does besides listing them, which is one Query."""

    instance: Any

    def add(self, *args: Any, **options: Any) -> None:
        """``add("phone", "+15550100")``: let the user log in with what is known to be the user's: one transaction.

        Raises ``UniqueViolation`` if it is another's, and ``InvalidValue`` for what is no telephone number, or for a
        user who has one already.
        """
        kind, identifier = _asked(args)
        if kind != PHONE:
            raise InvalidValue(
                f"logins.add({kind!r}, ...): '{PHONE}' can be added, if LOGIN_WITH has it. The e-mail address and the "
                "user name are attributes of the user."
            )
        number = phone_of(identifier)
        if number is None:
            raise InvalidValue(f"{identifier!r} is no telephone number with its country, or nobody logs in with one.")
        user = self.instance
        if user.phone not in (None, number):
            raise InvalidValue(f"The user has the telephone number {user.phone}: remove it first.")
        change(user, PHONE, number)

    def remove(self, *args: Any, **options: Any) -> None:
        """``remove("phone")``: take a way to log in from the user, a telephone number or the e-mail address.

        One transaction, under the condition that another way is left: ``LastWay`` otherwise. Where another writer was
        faster, a GetItem and a transaction more.
        """
        kind, _ = _asked(args)
        if kind not in (EMAIL, PHONE):
            raise InvalidValue(f"logins.remove({kind!r}): '{EMAIL}' and '{PHONE}' can be removed.")
        user = self.instance
        for attempt in range(ATTEMPTS):
            if not getattr(user, kind):
                return
            left = others(user, kind)
            if not left:
                raise LastWay(
                    f"{user._meta.label} with pk {user.pk!r} has no other way to log in; nothing was written."
                )
            there = Q(*((f"{each}__isnull", False) for each in left), _connector=Q.OR)
            try:
                change(user, kind, None, there & Q(password=user.password))
            except (ConditionNotMet, StaleObject):
                if attempt == ATTEMPTS - 1:
                    raise
                user.refresh_from_db()
            else:
                return

    async def aadd(self, *args: Any, **options: Any) -> None:
        """See ``add()``."""
        await sync_to_async(self.add)(*args, **options)

    async def aremove(self, *args: Any, **options: Any) -> None:
        """See ``remove()``."""
        await sync_to_async(self.remove)(*args, **options)


def others(user: Any, kind: str) -> list[str]:
    """The attributes that the user logs in with besides one of a kind: those that a password lets in. Sends nothing."""
    if not user.has_usable_password():
        return []
    named = [each for each in account_settings().login_with if each != kind and each in ATTRIBUTES.values()]
    return [each for each in named if getattr(user, each)]


def _asked(args: Sequence[Any]) -> tuple[str, str]:
    if not args or not all(isinstance(each, str) for each in args) or len(args) > 2:
        raise InvalidValue("A user's logins follow from the user: say add('phone', '+15550100') or remove('phone').")
    return args[0], args[1] if len(args) > 1 else ""


def change(user: Any, kind: str, value: str | None, condition: Q | None = None) -> None:
    """Write another identifier, or none: one transaction with the login and the claims."""
    held = getattr(user, kind)
    setattr(user, kind, value)
    try:
        user.save(update_fields=[kind], condition=condition)
    except DynamoSingleError:
        setattr(user, kind, held)
        raise
