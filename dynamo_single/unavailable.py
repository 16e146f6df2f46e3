"""Choose the HTTP status of this app's errors, and respond with status 503 while DynamoDB cannot be used.

The middleware and the admin's pages create their responses here; APIs read ``status_of()``. This module does not
depend on models.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import NotSupportedError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import TemplateDoesNotExist
from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from dynamo_single.exceptions import (
    AlreadyExists,
    BulkIntegrityError,
    CheckViolation,
    ConditionNotMet,
    DisallowedLookup,
    FormNotApplied,
    InvalidCursor,
    InvalidValue,
    ItemTooLarge,
    KeyNotFilled,
    MissingReference,
    ObjectMissing,
    OutcomeUnknown,
    ParentInTrash,
    StaleObject,
    StillReferenced,
    TableUnavailable,
    UnexpectedItem,
    UniqueViolation,
    UnknownField,
    UnreadableItem,
)

__all__ = ["AWAY", "CHANGING", "REFUSED", "RETRY_AFTER", "status_of", "unavailable_response", "visitor_message"]

logger = logging.getLogger("dynamo_single.unavailable")

#: The errors of models whose schema differs from the table's items: a migration is not applied, or not finished.
CHANGING = (FormNotApplied, KeyNotFilled)
#: The errors that lead to status 503.
AWAY = (TableUnavailable, *CHANGING)
#: The errors of unsupported queries and changes, and of queries that name a secret. Django's ``NotSupportedError``, the
#: base of ours, is what ``filter()`` raises after a set operation.
REFUSED = (NotSupportedError, UnknownField, DisallowedLookup)
#: The seconds after which a client may try again.
RETRY_AFTER = 5

#: The first entry with a base class of an error has its status.
_STATUSES: tuple[tuple[HTTPStatus | None, tuple[type[Exception], ...]], ...] = (
    (HTTPStatus.SERVICE_UNAVAILABLE, AWAY),
    (HTTPStatus.NOT_FOUND, (ObjectMissing, InvalidCursor)),
    # The stored data is wrong, not the request.
    (None, (UnreadableItem,)),
    (HTTPStatus.BAD_REQUEST, (*REFUSED, InvalidValue, ItemTooLarge, CheckViolation)),
    # A concurrent write or another object prevents the write.
    (HTTPStatus.CONFLICT, (AlreadyExists, BulkIntegrityError, ConditionNotMet, MissingReference, ParentInTrash)),
    (HTTPStatus.CONFLICT, (StaleObject, StillReferenced, UniqueViolation)),
)
_TYPES = ["text/html", "application/json", "text/plain"]
_TEMPLATE = "dynamo_single/unavailable.html"


def status_of(kind: type[BaseException]) -> HTTPStatus | None:
    """Return the HTTP status for a class of errors; ``None`` if it is not the client's error, or not of this app."""
    return next((status for status, kinds in _STATUSES if issubclass(kind, kinds)), None)


def unavailable_response(
    request: HttpRequest,
    error: Exception,
    *,
    template: str = _TEMPLATE,
    context: Mapping[str, object] | None = None,
    status: int = HTTPStatus.SERVICE_UNAVAILABLE,
) -> HttpResponse:
    """Return a response for an error: HTML, JSON or text, as the request's ``Accept`` header prefers.

    It reads neither the user nor the session, is never cached, and with status 503 has ``Retry-After``. Its message is
    for visitors. The error's own message, which names endpoints and commands, is added only with ``DEBUG``.
    """
    logger.error("DynamoDB could not serve %s", request.path, exc_info=error)
    is_unknown = isinstance(error, OutcomeUnknown)
    detail = visitor_message(error)
    message = str(error) if settings.DEBUG else ""
    kind = request.get_preferred_type(_TYPES)
    response: HttpResponse
    if kind == "application/json":
        told = {"detail": detail, "outcome_unknown": is_unknown, **({"message": message} if message else {})}
        response = JsonResponse(told, status=status)
    elif kind == "text/html":
        page = _page(template, {"detail": detail, "message": message, **(context or {})})
        response = HttpResponse(page, status=status)
    else:
        response = HttpResponse(f"{detail}\n{message}".strip(), status=status, content_type="text/plain; charset=utf-8")
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        response.headers["Retry-After"] = str(RETRY_AFTER)
    response.headers["Cache-Control"] = "no-store"
    return response


def visitor_message(error: Exception) -> str:
    """Return the message for visitors, which names neither endpoints nor models."""
    if isinstance(error, OutcomeUnknown):
        return _("The database did not respond. Your changes may have been saved: check before you send them again.")
    if isinstance(error, CHANGING):
        return _("The database is being changed. Nothing was saved. Try again in a moment.")
    if isinstance(error, UnexpectedItem | UnreadableItem):
        return _("Stored data cannot be read. Nothing was saved.")
    return _("The database did not respond. Try again in a moment.")


def _page(template: str, context: Mapping[str, object]) -> str:
    try:
        # Without the request, whose context processors would read the user.
        return render_to_string(template, dict(context))
    except (TemplateDoesNotExist, ImproperlyConfigured):
        # The project does not render templates, or not those of apps.
        return f"<!doctype html><title>503</title><p>{context['detail']}</p>"
