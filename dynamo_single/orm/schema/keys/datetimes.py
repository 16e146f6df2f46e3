"""Write and read datetimes as strings, in formats that sort by time.

A format contains a date, a time and a time zone of fixed lengths. DynamoDB compares strings by their bytes, and
therefore by time. This module does not depend on attributes or models.
"""

from __future__ import annotations

import datetime
import re
from functools import lru_cache
from typing import Final, Literal

from msgspec import Struct

from dynamo_single import clock
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.schema.keys.values import shown

#: The format of JavaScript's ``Date.toISOString()``: milliseconds and ``Z``. ``strftime()`` has no milliseconds.
ISO: Final = "iso"
#: The format of PynamoDB's ``UTCDateTimeAttribute`` (``pynamodb.constants.DATETIME_FORMAT``).
PYNAMODB: Final = "%Y-%m-%dT%H:%M:%S.%f+0000"
#: The length of PynamoDB's strings, with the year's zeros.
_PYNAMODB_LENGTH: Final = 31

_FORMAT: Final = re.compile(r"%Y-%m-%d([T ])%H:%M:%S(\.%f)?(Z|\+00:00|\+0000)?")
_UNITS: Final = {
    "milliseconds": datetime.timedelta(milliseconds=1),
    "microseconds": datetime.timedelta(microseconds=1),
    "seconds": datetime.timedelta(seconds=1),
}


class DatetimeFormat(Struct, frozen=True):
    """A string format of datetimes in UTC; ``precision`` is its smallest part."""

    separator: str
    precision: Literal["seconds", "milliseconds", "microseconds"]
    zone: str

    @property
    def unit(self) -> datetime.timedelta:
        """The precision as a duration."""
        return _UNITS[self.precision]

    def write(self, value: datetime.datetime) -> str:
        """Return the string of a datetime, without the parts below the precision."""
        in_utc = clock.in_utc(value).replace(tzinfo=None)
        return f"{in_utc.isoformat(self.separator, self.precision)}{self.zone}"


@lru_cache(maxsize=64)
def datetime_format(name: str) -> DatetimeFormat:
    """Return a format by its name ``iso``, or as ``strftime()`` takes it.

    Raises ``ConfigurationError`` if its strings do not sort by time.
    """
    if name == ISO:
        return DatetimeFormat("T", "milliseconds", "Z")
    found = _FORMAT.fullmatch(name)
    if found is None:
        raise ConfigurationError(
            f"Strings of the format {shown(name)} do not sort by time. Use '%Y-%m-%dT%H:%M:%SZ', also with a space "
            "instead of the T, with .%f after the seconds, and with +00:00, +0000 or nothing instead of the Z."
        )
    return DatetimeFormat(found[1], "microseconds" if found[2] else "seconds", found[3] or "")


def read_datetime(text: str) -> datetime.datetime:
    """Return the datetime of any ISO 8601 string, in UTC; a string without a time zone is in UTC.

    Raises ``ValueError`` for another string. Omits parts below a microsecond.
    """
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        # Older versions of PynamoDB wrote years before 1000 without zeros.
        text = text.upper()
        found = datetime.datetime.fromisoformat(text.zfill(_PYNAMODB_LENGTH) if text.endswith("+0000") else text)
    return found.replace(tzinfo=datetime.UTC) if found.tzinfo is None else found.astimezone(datetime.UTC)
