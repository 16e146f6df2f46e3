"""Add and remove the login methods of a user: ``user.logins``.

Login methods are derived from the user's item, which is authoritative. One transaction writes it with the login and the
claim, and a condition on it prevents the removal of the last login method. This module must not depend on how users
prove that an identifier is theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final

from asgiref.sync import sync_to_async
from django.core.exceptions import ValidationError
from django.db.models import Q

from dynamo_single import clock, transactions
from dynamo_single.contrib.accounts.conf import EMAIL, LONGEST_SECRET, PHONE, account_settings
from dynamo_single.contrib.accounts.logins.identifiers import (
    ATTRIBUTES,
    SECRETS,
    member_of,
    parted,
    phone_of,
    refuse_unused,
)
from dynamo_single.exceptions import ConditionNotMet, DynamoSingleError, InvalidValue, StaleObject, UniqueViolation
from dynamo_single.keys import canonical

#: The maximum number of additional addresses of a user.
MAX_ADDRESSES: Final = 5
_ADDRESSES: Final = ("email", "more_emails", "confirmed_email", "confirmed_at", "must_confirm", "expires")
#: Combines the stored set with the added or removed elements.
_Combined = Callable[[set[str], set[str]], set[str]]

if TYPE_CHECKING:
    from dynamo_single import models

    _Manager = models.Manager[Any]
else:
    _Manager = object

#: The maximum number of attempts if other processes change the user at the same time.
ATTEMPTS = 5
#: The maximum length of a subject in an ID token (https://openid.net/specs/openid-connect-core-1_0.html#IDToken).
LONGEST_SUBJECT: Final = 255
#: Each external account has two items, and the transactions that save or delete the user include them.
MAX_IDENTITIES: Final = 10


class LastWay(InvalidValue):
    """The user's last login method cannot be removed. Nothing was written."""


class Ways(_Manager):
    """The manager of ``user.logins``: it also adds and removes login methods. Listing them is one Query."""

    instance: Any

    def add(self, *args: object, **options: object) -> None:
        """Add a confirmed login method: one transaction.

        Call ``add("phone", "+15550100")``, ``add("email", address)`` for an additional address, or
        ``add("google", subject)`` for an external account. Raises ``UniqueViolation`` if another user has the
        identifier, and ``InvalidValue`` for an invalid identifier or a second telephone number.
        """
        kind, identifier = _asked(args)
        if kind in account_settings().providers:
            self._change_identities(kind, identifier, set.union)
            return
        if kind == EMAIL:
            self._add_address(identifier)
            return
        if kind != PHONE:
            raise InvalidValue(
                f"Cannot add a login method {kind!r}: logins.add() accepts '{EMAIL}', '{PHONE}' and the providers in "
                "LOGIN_WITH. To change the user name, set the attribute of the user."
            )
        number = phone_of(identifier)
        if number is None:
            raise InvalidValue(
                f"{identifier!r} is not a telephone number with a country code, or logins with numbers are disabled."
            )
        user = self.instance
        if user.phone not in (None, number):
            raise InvalidValue(f"The user already has the telephone number {user.phone}. Remove it first.")
        change(user, PHONE, number)

    def remove(self, *args: Any, **options: Any) -> None:
        """Remove a login method: ``remove("phone")``, ``remove("email")``, or ``remove("google", subject)``.

        Sends one transaction, conditional on another login method that remains; raises ``LastWay`` if there is none.
        If another process changed the user first, sends one more GetItem and transaction.
        """
        kind, identifier = _asked(args)
        if kind in account_settings().providers:
            self._change_identities(kind, identifier, set.difference)
            return
        if kind not in (EMAIL, PHONE):
            raise InvalidValue(
                f"Cannot remove a login method {kind!r}: logins.remove() accepts '{EMAIL}', '{PHONE}' and the "
                "providers in LOGIN_WITH."
            )
        user = self.instance
        if kind == EMAIL and identifier and canonical(identifier) != canonical(user.email or ""):
            held = _further(user, identifier) or identifier
            self._change_set("more_emails", held, set.difference, MAX_ADDRESSES)
            return

        def write() -> None:
            if kind == EMAIL and user.more_emails:
                raise InvalidValue(
                    "Cannot remove the primary address while the user has additional addresses. Call "
                    "logins.make_primary() with another address first."
                )
            if getattr(user, kind):
                condition = left(user, kind=kind)
                # Another process could add an additional address, which requires a primary address.
                change(user, kind, None, condition & Q(more_emails__isnull=True) if kind == EMAIL else condition)

        _again(user, write)

    def make_primary(self, address: str) -> None:
        """Make an additional address the primary address: one UpdateItem.

        The former primary address becomes an additional address if it is confirmed. No claim changes, so another user
        cannot take either address. If the former primary address is not confirmed, a transaction deletes its claim and
        its login.

        The stored spelling of the address is kept, even if ``address`` uses another case.
        """
        user = self.instance

        def write() -> None:
            further = set(user.more_emails or ())
            # Only the stored spelling is confirmed: ß and ss are the same for a login, but can be two mailboxes.
            first = _further(user, address)
            if first is None:
                raise InvalidValue(f"{address!r} is not an additional address of the user.")
            more = further - {first}
            if user.has_confirmed_email:
                more.add(user.email)
            with _kept(user, _ADDRESSES):
                user.email, user.more_emails = first, more or None
                user.confirm_email()
                user.save(update_fields=[*_ADDRESSES])

        _again(user, write)

    def set_secret(self, kind: str, secret: str | None) -> None:
        """Set or remove the separate secret of a kind in ``ACCOUNTS["SECRETS"]``: one transaction.

        With a secret, the account's password is not valid for this kind. With ``None``, it is valid again; the method
        raises ``LastWay`` if the user has neither a password nor another login method. The secret is kept if the
        number, the name or the address changes. It is removed with the number, the name or the address, and by a new
        password of the account.
        """
        least = account_settings().secrets.get(kind)
        if least is None:
            raise InvalidValue(f"{kind!r} cannot have a separate secret: ACCOUNTS['SECRETS'] does not contain it.")
        if secret is not None and not isinstance(secret, str):
            raise InvalidValue(f"The secret of {kind!r} must be a str, not {type(secret).__name__}.")
        if secret is not None and not least <= len(secret) <= LONGEST_SECRET:
            raise InvalidValue(f"The secret of {kind!r} must have {least} to {LONGEST_SECRET} characters.")
        user = self.instance
        encoded = None if secret is None else user.hash_secret(kind.upper(), secret)

        def write() -> None:
            held = getattr(user, kind)
            if not held:
                raise InvalidValue(f"Cannot set a secret for {kind!r}: the user has no {kind}.")
            condition = Q(**{kind: held})
            if encoded is None:
                usable = user.has_usable_password()
                condition &= Q(password=user.password) if usable else left(user, kind=kind)
            change(user, SECRETS[kind.upper()], encoded, condition)

        _again(user, write)

    def _add_address(self, address: str) -> None:
        refuse_unused(EMAIL)
        user = self.instance
        try:
            user._meta.get_field(EMAIL).run_validators(address)
        except ValidationError as error:
            raise InvalidValue(f"{address!r} is not an e-mail address.") from error
        if not address:
            raise InvalidValue("An empty string is not an e-mail address.")

        def add() -> None:
            if user.has_identifier("EMAIL", address):
                return
            if user.email:
                self._write_set("more_emails", address, set.union, MAX_ADDRESSES)
            else:  # also if another process just removed the primary address
                change(user, EMAIL, address, confirmed_at=clock.now())

        def write() -> None:
            try:
                add()
            except UniqueViolation as refused:
                with _kept(user, _ADDRESSES):
                    take_overdue(user, address, refused, add)

        _again(user, write)

    def _change_identities(self, provider: str, subject: str, combined: _Combined) -> None:
        refuse_unused(provider)
        if not canonical(subject) or len(subject) > LONGEST_SUBJECT:
            raise InvalidValue(f"The subject {subject!r} must have 1 to {LONGEST_SUBJECT} characters.")
        self._change_set("identities", member_of(provider, subject), combined, MAX_IDENTITIES)

    def _change_set(self, name: str, member: str, combined: _Combined, most: int) -> None:
        _again(self.instance, lambda: self._write_set(name, member, combined, most))

    def _write_set(self, name: str, member: str, combined: _Combined, most: int) -> None:
        user = self.instance
        held = set(getattr(user, name) or ())
        wanted = combined(held, {member})
        if len(wanted) > max(most, len(held)):
            things = "external accounts" if name == "identities" else "additional addresses"
            raise InvalidValue(f"A user can have at most {most} {things}.")
        if wanted != held:
            condition = None if member in wanted else left(user, member=member)
            # Adding an address invalidates all links that were sent before, even if it is removed again.
            at = {"confirmed_at": clock.now()} if name == "more_emails" and member in wanted else {}
            change(user, name, wanted or None, condition, **at)

    async def aadd(self, *args: object, **options: object) -> None:
        """Run ``add()`` asynchronously."""
        await sync_to_async(self.add)(*args, **options)

    async def aremove(self, *args: object, **options: object) -> None:
        """Run ``remove()`` asynchronously."""
        await sync_to_async(self.remove)(*args, **options)


def add_to(user: Any, kind: str, identifier: str) -> None:
    """Call ``user.logins.add()`` with the type of the manager that a type checker does not know."""
    logins: Ways = user.logins
    logins.add(kind, identifier)


def take_overdue(user: Any, address: str, refused: UniqueViolation, write: Callable[[], object]) -> None:
    """Retry a write after ``refused``, and take its address from another user whose confirmation is overdue.

    Sends two GetItems, and one transaction that takes the address and writes, or does neither. Raises ``refused`` if
    the other user is not overdue, and ``ConditionNotMet`` or ``StaleObject`` if that changes in the meantime.
    """
    if ATTRIBUTES[EMAIL.upper()] not in refused.fields and "more_emails" not in refused.fields:
        raise refused
    users = type(user).objects
    try:
        holder = users.get_by_unique("email", address)
    except users.model.DoesNotExist:
        write()  # the holder was just deleted, or this raises an error again
        return
    if not holder.is_overdue:
        raise refused
    take_from(holder, write)


def take_from(user: Any, write: Callable[[], object]) -> None:
    """Take the overdue address from ``user`` and run another user's write: one transaction.

    A confirmed additional address becomes the user's primary address. If there is none, the user keeps the user name
    and the other login methods. Raises ``ConditionNotMet`` or ``StaleObject`` if the user confirms the address in the
    meantime, and the errors of the write; then nothing is written. Inside the caller's ``atomic()``, the block raises
    the error.
    """
    held = user.email
    first, *more = sorted(user.more_emails or ()) or [None]
    with transactions.atomic():
        user.email, user.more_emails = first, set(more) or None
        if first is not None:
            user.confirm_email()
        user.save(update_fields=[*_ADDRESSES], condition=Q(email=held, must_confirm=True))
        write()


def left(user: Any, *, kind: str = "", member: str = "") -> Q:
    """Return the condition that the user keeps another login method; raise ``LastWay`` if there is no other method.

    An address that waits for its confirmation does not count. An identifier counts only with a password or a secret,
    so the condition includes the hash that this object has. Does not send a request.
    """
    wanted = account_settings().login_with
    held = {name: each for each, name in ATTRIBUTES.items() if name in wanted and name != kind and getattr(user, name)}
    if user.must_confirm:
        held.pop(EMAIL, None)  # an overdue address is not valid for a login, and another user can take it
    typed = [name for name, each in held.items() if user.own_secret(each) is None]
    elsewhere = [each for each in user.identities or () if each != member and parted(each)[0] in wanted]
    addresses = [each for each in user.more_emails or () if each != member and EMAIL in wanted]
    ways = [Q(identities__contains=each) for each in sorted(elsewhere)]
    if kind != EMAIL and (secret := user.own_secret(EMAIL.upper())) is not None:
        ways += [Q(more_emails__contains=each, email_secret=secret) for each in sorted(addresses)]
        addresses = []
    for name, each in held.items():
        if name not in typed:
            ways.append(Q(**{f"{name}__isnull": False, SECRETS[each]: user.own_secret(each)}))
    there = [
        *(Q(**{f"{each}__isnull": False}) for each in typed),
        *(Q(more_emails__contains=each) for each in sorted(addresses)),
    ]
    if there and user.has_usable_password():
        ways.append(Q(password=user.password) & reduce(or_, there))
    if not ways:
        name = f"{user._meta.label} with pk {user.pk!r}"
        raise LastWay(
            f"Cannot remove the last login method of {name}. Nothing was written. Add another login method first."
        )
    return reduce(or_, ways)


def _again(user: Any, write: Callable[[], None]) -> None:
    """Write, and retry with the stored user if another process changed it first."""
    for attempt in range(ATTEMPTS):
        try:
            write()
        except (ConditionNotMet, StaleObject):
            if attempt == ATTEMPTS - 1:
                raise
            user.refresh_from_db()
        else:
            return


def _further(user: Any, address: str) -> str | None:
    """Return the stored spelling of an additional address, or ``None`` if the user does not have it."""
    return next((each for each in sorted(user.more_emails or ()) if canonical(each) == canonical(address)), None)


def _asked(args: Sequence[Any]) -> tuple[str, str]:
    if not args or not all(isinstance(each, str) for each in args) or len(args) > 2:
        raise InvalidValue(
            "A user's logins are derived from the user: call add('phone', '+15550100') or remove('phone')."
        )
    return args[0], args[1] if len(args) > 1 else ""


def change(user: Any, kind: str, value: object, condition: Q | None = None, **more: Any) -> None:
    """Set or remove an identifier, with its login and claims: one transaction.

    Also removes the secret of a removed identifier, and any former secret of a new identifier.
    """
    secret = SECRETS.get(kind.upper())
    ends = {secret: None} if secret is not None and (value is None or getattr(user, kind) is None) else {}
    values = {kind: value, **ends, **more}
    with _kept(user, values):
        for name, each in values.items():
            setattr(user, name, each)
        user.save(update_fields=[*values], condition=condition)


@contextmanager
def _kept(user: Any, names: Iterable[str]) -> Iterator[None]:
    """Restore the named attributes of the object if the block raises a ``DynamoSingleError``."""
    held = {name: getattr(user, name) for name in names}
    try:
        yield
    except DynamoSingleError:
        for name, value in held.items():
            setattr(user, name, value)
        raise
