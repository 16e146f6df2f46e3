"""The page in the place of one that DynamoDB gives no answer for, or an answer that cannot be read."""

from __future__ import annotations

import functools
from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from dynamo_single.admin.responses import answered_by
from dynamo_single.exceptions import (
    Conflict,
    EndpointUnreachable,
    TableNotFound,
    Throttled,
    UnexpectedItem,
    UnreadableItem,
)
from dynamo_single.unavailable import AWAY, CHANGING, unavailable_response

#: What a page of its own stands for.
UNAVAILABLE = (*AWAY, UnexpectedItem, UnreadableItem)


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
    """Return the page, with status 503, or 500 for an item that cannot be read. It reads no user and no session."""
    is_changing = isinstance(error, CHANGING)
    is_unreadable = isinstance(error, UnexpectedItem | UnreadableItem) and not is_changing
    context = {
        "is_missing": isinstance(error, TableNotFound),
        "is_changing": is_changing,
        "is_unreadable": is_unreadable,
        "may_pass": isinstance(error, EndpointUnreachable | Throttled | Conflict),
    }
    return unavailable_response(
        request,
        error,
        template="dynamo_single/admin/unavailable.html",
        context=context,
        status=HTTPStatus.INTERNAL_SERVER_ERROR if is_unreadable else HTTPStatus.SERVICE_UNAVAILABLE,
    )
