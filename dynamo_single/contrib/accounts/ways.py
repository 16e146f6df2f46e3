"""``user.logins``: the ways to log in of one user, added and removed.

They follow from the user's own item, which decides. It is written together with the login and the claim, and the last
way to log in is kept by a condition on it. This module must not know how somebody proves that an identifier is theirs.
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

#: As many further addresses as a user can have.
MAX_ADDRESSES: Final = 5
_ADDRESSES: Final = ("email", "more_emails", "confirmed_email", "confirmed_at", "must_confirm", "expires")
#: What two sets give: what is held, and what is added or removed.
_Combined = Callable[[set[str], set[str]], set[str]]

if TYPE_CHECKING:
    from dynamo_single import models

    _Manager = models.Manager[Any]
else:
    _Manager = object

#: How often a way is removed again because another writer changed the user meanwhile.
ATTEMPTS = 5
#: As long as a subject may be in an ID token (https://openid.net/specs/openid-connect-core-1_0.html#IDToken).
LONGEST_SUBJECT: Final = 255
#: Each is two items that are written and deleted with the user, in one transaction.
MAX_IDENTITIES: Final = 10


class LastWay(InvalidValue):
    """A way to log in is not removed, since the user has no other one; nothing was written."""


class Ways(_Manager):
    """What ``user.logins`` does besides listing them, which is one Query."""

    instance: Any

    def add(self, *args: object, **options: object) -> None:
        """Let the user log in with what is known to be the user's: one transaction.

        ``add("phone", "+15550100")``, ``add("email", address)`` for a further address, or ``add("google", subject)``
        for an account elsewhere. Raises ``UniqueViolation`` if it is another's, and ``InvalidValue`` for what is no
        such thing, or a second telephone number.
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
                f"logins.add({kind!r}, ...): '{EMAIL}', '{PHONE}' and accounts of providers can be added, if "
                "LOGIN_WITH has them. The user name is an attribute of the user."
            )
        number = phone_of(identifier)
        if number is None:
            raise InvalidValue(
                f"{identifier!r} is not a telephone number with a country code, or logins with numbers are disabled."
            )
        user = self.instance
        if user.phone not in (None, number):
            raise InvalidValue(f"The user has the telephone number {user.phone}: remove it first.")
        change(user, PHONE, number)

    def remove(self, *args: Any, **options: Any) -> None:
        """``remove("phone")``, ``remove("email")``, ``remove("google", subject)``: take a way to log in from the user.

        One transaction, under the condition that another way is left: ``LastWay`` otherwise. Where another writer was
        faster, a GetItem and a transaction more.
        """
        kind, identifier = _asked(args)
        if kind in account_settings().providers:
            self._change_identities(kind, identifier, set.difference)
            return
        if kind not in (EMAIL, PHONE):
            raise InvalidValue(f"logins.remove({kind!r}): '{EMAIL}', '{PHONE}' and accounts elsewhere can be removed.")
        user = self.instance
        if kind == EMAIL and identifier and canonical(identifier) != canonical(user.email or ""):
            held = _further(user, identifier) or identifier
            self._change_set("more_emails", held, set.difference, MAX_ADDRESSES)
            return

        def write() -> None:
            if kind == EMAIL and user.more_emails:
                raise InvalidValue("This is the first of several addresses: make_primary() puts another in its place.")
            if getattr(user, kind):
                condition = left(user, kind=kind)
                # Another writer may add a second address meanwhile, which would be one without a first.
                change(user, kind, None, condition & Q(more_emails__isnull=True) if kind == EMAIL else condition)

        _again(user, write)

    def make_primary(self, address: str) -> None:
        """Put a further address in the place of the first one, which stays if it is confirmed: one UpdateItem.

        It stays as it is held, however it is written here.

        No claim changes, so that nobody else can take either meanwhile. Where the first one is not confirmed, its claim
        and its login go in a transaction.
        """
        user = self.instance

        def write() -> None:
            further = set(user.more_emails or ())
            # The one that is held is confirmed. What is given can be another mailbox, as ß and ss are one to a login.
            first = _further(user, address)
            if first is None:
                raise InvalidValue(f"{address!r} is no further address of the user.")
            more = further - {first}
            if user.has_confirmed_email:
                more.add(user.email)
            with _kept(user, _ADDRESSES):
                user.email, user.more_emails = first, more or None
                user.confirm_email()
                user.save(update_fields=[*_ADDRESSES])

        _again(user, write)

    def set_secret(self, kind: str, secret: str | None) -> None:
        """Let a kind of ``ACCOUNTS["SECRETS"]`` be opened by a secret of its own alone: one transaction.

        Without one, by the account's password again: ``LastWay`` for a user who has none, and no other way. The secret
        stays when the number, the name or the address changes. Removing that, or a new password of the account, removes
        it.
        """
        least = account_settings().secrets.get(kind)
        if least is None:
            raise InvalidValue(f"{kind!r} has no secret of its own: ACCOUNTS['SECRETS'] does not have it.")
        if secret is not None and not isinstance(secret, str):
            raise InvalidValue(f"The secret of {kind!r} is text (str), not {type(secret).__name__}.")
        if secret is not None and not least <= len(secret) <= LONGEST_SECRET:
            raise InvalidValue(f"The secret of {kind!r} has {least} to {LONGEST_SECRET} characters.")
        user = self.instance
        encoded = None if secret is None else user.hash_secret(kind.upper(), secret)

        def write() -> None:
            held = getattr(user, kind)
            if not held:
                raise InvalidValue(f"The user has no {kind}, which could have a secret.")
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
            raise InvalidValue(f"{address!r} is no e-mail address.") from error
        if not address:
            raise InvalidValue("An empty text is no e-mail address.")

        def add() -> None:
            if user.has_identifier("EMAIL", address):
                return
            if user.email:
                self._write_set("more_emails", address, set.union, MAX_ADDRESSES)
            else:  # also where another writer just removed the first one
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
            raise InvalidValue(f"{subject!r} is no account: it has 1 to {LONGEST_SUBJECT} characters.")
        self._change_set("identities", member_of(provider, subject), combined, MAX_IDENTITIES)

    def _change_set(self, name: str, member: str, combined: _Combined, most: int) -> None:
        _again(self.instance, lambda: self._write_set(name, member, combined, most))

    def _write_set(self, name: str, member: str, combined: _Combined, most: int) -> None:
        user = self.instance
        held = set(getattr(user, name) or ())
        wanted = combined(held, {member})
        if len(wanted) > max(most, len(held)):
            raise InvalidValue(f"A user can have {most} {'accounts' if name == 'identities' else 'further addresses'}.")
        if wanted != held:
            condition = None if member in wanted else left(user, member=member)
            # No link that was sent before an address was added holds after it, also once it is removed again.
            at = {"confirmed_at": clock.now()} if name == "more_emails" and member in wanted else {}
            change(user, name, wanted or None, condition, **at)

    async def aadd(self, *args: object, **options: object) -> None:
        """See ``add()``."""
        await sync_to_async(self.add)(*args, **options)

    async def aremove(self, *args: object, **options: object) -> None:
        """See ``remove()``."""
        await sync_to_async(self.remove)(*args, **options)


def add_to(user: Any, kind: str, identifier: str) -> None:
    """``user.logins.add()``, whatever the manager is to a type checker."""
    logins: Ways = user.logins
    logins.add(kind, identifier)


def take_overdue(user: Any, address: str, refused: UniqueViolation, write: Callable[[], object]) -> None:
    """Do a user's write again that was ``refused`` since the address is another's, if that one is overdue with it.

    Two GetItems, and a transaction that takes the address from its holder and writes, or does neither. ``refused``
    is raised if the holder is not overdue, and ``ConditionNotMet`` or ``StaleObject`` if that changes meanwhile.
    """
    if ATTRIBUTES[EMAIL.upper()] not in refused.fields and "more_emails" not in refused.fields:
        raise refused
    users = type(user).objects
    try:
        holder = users.get_by_unique("email", address)
    except users.model.DoesNotExist:
        write()  # the holder went at this moment, or this is refused again
        return
    if not holder.is_overdue:
        raise refused
    take_from(holder, write)


def take_from(user: Any, write: Callable[[], object]) -> None:
    """Take the address from somebody who is overdue with it, together with another's write: one transaction.

    A further address takes its place, which is confirmed. Without one the user name and the other ways are left.
    ``ConditionNotMet`` or ``StaleObject`` if the address is confirmed meanwhile, and what the write is refused for:
    nothing is written then. Within the caller's ``atomic()`` the block raises it.
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
    """The condition that a way to log in is left besides one; ``LastWay`` where the object itself has none.

    An address that waits for its confirmation does not count.

    What is typed lets nobody in without a password or a secret, which has to be the one that was looked at. Sends
    nothing.
    """
    wanted = account_settings().login_with
    held = {name: each for each, name in ATTRIBUTES.items() if name in wanted and name != kind and getattr(user, name)}
    if user.must_confirm:
        held.pop(EMAIL, None)  # it opens nothing past its time, and may be another's then
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
        raise LastWay(f"{name} has no other way to log in; nothing was written.")
    return reduce(or_, ways)


def _again(user: Any, write: Callable[[], None]) -> None:
    """Write, and again with the user as stored where another writer was faster."""
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
    """A further address of the user as it is held, however it is written here."""
    return next((each for each in sorted(user.more_emails or ()) if canonical(each) == canonical(address)), None)


def _asked(args: Sequence[Any]) -> tuple[str, str]:
    if not args or not all(isinstance(each, str) for each in args) or len(args) > 2:
        raise InvalidValue(
            "A user's logins are derived from the user: call add('phone', '+15550100') or remove('phone')."
        )
    return args[0], args[1] if len(args) > 1 else ""


def change(user: Any, kind: str, value: object, condition: Q | None = None, **more: Any) -> None:
    """Write another identifier, or none, and what changes with it: one transaction with the login and the claims.

    One that is removed takes its secret along, and one that is new begins without.
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
    """A block that writes some attributes; the object has them as before if they are not written."""
    held = {name: getattr(user, name) for name in names}
    try:
        yield
    except DynamoSingleError:
        for name, value in held.items():
            setattr(user, name, value)
        raise
