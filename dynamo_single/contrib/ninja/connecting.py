"""Connect an API with the app's errors, and register the type of sets."""

from __future__ import annotations

import logging
from decimal import Decimal
from http import HTTPStatus
from typing import Annotated, Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.orm import register_field
from pydantic import BeforeValidator, ValidationError

from dynamo_single import exceptions
from dynamo_single.exceptions import DynamoSingleError, OutcomeUnknown, UniqueViolation
from dynamo_single.unavailable import RETRY_AFTER, status_of, visitor_message

logger = logging.getLogger("dynamo_single.ninja")

_DETAILS: Final = {
    HTTPStatus.BAD_REQUEST: "The API does not support this request, or a value is invalid.",
    HTTPStatus.NOT_FOUND: "Not Found",
    HTTPStatus.CONFLICT: "This change conflicts with another object or request. Nothing was saved.",
}


def _listed(value: Any) -> Any:
    return sorted(value) if isinstance(value, set | frozenset) else value


# A set is an array in JSON; the attribute checks the type of its members.
register_field("SetField", Annotated[list[str | int | Decimal], BeforeValidator(_listed)])


def connect(api: NinjaAPI) -> None:
    """Let an API return a response for each error of this app.

    - 400: a query that no key supports, an unsupported change, an invalid value, or an object that is too large.
    - 404: an object that is not stored, or an invalid cursor.
    - 409: a conflict with a concurrent write or with another object; ``fields`` names the attributes of a taken value.
    - 503 with ``Retry-After``: DynamoDB did not respond, or a migration is open. If ``outcome_unknown`` is true, the
      write may have happened.

    With ``DEBUG``, ``message`` contains the error's own message. The log always has it.
    """
    api.add_exception_handler(DynamoSingleError, lambda request, error: _response(api, request, error, type(error)))
    api.add_exception_handler(ValidationError, lambda request, error: _response(api, request, error, _kind(error)))


def _kind(error: ValidationError) -> type[BaseException]:
    """Return the class of the error of a queryset. Pydantic keeps only its name."""
    for each in error.errors():
        if each["type"] == "get_attribute_error":
            found = getattr(exceptions, str(each["ctx"]["error"]).partition(":")[0], None)
            if isinstance(found, type) and issubclass(found, DynamoSingleError):
                return found
    return type(error)


def _response(api: NinjaAPI, request: HttpRequest, error: Any, kind: type[BaseException]) -> HttpResponse:
    status = status_of(kind)
    if status is None:
        raise error
    logger.log(logging.ERROR if status >= 500 else logging.WARNING, "%s: %s", request.path, error, exc_info=error)
    data: dict[str, Any] = {"detail": _DETAILS.get(status) or str(visitor_message(error))}
    if isinstance(error, UniqueViolation):
        data["fields"] = list(error.fields)
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        data["outcome_unknown"] = isinstance(error, OutcomeUnknown)
    if settings.DEBUG:
        data["message"] = str(error)
    response: HttpResponse = api.create_response(request, data, status=status)
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        response["Retry-After"] = str(RETRY_AFTER)
    return response
