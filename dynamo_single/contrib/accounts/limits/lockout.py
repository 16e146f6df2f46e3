"""Delay login attempts of clients that guess passwords, without delaying other clients.

Three counters count failures: per identifier and client address, per identifier, and per client address.
docs/decisions/0016-counted-first.md explains which of them delays which attempts. The counters store keyed hashes
instead of names and addresses. This module must not depend on users or passwords, so it counts failures for unknown
identifiers too.
"""

from __future__ import annotations

import ipaddress
import logging
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from django.http import HttpRequest
from django.utils.crypto import salted_hmac
from msgspec import Struct

from dynamo_single import clock
from dynamo_single.contrib.accounts.conf import AccountSettings, account_settings
from dynamo_single.contrib.accounts.limits import counting
from dynamo_single.contrib.accounts.limits.counter_models import AbstractLoginFailures
from dynamo_single.contrib.accounts.logins.installed import model_of
from dynamo_single.exceptions import ConditionNotMet, StaleObject
from dynamo_single.keys import canonical
from dynamo_single.table.flow import call_method, run

logger = logging.getLogger("accounts")

#: The periods of the counters. Each period begins with new counters, so no delay is permanent.
DAY: Final = timedelta(days=1)
HOUR: Final = timedelta(hours=1)
#: In seconds. A whole company can share an address.
LONGEST_DELAY_OF_ADDRESS: Final = 60.0
#: The prefix length of an IPv6 connection's network: its owner can use any address in it.
IPV6_NETWORK: Final = 64
NO_ADDRESS: Final = "unknown"
#: Some proxies add the port, which differs between connections.
_WITH_PORT: Final = re.compile(r"([0-9.]+):[0-9]+|(\[[0-9A-Fa-f:.]+\]):[0-9]+")


class Attempt(Struct):
    """A login attempt and its counters; ``wait`` is the time until the next attempt if this attempt is too early."""

    pair: AbstractLoginFailures
    account: AbstractLoginFailures
    address: AbstractLoginFailures
    wait: timedelta | None = None
    counted: tuple[AbstractLoginFailures, ...] = ()

    async def ended(self, *, succeeded: bool) -> None:
        """Count a failure, or clear the failures after a success.

        A failure sends one UpdateItem for each counter that does not include this attempt yet. A success deletes the
        counter of this identifier and client address: one DeleteItem, and one UpdateItem if the client's address was
        being delayed.
        """
        if not succeeded:
            for counter in (self.pair, self.account, self.address):
                if counter not in self.counted:
                    await _count(counter)
            return
        with suppress(StaleObject):  # a concurrent login deleted it first
            await call_method(self.pair, "delete")
        if self.address in self.counted:
            await _count(self.address, -1)


def begin(request: HttpRequest, identifier: str) -> Attempt:
    """Run ``begun()`` synchronously."""
    return run(begun(request, identifier))


async def begun(request: HttpRequest, identifier: str) -> Attempt:
    """Start an attempt: one strongly consistent BatchGetItem, and one UpdateItem that counts the attempt.

    The attempt counts as a failure before its password is checked, so parallel attempts cannot exceed the limits of
    sequential attempts. If the client's address is being delayed, one more UpdateItem counts the attempt for the
    address.
    """
    settings = account_settings()
    address = client_address(request, settings)
    if address == NO_ADDRESS:
        logger.warning(
            "REMOTE_ADDR is not an IP address: all visitors share one counter of failed logins, so an attacker who "
            "guesses a user's password locks out this user. Set ACCOUNTS['CLIENT_ADDRESS_HEADER'] to the header that "
            "your proxy sets."
        )
    attempt = await _read(identifier, address)
    strict = attempt.account.failures >= settings.account_failures
    rules = (
        (attempt.pair, 1 if strict else settings.free_failures, settings.longest_delay),
        (attempt.address, settings.address_failures, min(settings.longest_delay, LONGEST_DELAY_OF_ADDRESS)),
    )
    delaying = []
    for counter, free, longest in rules:
        if counter.failures < free:
            continue
        delay = _delay(counter.failures - free, settings.first_delay, longest)
        delaying.append((counter, delay))
        _wait_for(attempt, clock.in_utc(counter.last_failure) + delay - clock.instant())
    if attempt.wait is not None:
        return attempt
    if all(counter is not attempt.pair for counter, _ in delaying):
        try:
            attempt.pair = await _count(attempt.pair, at_most=rules[0][1])
        except ConditionNotMet:  # concurrent attempts used up the free failures
            _wait_for(attempt, _delay(0, settings.first_delay, settings.longest_delay))
            return attempt
        attempt.counted += (attempt.pair,)
    for counter, delay in delaying:
        try:
            await _count(counter, seen=counter)
        except StaleObject:
            _wait_for(attempt, delay)
        else:
            attempt.counted += (counter,)
    return attempt


def checked(request: HttpRequest, identifier: str, is_right: Callable[[], bool]) -> bool:
    """Return whether a logged-in user entered the right password, and count the attempt like a login.

    Sends the requests of ``begin()``, then two UpdateItems for a wrong password or one DeleteItem for a right one.
    Returns ``False`` for any password that comes too early; ``told()`` then returns the time to wait.
    """
    attempt = begin(request, identifier) if account_settings().lockout else None
    if attempt is not None and attempt.wait is not None:
        tell(request, attempt.wait)
        return False
    right = is_right()
    if attempt is not None:
        run(attempt.ended(succeeded=right))
    return right


def tell(request: HttpRequest | None, why: timedelta | str) -> None:
    """Record for the login form why even the right password is rejected: the time to wait, or ``UNCONFIRMED``."""
    if isinstance(why, timedelta):
        address = "" if request is None else client_address(request, account_settings())
        logger.warning("Rejected a password from %s, which came %d seconds too early.", address, why.total_seconds())
    if request is not None:
        request.META[_TOLD] = why


def told(request: HttpRequest | None) -> timedelta | str | None:
    """Return the reason that ``tell()`` recorded for this request."""
    found: timedelta | str | None = None if request is None else request.META.get(_TOLD)
    return found


_TOLD: Final = "accounts.login_refused"
UNCONFIRMED: Final = "unconfirmed"


def client_address(request: HttpRequest, settings: AccountSettings) -> str:
    """Return the client's address: the connection's, or the entry of the outermost trusted proxy.

    A header such as ``X-Forwarded-For`` is a list. Only its last entries count, because trusted proxies wrote them.
    """
    connected = _normal(request.META.get("REMOTE_ADDR", ""))
    if settings.client_address_header is None:
        return connected
    entries = request.headers.get(settings.client_address_header, "").split(",")
    if len(entries) < settings.trusted_proxies:
        return connected
    told = _normal(entries[-settings.trusted_proxies])
    return connected if told == NO_ADDRESS else told


def _normal(text: str) -> str:
    """Return one string for each visitor: for IPv6 the network, because a visitor has many addresses in it."""
    if written := _WITH_PORT.fullmatch(text.strip()):
        text = written[1] or written[2]
    try:
        address = ipaddress.ip_address(text.strip().strip("[]"))
    except ValueError:
        return NO_ADDRESS
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is None:
            return str(ipaddress.ip_network((int(address), IPV6_NETWORK), strict=False))
        address = address.ipv4_mapped
    return str(address)


def _delay(repeated: int, first: float, longest: float) -> timedelta:
    # The exponent is bounded because the number of failures is not.
    return timedelta(seconds=min(first * 2 ** min(repeated, 60), longest))


def _wait_for(attempt: Attempt, wait: timedelta) -> None:
    if wait > (attempt.wait or timedelta()):
        attempt.wait = wait


async def _read(identifier: str, address: str) -> Attempt:
    # A lone surrogate cannot be in UTF-8, but it can be typed.
    name = canonical(identifier).encode("utf-8", "surrogatepass").hex()
    fresh = (
        _counter(DAY, "pair", name, address),
        _counter(DAY, "account", name),
        _counter(HOUR, "address", address),
    )
    pair, account, address_counter = await counting.found(fresh, ("failures", "last_failure", "expires"))
    return Attempt(pair, account, address_counter)


def scope_of(period: timedelta, *about: str) -> tuple[str, datetime]:
    """Return the keyed hash that identifies a counter of the current period, and the end of the period.

    Does not send a request.
    """
    number, _ = divmod(clock.instant() - _EPOCH, period)
    scope = salted_hmac("accounts.lockout", "|".join((*about, str(number))), algorithm="sha256").hexdigest()
    return scope, _EPOCH + (number + 1) * period


def _counter(period: timedelta, *about: str) -> AbstractLoginFailures:
    scope, expires = scope_of(period, *about)
    return model_of(AbstractLoginFailures)(scope=scope, failures=0, last_failure=clock.now(), expires=expires)


_EPOCH: Final = clock.EPOCH


async def _count(
    counter: AbstractLoginFailures,
    number: int = 1,
    *,
    seen: AbstractLoginFailures | None = None,
    at_most: int | None = None,
) -> AbstractLoginFailures:
    now = clock.now() if number > 0 else counter.last_failure
    more = model_of(AbstractLoginFailures)(
        scope=counter.scope, failures=number, last_failure=now, expires=counter.expires
    )
    return await counting.added(more, "failures", seen=seen, at_most=at_most)
