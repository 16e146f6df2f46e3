"""The costs of a page for its footer: ``{{ request.costs }}``. Requests sent after the footer are not included."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from dynamo_single.costs import measure_requests


def page_costs(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Return middleware that counts the requests of each page as they are sent."""

    def measured(request: HttpRequest) -> HttpResponse:
        with measure_requests() as costs:
            request.costs = costs  # type: ignore[attr-defined]  # for templates
            return get_response(request)

    return measured
