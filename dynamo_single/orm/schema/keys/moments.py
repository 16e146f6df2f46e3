"""Moments as text: the formats that sort by time, written and read.

A format consists of a date, a time and a time zone of fixed lengths in this order, so that DynamoDB, which compares
text by its bytes, orders the texts as the moments. This module does not depend on attributes or models.
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

#: What JavaScript's ``Date.toISOString()`` writes: milliseconds and ``Z``. ``strftime()`` has no milliseconds.
ISO: Final = "iso"
#: What PynamoDB's ``UTCDateTimeAttribute`` writes (``pynamodb.constants.DATETIME_FORMAT``).
PYNAMODB: Final = "%Y-%m-%dT%H:%M:%S.%f+0000"
#: How long a text of PynamoDB's is, with the year's zeros.
_PYNAMODB_LENGTH: Final = 31

_FORMAT: Final = re.compile(r"%Y-%m-%d([T ])%H:%M:%S(\.%f)?(Z|\+00:00|\+0000)?")
_UNITS: Final = {
    "milliseconds": datetime.timedelta(milliseconds=1),
    "microseconds": datetime.timedelta(microseconds=1),
    "seconds": datetime.timedelta(seconds=1),
}


class MomentFormat(Struct, frozen=True):
    """A text format of moments in UTC; ``precision`` is the smallest part that it contains."""

    separator: str
    precision: Literal["seconds", "milliseconds", "microseconds"]
    zone: str

    @property
    def unit(self) -> datetime.timedelta:
        """The precision as a duration."""
        return _UNITS[self.precision]

    def write(self, moment: datetime.datetime) -> str:
        """Return the text of a moment; smaller parts are cut off."""
        in_utc = clock.in_utc(moment).replace(tzinfo=None)
        return f"{in_utc.isoformat(self.separator, self.precision)}{self.zone}"


@lru_cache(maxsize=64)
def moment_format(name: str) -> MomentFormat:
    """Return a format by its name ``iso`` or as ``strftime()`` writes it; raise for one that does not sort by time."""
    if name == ISO:
        return MomentFormat("T", "milliseconds", "Z")
    found = _FORMAT.fullmatch(name)
    if found is None:
        raise ConfigurationError(
            f"Texts of the format {shown(name)} do not sort by time. Use '%Y-%m-%dT%H:%M:%SZ', also with a space "
            "instead of the T, with .%f after the seconds, and with +00:00, +0000 or nothing instead of the Z."
        )
    return MomentFormat(found[1], "microseconds" if found[2] else "seconds", found[3] or "")


def read_moment(text: str) -> datetime.datetime:
    """Return the moment of an ISO 8601 text of any format, in UTC; a text without a time zone is in UTC.

    Raises ``ValueError`` for another text. Parts smaller than a microsecond are cut off.
    """
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        # Older versions of PynamoDB wrote years before 1000 without zeros.
        text = text.upper()
        moment = datetime.datetime.fromisoformat(text.zfill(_PYNAMODB_LENGTH) if text.endswith("+0000") else text)
    return moment.replace(tzinfo=datetime.UTC) if moment.tzinfo is None else moment.astimezone(datetime.UTC)
