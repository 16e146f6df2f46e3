"""Confirm a telephone number with a code: the app sends the code to the number, and the logged-in user types it.

The session stores the number and a keyed hash of the code. The user and the claim do not contain the number before it
is confirmed, so an unconfirmed number does not belong to any user. This module must not depend on pages.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.http import HttpRequest
from django.utils.crypto import constant_time_compare, get_random_string, salted_hmac
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from dynamo_single import clock
from dynamo_single.contrib.accounts import ways
from dynamo_single.contrib.accounts.conf import PHONE, account_settings
from dynamo_single.contrib.accounts.limits import counting, mail_limits
from dynamo_single.contrib.accounts.limits.counter_models import AbstractMailsAsked
from dynamo_single.contrib.accounts.logins.installed import model_of
from dynamo_single.contrib.accounts.models import AbstractUser
from dynamo_single.exceptions import ConditionNotMet

DIGITS: Final = 6
#: How long a code is valid, and the limit of guesses: all guesses together are right for one of 200,000 codes.
LIFETIME: Final = timedelta(minutes=10)
GUESSES: Final = 5
_KEY: Final = "accounts.phone"


def can_send() -> bool:
    """Return whether users can log in with telephone numbers and the settings have a function that sends codes."""
    settings = account_settings()
    return PHONE in settings.login_with and settings.phone_sender is not None


def send(request: HttpRequest, number: str) -> None:
    """Send a code to a number with the function of ``PHONE_SENDER``, and store it in the session.

    Sends two UpdateItems that count the code. Raises ``TooManyMails`` above the hourly limits of e-mails.
    """
    mail_limits.count(request, number)
    code = get_random_string(DIGITS, "0123456789")
    ends = clock.timestamp() + LIFETIME.total_seconds()
    request.session[_KEY] = {"number": number, "ends": ends, "code": _hashed(request, number, code)}
    text = _("%(code)s is your code for %(site)s.") % {"code": code, "site": request.get_host()}
    import_string(str(account_settings().phone_sender))(number, text)


def awaited(request: HttpRequest) -> str | None:
    """Return the number to which a code was sent, or ``None`` if the code has expired."""
    found: Any = request.session.get(_KEY)
    return found["number"] if found and found["ends"] > clock.timestamp() else None


def confirm(request: HttpRequest, user: AbstractUser, code: str) -> bool:
    """Set the confirmed number as the user's telephone number, and return whether the code was right.

    Sends one UpdateItem that counts the guess, and one transaction. The number replaces the user's former number.
    Raises ``UniqueViolation`` if another user has the number.
    """
    number = awaited(request)
    if number is None or not _may_guess(request):
        return False
    if not constant_time_compare(request.session[_KEY]["code"], _hashed(request, number, code)):
        return False
    del request.session[_KEY]
    ways.change(user, PHONE, number)
    return True


def _may_guess(request: HttpRequest) -> bool:
    # The hash of the code identifies the counter: a daily counter would allow twice as many guesses around midnight.
    scope = request.session[_KEY]["code"]
    expires = clock.now() + 2 * LIFETIME
    try:
        counting.add(model_of(AbstractMailsAsked)(scope=scope, mails=1, expires=expires), "mails", at_most=GUESSES)
    except ConditionNotMet:
        return False
    return True


def _hashed(request: HttpRequest, number: str, code: str) -> str:
    about = f"{request.user.pk}|{number}|{code}"
    return salted_hmac("accounts.codes", about, algorithm="sha256").hexdigest()
