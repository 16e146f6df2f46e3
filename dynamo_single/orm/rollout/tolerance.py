"""Measure for how long DynamoDB accepts a signature after its date.

AWS documents only that a request must arrive within five minutes of its date "in most cases":
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-troubleshooting.html. Messages of its services also
mention 15 minutes. Proxies may sign requests again, and local engines do not check dates.
"""

from __future__ import annotations

from time import monotonic
from typing import Final

from msgspec.structs import replace

from dynamo_single.exceptions import AccessDenied, Expired
from dynamo_single.orm.requests.compiler import item_key
from dynamo_single.orm.rollout.states import partition_of
from dynamo_single.table.flow import run
from dynamo_single.table.lease import Lease
from dynamo_single.table.request import Request
from dynamo_single.table.table import Table

#: How many seconds ago the probes are dated.
AGES: Final = (240, 290, 310, 890, 910)
#: The tolerance that each set of accepted ages proves. For any other set, the tolerance is unknown.
_TOLERANCES: Final = {(240, 290): 300.0, (240, 290, 310, 890): 900.0}
#: A rejected probe that took longer, in seconds, was dated too long ago in the end. It is sent again.
_SLOW: Final = 5.0
_ATTEMPTS: Final = 3

#: The sort key of the probes, under which there is no item.
_SORT_KEY: Final = "TOLERANCE"


def accepted_ages(table: Table) -> tuple[int, ...]:
    """Return the ages of signatures, of ``AGES``, that the endpoint of a table accepts from the credentials in use.

    Send six GetItems of an item that does not exist. The first one returns the server's time. Each of the others is
    dated back by one of ``AGES``. A rejected probe that took over five seconds is sent up to three times. Raise the
    errors of ``Table.send()`` unless they reject a signature. A response without the header ``Date`` proves nothing:
    no age is accepted. AWS may reject dates before the issue of temporary credentials.
    """
    _, served_at = run(table.ask_dated(_probe(table)))
    begun = monotonic()
    return () if served_at is None else tuple(age for age in AGES if _is_accepted(table, age, served_at - begun))


def tolerance_of(accepted: tuple[int, ...]) -> float | None:
    """Return for how many seconds signatures are accepted, 300 or 900; ``None`` if dates do not fence."""
    return _TOLERANCES.get(accepted)


def _probe(table: Table) -> Request:
    return Request("GetItem", {"Key": item_key((partition_of(table.settings), _SORT_KEY))})


def _is_accepted(table: Table, age: int, ahead: float) -> bool:
    """Return whether a request dated ``age`` seconds ago is executed; ``ahead`` is the server's clock less ours."""
    for _ in range(_ATTEMPTS):
        begun = monotonic()
        # A lease that has ended: a rejection is not counted as wrongful.
        lease = Lease(0, begun + ahead - 60, age - 60)
        try:
            table.send(replace(_probe(table), lease=lease))
        except (Expired, AccessDenied):
            if monotonic() - begun < _SLOW:
                return False
        else:
            return True
    return False
