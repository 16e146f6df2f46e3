"""Codes that prove whose a telephone number is: sent to it, and typed by somebody who is logged in.

What is to be confirmed lies in the session, by a keyed hash; the user and the claim know nothing of it, so that a
number that nobody confirms is nobody's. This module must not know pages.
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
#: How long a code holds, and how often one may be typed: by chance it is right once in 200,000 codes.
LIFETIME: Final = timedelta(minutes=10)
GUESSES: Final = 5
_KEY: Final = "accounts.phone"


def can_send() -> bool:
    """Whether there is anything that sends codes."""
    settings = account_settings()
    return PHONE in settings.login_with and settings.phone_sender is not None


def send(request: HttpRequest, number: str) -> None:
    """Send a code to a number, by the function of ``PHONE_SENDER``: two UpdateItems that count it, and the session.

    Raises ``TooManyMails`` past as many in an hour as there may be mails.
    """
    mail_limits.count(request, number)
    code = get_random_string(DIGITS, "0123456789")
    ends = clock.timestamp() + LIFETIME.total_seconds()
    request.session[_KEY] = {"number": number, "ends": ends, "code": _hashed(request, number, code)}
    text = _("%(code)s is your code for %(site)s.") % {"code": code, "site": request.get_host()}
    import_string(str(account_settings().phone_sender))(number, text)


def awaited(request: HttpRequest) -> str | None:
    """The number that a code was sent to, if it holds still."""
    found: Any = request.session.get(_KEY)
    return found["number"] if found and found["ends"] > clock.timestamp() else None


def confirm(request: HttpRequest, user: AbstractUser, code: str) -> bool:
    """Let a user log in with the number that the code was sent to, in the place of another one.

    One UpdateItem that counts, and one transaction. Raises ``UniqueViolation`` if another user has the number by now.
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
    # By the hash of the code: a counter of each day would allow twice as many around midnight.
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
