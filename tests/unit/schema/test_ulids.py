"""ULIDs: their form, their order, and the least one of a moment."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_single import models
from dynamo_single.exceptions import ConfigurationError, InvalidValue, NotSupported
from dynamo_single.orm.schema.keys import identifiers
from dynamo_single.testing import frozen_time

NOON = datetime(2025, 1, 31, 12, tzinfo=UTC)
moments = st.datetimes(datetime(1970, 1, 1), datetime(9999, 1, 1), timezones=st.just(UTC))


def test_the_form_is_that_of_the_specification() -> None:
    """26 digits of Crockford's base 32, of which the first ten are the time: its own example."""
    assert re.fullmatch(r"[0-9A-HJKMNP-TV-Z]{26}", identifiers.make_ulid())
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=1469918176385)
    assert identifiers.first_at(moment) == "01ARYZ6S41" + "0" * 16


@given(moments, moments)
def test_they_sort_by_their_moments(one: datetime, other: datetime) -> None:
    """To the millisecond."""
    first, second = (each.replace(microsecond=each.microsecond // 1000 * 1000) for each in (one, other))
    assert (identifiers.first_at(one) < identifiers.first_at(other)) == (first < second)


def test_those_of_one_instant_keep_the_order_in_which_they_were_made() -> None:
    """They are between the smallest of their time and the smallest of the next."""
    with frozen_time(NOON):
        made = [identifiers.make_ulid() for _ in range(1000)]
    assert made == sorted(set(made))
    assert identifiers.first_at(NOON) <= made[0]
    assert made[-1] < identifiers.first_at(NOON + timedelta(milliseconds=1))


def test_threads_make_different_ones() -> None:
    """This includes identifiers with the same time."""
    with frozen_time(NOON), ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: identifiers.make_ulid(), range(2000)))
    assert len(set(made)) == 2000


@pytest.mark.parametrize("moment", ["2025-01-01", None, datetime(2025, 1, 1).date(), 0])
def test_what_is_no_moment_has_none(moment: Any) -> None:
    """The error describes a valid datetime."""
    with pytest.raises(InvalidValue, match=r"is not a datetime\. Use a datetime"):
        identifiers.first_at(moment)


def test_a_moment_before_1970_has_none() -> None:
    """It raises an error instead of wrapping around."""
    with pytest.raises(InvalidValue, match="is before 1970"):
        identifiers.first_at(datetime(1969, 12, 31, tzinfo=UTC))


def test_an_attribute_puts_its_prefix_in_front() -> None:
    """This applies to generated identifiers and to limits."""
    attribute = models.IdAttribute(kind="ulid", prefix="msg")
    with frozen_time(NOON):
        assert attribute.first_at(NOON) <= attribute.make() < attribute.first_at(NOON + timedelta(milliseconds=1))
    assert attribute.make().startswith("msg-0")


def test_other_kinds_have_no_first_one() -> None:
    """The error names the attributes that have one."""
    attribute = models.IdAttribute()
    attribute.name = "message_id"
    with pytest.raises(NotSupported, match=r'message_id does not contain its creation.*IdAttribute\(kind="ulid"\)'):
        attribute.first_at(NOON)
    with pytest.raises(ConfigurationError, match="kind='ulid'\\) makes no UUIDs"):
        models.IdAttribute(kind="ulid", uuid_version=1)
