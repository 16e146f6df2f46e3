"""How many mails may be asked for: counted for the address that gets them, and for the client that asks.

Whether somebody has the address makes no difference, so that a refusal tells nothing. The counters hold no address,
only keyed hashes. This module must not know users, and sends no mail.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from django.http import HttpRequest

from dynamo_single import clock
from dynamo_single.contrib.accounts.conf import account_settings
from dynamo_single.contrib.accounts.limits import counting, lockout
from dynamo_single.contrib.accounts.limits.counter_models import AbstractMailsAsked
from dynamo_single.contrib.accounts.logins.installed import model_of
from dynamo_single.exceptions import ConditionNotMet
from dynamo_single.keys import canonical

logger = logging.getLogger("accounts")


class TooManyMails(Exception):
    """No mail is to be sent; ``wait`` says for how long."""

    def __init__(self, wait: timedelta) -> None:
        super().__init__(f"Too many e-mails were requested; wait {wait}.")
        self.wait = wait


def count(request: HttpRequest, address: str) -> None:
    """Count a mail before it is sent: two UpdateItems; ``TooManyMails`` past ``MAILS_PER_CLIENT`` or ``_ADDRESS``.

    Of any number of requests at one moment no more get through. A client that is refused counts for no address.
    """
    settings = account_settings()
    client = lockout.client_address(request, settings)
    name = canonical(address).encode("utf-8", "surrogatepass").hex()
    _count("client", client, settings.mails_per_client)
    _count("mailbox", name, settings.mails_per_address)


def _count(kind: str, about: str, at_most: int | None) -> None:
    if at_most is None:
        return
    scope, expires = lockout.scope_of(lockout.HOUR, "mails", kind, about)
    try:
        counting.add(model_of(AbstractMailsAsked)(scope=scope, mails=1, expires=expires), "mails", at_most=at_most)
    except ConditionNotMet:
        logger.warning("An e-mail was not sent: %d were requested this hour by or for one %s.", at_most, kind)
        raise TooManyMails(expires - clock.now()) from None
