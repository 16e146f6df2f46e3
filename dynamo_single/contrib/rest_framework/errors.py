"""Responses for the app's errors.

``"EXCEPTION_HANDLER": "dynamo_single.contrib.rest_framework.errors.exception_handler"`` in ``REST_FRAMEWORK``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.utils.translation import gettext as _
from rest_framework import views
from rest_framework.exceptions import APIException, NotFound
from rest_framework.generics import GenericAPIView
from rest_framework.permissions import SAFE_METHODS
from rest_framework.response import Response

from dynamo_single.exceptions import (
    AlreadyExists,
    BulkIntegrityError,
    DynamoSingleError,
    ImmutableAttribute,
    InvalidCursor,
    MissingReference,
    OutcomeUnknown,
    ParentInTrash,
    StillReferenced,
    UniqueViolation,
)
from dynamo_single.unavailable import REFUSED, RETRY_AFTER, status_of, visitor_message

logger = logging.getLogger("dynamo_single.rest_framework")


def exception_handler(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """Return a response for an error of this app, and leave other errors to REST framework's handler.

    - 400: a query that no key supports, an unsuitable value, a change of an immutable attribute (``fields`` names it),
      another unsupported change, or an object that is too large.
    - 404: an object that is not stored, or an invalid cursor.
    - 409: a conflict with a concurrent write or with another object. If the view is about one object, it is read again
      (one GetItem), and ``stored`` contains it as the view's serializer returns it.
    - 503 with ``Retry-After``: DynamoDB did not respond, or a migration is open. If ``outcome_unknown`` is true, the
      write may have happened.

    With ``DEBUG``, ``message`` contains the error's own message, which names models and keys. The log always has it.
    """
    if not isinstance(error, DynamoSingleError):
        return views.exception_handler(error, context)
    status = status_of(type(error))
    if status is None:
        return None
    if status == HTTPStatus.NOT_FOUND:
        is_cursor = isinstance(error, InvalidCursor)
        return views.exception_handler(NotFound(_("Invalid cursor") if is_cursor else None), context)
    return _response(status, error, context, **_data(status, error, context))


def _response(status: HTTPStatus, error: Exception, context: Mapping[str, Any], **data: Any) -> Response:
    request = context.get("request")
    path = getattr(request, "path", "")
    logger.log(logging.ERROR if status >= 500 else logging.WARNING, "%s: %s", path, error, exc_info=error)
    if settings.DEBUG:
        data["message"] = str(error)
    views.set_rollback()
    headers = {"Retry-After": str(RETRY_AFTER)} if status == HTTPStatus.SERVICE_UNAVAILABLE else None
    return Response(data, status=status, headers=headers)


def _data(status: HTTPStatus, error: Exception, context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a response by its status."""
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        return {"detail": visitor_message(error), "outcome_unknown": isinstance(error, OutcomeUnknown)}
    if status == HTTPStatus.CONFLICT:
        return _conflict(error, context)
    if isinstance(error, ImmutableAttribute):
        name = apps.get_model(error.label)._meta.get_field(error.field).name
        return {"detail": _("This value cannot be changed. Nothing was saved."), "fields": [name]}
    if not isinstance(error, REFUSED):
        return {"detail": _("A value is not valid, or is too large for DynamoDB. Nothing was saved.")}
    if getattr(context.get("request"), "method", "GET") in SAFE_METHODS:
        return {"detail": _("No key supports this filter, search or order.")}
    return {"detail": _("This request is not supported.")}


def _conflict(error: Exception, context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a conflict, with the field of a taken value or with the stored object."""
    if isinstance(error, UniqueViolation):
        return {"detail": _("Another object has this value. Nothing was saved."), "fields": list(error.fields)}
    if isinstance(error, AlreadyExists | BulkIntegrityError):
        return {"detail": _("An object with this key already exists. Nothing was overwritten.")}
    if isinstance(error, StillReferenced):
        return {"detail": _("Other objects still refer to this object. Nothing was deleted.")}
    if isinstance(error, MissingReference | ParentInTrash):
        return {"detail": _("A referenced object no longer exists. Nothing was saved.")}
    changed = {"detail": _("Another request changed this object. Nothing was saved.")}
    stored = _stored(error, context)
    return changed if stored is None else {**changed, "stored": stored}


def _stored(error: Exception, context: Mapping[str, Any]) -> Any:
    """Return the stored object as the view's serializer shows it; ``None`` if the view is not about one object."""
    view = context.get("view")
    if not isinstance(view, GenericAPIView) or (view.lookup_url_kwarg or view.lookup_field) not in view.kwargs:
        return None
    # The object may be deleted, or hidden from this user.
    with suppress(APIException, DynamoSingleError, Http404, PermissionDenied):
        return view.get_serializer(view.get_object()).data
    return None
