"""Responses for errors in an OpenAPI schema.

In ``SPECTACULAR_SETTINGS`` of drf-spectacular, add ``"dynamo_single.contrib.rest_framework.schema.add_errors"`` to
``"POSTPROCESSING_HOOKS"``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http import HTTPMethod, HTTPStatus
from typing import Any, Final

_TEXT: Final = {"type": "string"}
_WRITES: Final = frozenset({HTTPMethod.POST, HTTPMethod.PUT, HTTPMethod.PATCH, HTTPMethod.DELETE})
#: The properties next to ``detail``, by status, and a description.
_BODIES: Final[Mapping[HTTPStatus, tuple[str, dict[str, Any]]]] = {
    HTTPStatus.BAD_REQUEST: (
        "A value is not valid, or no key supports the request.",
        {"fields": {"type": "array", "items": _TEXT}},
    ),
    HTTPStatus.NOT_FOUND: ("The object is not stored, or the cursor is not valid.", {}),
    HTTPStatus.CONFLICT: (
        "The change conflicts with another request or object. Nothing was saved.",
        {"fields": {"type": "array", "items": _TEXT}, "stored": {"type": "object", "additionalProperties": {}}},
    ),
    HTTPStatus.SERVICE_UNAVAILABLE: ("The database cannot be used.", {"outcome_unknown": {"type": "boolean"}}),
}


def add_errors(result: dict[str, Any], generator: object, request: object, public: bool) -> dict[str, Any]:
    """Add the responses of ``exception_handler`` to each operation, unless the operation declares the status."""
    for path, operations in result.get("paths", {}).items():
        for method, operation in operations.items():
            for status in _statuses(path, method.upper(), operation):
                operation["responses"].setdefault(str(status.value), _response(status))
    return result


def _statuses(path: str, method: str, operation: Mapping[str, Any]) -> Iterator[HTTPStatus]:
    yield HTTPStatus.BAD_REQUEST
    if "{" in path or any(each["name"] == "cursor" for each in operation.get("parameters", ())):
        yield HTTPStatus.NOT_FOUND
    if method in _WRITES:
        yield HTTPStatus.CONFLICT
    yield HTTPStatus.SERVICE_UNAVAILABLE


def _response(status: HTTPStatus) -> dict[str, Any]:
    description, properties = _BODIES[status]
    # Errors of a filter or a serializer are lists of messages by the name of the parameter or field.
    schema = {"type": "object", "properties": {"detail": _TEXT, **properties}, "additionalProperties": {}}
    response: dict[str, Any] = {"description": description, "content": {"application/json": {"schema": schema}}}
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        response["headers"] = {"Retry-After": {"description": "Seconds", "schema": {"type": "integer"}}}
    return response
