"""The page in the place of one that DynamoDB gives no answer for, or an answer that cannot be read."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string

from dynamo_single.admin.responses import answered_by
from dynamo_single.exceptions import (
    Conflict,
    EndpointUnreachable,
    FormNotApplied,
    KeyNotFilled,
    SchemaVersionError,
    TableNotFound,
    TableUnavailable,
    Throttled,
    UnexpectedItem,
    UnreadableItem,
)

logger = logging.getLogger("dynamo_single.admin")

#: What code is told whose models have another form than the table's items: a migration is not applied, or not finished.
_CHANGING = (FormNotApplied, KeyNotFilled, SchemaVersionError)
#: What a page of its own stands for.
UNAVAILABLE = (TableUnavailable, *_CHANGING, UnexpectedItem, UnreadableItem)


def or_unavailable(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """A view, with the page in its place where it meets one of the errors; also while its template is rendered."""

    @functools.wraps(view)
    def guarded(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        page = functools.partial(unavailable, request)
        try:
            return answered_by(view(request, *args, **kwargs), UNAVAILABLE, page)
        except UNAVAILABLE as error:
            return page(error)

    return guarded


def unavailable(request: HttpRequest, error: Exception) -> HttpResponseBase:
    """The page: status 503, or 500 for an item that cannot be read. It asks for no user and no session."""
    logger.error("The admin could not answer %s", request.path, exc_info=error)
    is_changing = isinstance(error, _CHANGING)
    is_unreadable = isinstance(error, UnexpectedItem | UnreadableItem) and not is_changing
    # The message names endpoints and commands: for developers.
    context = {
        "message": str(error) if settings.DEBUG else "",
        "is_missing": isinstance(error, TableNotFound),
        "is_changing": is_changing,
        "is_unreadable": is_unreadable,
        "may_pass": isinstance(error, EndpointUnreachable | Throttled | Conflict),
    }
    page = render_to_string("dynamo_single/admin/unavailable.html", context)
    return HttpResponse(page, status=500 if is_unreadable else 503)
