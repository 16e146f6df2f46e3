"""Signing up, and what makes an e-mail address a user's own: which mails are sent, and what they lead to.

No answer tells whether an address has an account; only the mail does, to whoever reads it. Within ``atomic()`` mails
are sent once the block is in the table. This module must not know forms or pages.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from django.core.mail import send_mail
from django.db.models import Q
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse

from dynamo_single import transactions
from dynamo_single.contrib.accounts import ways
from dynamo_single.contrib.accounts.conf import EMAIL
from dynamo_single.contrib.accounts.models import AbstractUser, user_model
from dynamo_single.contrib.accounts.proofs import tokens
from dynamo_single.exceptions import ConditionNotMet, InvalidValue, StaleObject, UniqueViolation
from dynamo_single.keys import canonical

#: How often a link is followed again because another writer changed the user meanwhile.
ATTEMPTS = 5


def sign_up(request: HttpRequest, user: AbstractUser) -> None:
    """Store a new user who has to confirm the address, and send the link; the address's holder gets another mail.

    Whoever neither confirms it nor logs in expires after ``UNCONFIRMED_LIFETIME``, with the name and the address.

    One transaction, and two GetItems more if the address is taken. If whoever has it did not confirm it in time, one
    transaction more takes it from there and stores the user, or does neither. Raises ``UniqueViolation`` if the user
    name is taken. Within the caller's ``atomic()`` the block raises it, for either, and nobody gets a mail.
    """
    user.await_confirmation()
    address, store = str(user.email), partial(user.save, force_insert=True)
    if _is_free(store):
        _send_link(request, user, address)
        return
    holder = _holder(address)
    if holder is None or not holder.is_overdue:
        _tell_holder(request, address, holder)
    elif _is_free(partial(ways.take_from, holder, store)):
        _send_link(request, user, address)
    else:  # somebody else was faster, or the holder confirmed it
        _tell_holder(request, address)


def _is_free(store: Callable[[], None]) -> bool:
    """Store a new user, unless the address is taken."""
    try:
        store()
    except UniqueViolation as error:
        if error.field != "email":
            raise
        return False
    except (ConditionNotMet, StaleObject):  # of the holder: a new user depends on nothing
        return False
    return True


def keep(sender: object, user: object, **kwargs: object) -> None:
    """Let nobody expire who logged in, which ``UNCONFIRMED_MAY_LOG_IN`` allows: one transaction, once."""
    if isinstance(user, AbstractUser) and user.expires is not None:
        user.expires = None
        user.save(update_fields=["expires"])


def send_again(request: HttpRequest, address: str) -> None:
    """Send the link again, if somebody active has this address and has not confirmed it: at most two GetItems."""
    user = _holder(address)
    if user is not None and user.is_active and not user.has_confirmed_email:
        _send_link(request, user, str(user.email))


def request_change(request: HttpRequest, user: AbstractUser, address: str, *, is_more: bool = False) -> None:
    """Send a link to a new address; the old one stays until the link is followed, and after it if it is one more.

    A holder gets another mail.
    """
    holder = _holder(address)
    if holder is None or holder.pk == user.pk or holder.is_overdue:
        _send_link(request, user, address, is_more=is_more)
    else:
        _tell_holder(request, address, holder)


def confirm(request: HttpRequest, token: str) -> AbstractUser | None:
    """Do what a link says: one GetItem and one transaction. ``None`` if the link holds no more or the address is taken.

    User, claim and login item change together: the old address and the new one are never both valid, or neither.
    """
    said = tokens.read(token)
    if said is None:
        return None
    for attempt in range(ATTEMPTS):
        user = user_model().objects.consistent().filter(pk=said.user).first()
        if user is None or not said.holds_for(user):
            return None
        try:
            return _confirmed(request, user, said)
        except (UniqueViolation, InvalidValue):  # another's, or one address too many
            return None
        except (ConditionNotMet, StaleObject):  # whoever was faster may have followed the same link
            if attempt == ATTEMPTS - 1:
                raise
    return None


def _confirmed(request: HttpRequest, user: AbstractUser, said: tokens.Confirmation) -> AbstractUser:
    if said.is_more:
        ways.add_to(user, EMAIL, said.address)
        return user
    old = user.email
    if said.is_change:
        user.more_emails = {
            each for each in user.more_emails or () if canonical(each) != canonical(said.address)
        } or None
        user.email = said.address
    user.confirm_email()
    # Held to the address: else the save of who follows the link in the same millisecond counts as done too.
    save = partial(user.save, condition=Q(email=old) if old else None)
    try:
        save()
    except UniqueViolation as refused:
        ways.take_overdue(user, said.address, refused, save)
    if old and not user.has_mailbox(old):
        _send(request, old, "address_changed", user=user)
    return user


def _holder(address: str) -> AbstractUser | None:
    try:
        found: AbstractUser = user_model().objects.get_by_unique("email", address)
    except user_model().DoesNotExist:
        return None
    return found


def _holder_beside(address: str) -> AbstractUser | None:
    """Who has an address as a further one: one Query and a GetItem."""
    try:
        found: AbstractUser = user_model().objects.get_by_identifier(address)
    except user_model().DoesNotExist:
        return None
    return found


def _tell_holder(request: HttpRequest, address: str, holder: AbstractUser | None = None) -> None:
    found = holder or _holder(address) or _holder_beside(address)
    if found is not None and found.is_active:
        _send(request, str(found.email), "address_taken", user=found)


def _send_link(request: HttpRequest, user: AbstractUser, address: str, *, is_more: bool = False) -> None:
    link = reverse("confirm_email", args=[tokens.make(user, address, is_more=is_more)])
    _send(request, address, "confirm", user=user, link=request.build_absolute_uri(link))


def _send(request: HttpRequest, address: str, name: str, **context: object) -> None:
    context |= {
        "site": request.get_host(),
        "login": request.build_absolute_uri(reverse("login")),
        "reset": request.build_absolute_uri(reverse("password_reset")),
    }
    subject = render_to_string(f"accounts/mail/{name}_subject.txt", context)
    body = render_to_string(f"accounts/mail/{name}.txt", context)
    transactions.on_commit(partial(send_mail, " ".join(subject.split()), body, None, [address]))
