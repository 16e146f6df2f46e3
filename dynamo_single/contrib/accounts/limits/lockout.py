"""Slows down whoever guesses passwords, and nobody else: how long an attempt to log in has to wait.

Failures are counted for an identifier at an address, for the identifier and for the address; which of them delays whom
is in docs/decisions/0016-counted-first.md. The counters hold no name and no address, only their keyed hashes. This
module must not know users or passwords, so an identifier that is nobody's is counted like any other.
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

#: How long failures are remembered. A count is never carried over into the next period, so no delay lasts.
DAY: Final = timedelta(days=1)
HOUR: Final = timedelta(hours=1)
#: An address may be a whole company's.
LONGEST_DELAY_OF_ADDRESS: Final = 60.0
#: What somebody with one IPv6 connection can choose from freely.
IPV6_NETWORK: Final = 64
NO_ADDRESS: Final = "unknown"
#: As some proxies write it, each connection with a port of its own.
_WITH_PORT: Final = re.compile(r"([0-9.]+):[0-9]+|(\[[0-9A-Fa-f:.]+\]):[0-9]+")


class Attempt(Struct):
    """One attempt to log in: ``wait`` says how long it is too early, if it is."""

    pair: AbstractLoginFailures
    account: AbstractLoginFailures
    address: AbstractLoginFailures
    wait: timedelta | None = None
    counted: tuple[AbstractLoginFailures, ...] = ()

    async def ended(self, *, succeeded: bool) -> None:
        """Count a failure, or take the attempt back.

        A failure is one UpdateItem for each counter that does not have it yet. A success takes the failures of this
        identifier at this address with it: one DeleteItem.
        """
        if not succeeded:
            for counter in (self.pair, self.account, self.address):
                if counter not in self.counted:
                    await _count(counter)
            return
        with suppress(StaleObject):  # another login of the same moment took it back
            await call_method(self.pair, "delete")
        if self.address in self.counted:
            await _count(self.address, -1)


def begin(request: HttpRequest, identifier: str) -> Attempt:
    """``begun()`` in this thread."""
    return run(begun(request, identifier))


async def begun(request: HttpRequest, identifier: str) -> Attempt:
    """Start an attempt: one BatchGetItem, strongly consistent, and one UpdateItem that counts it.

    It is counted as a failure before its password is looked at, so that of many attempts at once no more get through
    than one after the other. Where an address is being delayed, that is one UpdateItem more.
    """
    settings = account_settings()
    address = client_address(request, settings)
    if address == NO_ADDRESS:
        logger.warning(
            "REMOTE_ADDR is not an IP address, so that all logins count as those of one visitor, and an "
            "attacker who guesses a password locks out its owner. Set ACCOUNTS['CLIENT_ADDRESS_HEADER'] to "
            "the header that your proxy sets."
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
        except ConditionNotMet:  # as many others at this moment as are free
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
    """Whether a password is right that somebody who is logged in already gives again; counted like a login's.

    What ``begin()`` sends; a wrong one is two UpdateItems more, a right one a DeleteItem. An attempt that comes too
    early is wrong whatever it is, and ``told()`` says how long to wait.
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
    """Leave word for the login form why a right password would not have helped, or did not."""
    if isinstance(why, timedelta):
        address = "" if request is None else client_address(request, account_settings())
        logger.warning("A password from %s was refused: it came %d seconds too early.", address, why.total_seconds())
    if request is not None:
        request.META[_TOLD] = why


def told(request: HttpRequest | None) -> timedelta | str | None:
    """What ``tell()`` said of this request."""
    found: timedelta | str | None = None if request is None else request.META.get(_TOLD)
    return found


_TOLD: Final = "accounts.login_refused"
UNCONFIRMED: Final = "unconfirmed"


def client_address(request: HttpRequest, settings: AccountSettings) -> str:
    """Where a request comes from: the connection's address, or what the nearest trusted proxy says.

    Of a list such as ``X-Forwarded-For`` only the entries that trusted proxies wrote count, which are the last ones.
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
    """One text for each visitor: of IPv6 the network, since everybody has many addresses in one."""
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
    """The keyed hash under which something is counted in the present period, and when that ends. Sends nothing."""
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
