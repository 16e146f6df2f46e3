"""What requests cost, in words for the pages of the admin, which can be translated."""

from __future__ import annotations

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from dynamo_single.costs import Costs
from dynamo_single.table.request import READS


def in_words(costs: Costs) -> str:
    """As ``str()`` has it: requests, items read and returned, units, time."""
    if not costs.operations:
        return _("no requests")
    operations = ", ".join(f"{count} {operation}" for operation, count in costs.operations.items())
    failed = _(", %(count)d failed") % {"count": costs.failures} if costs.failures else ""
    number = costs.requests
    counted = ngettext("%(count)s request (%(which)s)", "%(count)s requests (%(which)s)", number)
    parts = [counted % {"count": f"{number:,}", "which": f"{operations}{failed}"}]
    if not READS.isdisjoint(costs.operations):
        read = ngettext(
            "%(read)s item read, %(returned)s returned", "%(read)s items read, %(returned)s returned", costs.items_read
        )
        parts.append(read % {"read": f"{costs.items_read:,}", "returned": costs.items_returned})
        units = ngettext("%(count)s read unit", "%(count)s read units", _plural(costs.read_units))
        parts.append(units % {"count": _number(costs.read_units)})
    if costs.write_units:
        units = ngettext("%(count)s write unit", "%(count)s write units", _plural(costs.write_units))
        parts.append(units % {"count": _number(costs.write_units)})
    return ", ".join([*parts, _("%(count)s ms") % {"count": f"{costs.seconds * 1000:.1f}"}])


def _number(units: float) -> str:
    return f"{units:,.10g}"


def _plural(units: float) -> int:
    """The number that decides the form of a noun: half a unit is none of one."""
    return int(units) if units.is_integer() else 2
