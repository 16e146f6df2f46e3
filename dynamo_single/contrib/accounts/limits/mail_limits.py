"""Limit how many e-mails a client can request, and how many can be sent to an address.

The limits do not depend on whether a user has the address, so a rejected request does not reveal that. The counters
store keyed hashes instead of addresses. This module must not depend on users and does not send e-mails.
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
    """The limit of requested e-mails is reached; ``wait`` is the time until the client can request the next one."""

    def __init__(self, wait: timedelta) -> None:
        super().__init__(f"Too many e-mails; wait {wait}.")
        self.wait = wait


def count(request: HttpRequest, address: str) -> None:
    """Count an e-mail before it is sent: two UpdateItems.

    Raises ``TooManyMails`` above ``MAILS_PER_CLIENT`` or ``MAILS_PER_ADDRESS``. Concurrent requests cannot exceed the
    limits. A request above the limit of its client does not count for the address.
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
        logger.warning("Did not send an e-mail: the limit is %d this hour by or for one %s.", at_most, kind)
        raise TooManyMails(expires - clock.now()) from None
