"""The panel of django-debug-toolbar: requests, their costs, and duplicates.

``DEBUG_TOOLBAR_PANELS = [..., "dynamo_single.contrib.observability.panels.DynamoPanel"]``.
"""

from __future__ import annotations

from typing import Any, Final

from debug_toolbar.panels import Panel
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from dynamo_single.contrib.observability.described import describe
from dynamo_single.costs import Cost, Costs
from dynamo_single.table.redirects import SentRequest, listen, unlisten

#: The most requests that the panel lists. Its totals include all of them.
MAX_LISTED: Final = 500


class DynamoPanel(Panel):  # type: ignore[misc]  # the package has no types
    """The requests of a page, in the order of their responses. It shows neither keys nor values."""

    title = _("DynamoDB")
    template = "dynamo_single/debug_toolbar/panel.html"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._costs = Costs()
        self._rows: list[dict[str, Any]] = []
        self._sent: dict[str, int] = {}

    @property
    def nav_subtitle(self) -> str:
        """The total in the toolbar."""
        count = self.get_stats().get("count", 0)
        return ngettext("%(count)s request", "%(count)s requests", count) % {"count": count}

    def enable_instrumentation(self) -> None:
        """Start listening."""
        listen(self._hear)

    def disable_instrumentation(self) -> None:
        """Stop listening."""
        unlisten(self._hear)

    def _hear(self, sent: SentRequest) -> None:
        self._costs.add(Cost.of(sent))
        # Two requests are the same if their parameters are; the values stay in this process.
        same = f"{sent.operation} {sent.params}"
        self._sent[same] = self._sent.get(same, 0) + 1
        if len(self._rows) >= MAX_LISTED:
            return
        found = describe(sent)
        self._rows.append(
            {
                "operation": sent.operation,
                "table": found.table,
                "index": found.index,
                "model": found.model,
                "read": found.cost.items_read,
                "returned": found.cost.items_returned,
                "units": found.cost.read_units + found.cost.write_units,
                "milliseconds": round(sent.seconds * 1000, 1),
                "retries": found.retries,
                "error": sent.error,
                "times": self._sent[same],
            }
        )

    def generate_stats(self, request: HttpRequest, response: HttpResponse) -> None:
        """Record what the panel shows."""
        repeated = sum(times - 1 for times in self._sent.values())
        self.record_stats(
            {
                "count": self._costs.requests,
                "total": str(self._costs),
                "repeated": repeated,
                "rows": self._rows,
                "left_out": self._costs.requests - len(self._rows),
            }
        )
