"""Sign up users and confirm their e-mail addresses: send the e-mails, and handle their links.

A response never reveals whether an address has an account; only the e-mail to that address does. Inside ``atomic()``,
e-mails are sent after the block has been written. This module must not depend on forms or pages.
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

#: The maximum number of attempts if other processes change the user at the same time.
ATTEMPTS = 5


def sign_up(request: HttpRequest, user: AbstractUser) -> None:
    """Store a new user who has to confirm the address, and send the link.

    If another user has the address, that user gets a different e-mail. A user who neither confirms the address nor
    logs in expires after ``UNCONFIRMED_LIFETIME``, and the user name and the address are free again.

    Sends one transaction, and two more GetItems if the address is taken. If its user did not confirm the address in
    time, one more transaction takes the address and stores the new user, or does neither. Raises ``UniqueViolation`` if
    the user name is taken. Inside the caller's ``atomic()``, the block raises it for a taken name or address and does
    not send an e-mail.
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
    else:  # another process was first, or the holder confirmed it
        _tell_holder(request, address)


def _is_free(store: Callable[[], None]) -> bool:
    """Store a new user and return ``True``, or return ``False`` if the address is taken."""
    try:
        store()
    except UniqueViolation as error:
        if error.field != "email":
            raise
        return False
    except (ConditionNotMet, StaleObject):  # from the holder's write: storing a new user has no such condition
        return False
    return True


def keep(sender: object, user: object, **kwargs: object) -> None:
    """Clear the expiry of an unconfirmed user who logged in: one transaction at the first login.

    ``UNCONFIRMED_MAY_LOG_IN`` allows such a login.
    """
    if isinstance(user, AbstractUser) and user.expires is not None:
        user.expires = None
        user.save(update_fields=["expires"])


def send_again(request: HttpRequest, address: str) -> None:
    """Send the link again if an active user has this address and has not confirmed it: at most two GetItems."""
    user = _holder(address)
    if user is not None and user.is_active and not user.has_confirmed_email:
        _send_link(request, user, str(user.email))


def request_change(request: HttpRequest, user: AbstractUser, address: str, *, is_more: bool = False) -> None:
    """Send a link to a new address, which replaces the old address after the user follows the link.

    With ``is_more``, the new address is an additional address. If another user has the address, that user gets a
    different e-mail.
    """
    holder = _holder(address)
    if holder is None or holder.pk == user.pk or holder.is_overdue:
        _send_link(request, user, address, is_more=is_more)
    else:
        _tell_holder(request, address, holder)


def confirm(request: HttpRequest, token: str) -> AbstractUser | None:
    """Confirm, change or add the address of a link: one GetItem and one transaction.

    Returns ``None`` if the link is invalid or the address is taken. The user, the claim and the login item change
    together, so exactly one of the old and the new address is valid at any time.
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
        except (UniqueViolation, InvalidValue):  # another user has the address, or this user has too many
            return None
        except (ConditionNotMet, StaleObject):  # another process may have followed the same link first
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
    # The condition detects a concurrent request with the same link in the same millisecond.
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
    """Return the user who has an additional address: one Query and a GetItem."""
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
