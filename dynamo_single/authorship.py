"""The author of new objects: the user of an HTTP request, or a user that a command names.

``models.AuthoredModel`` stores it. This module must not depend on how objects are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db.models import Model
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from dynamo_single.exceptions import ConfigurationError
from dynamo_single.middleware import Middleware, is_stream, read_within
from dynamo_single.orm.schema.attributes.references import author

__all__ = ["CurrentUserMiddleware", "acting_as"]


@contextmanager
def acting_as(user: object) -> Iterator[None]:
    """Set the author of objects that are created in the block or the decorated function: a user or its ``pk``.

    An object must be an instance of the author's model; a ``pk`` is not checked. ``None`` means no author. It works in
    asynchronous code too. The user is not read.
    """
    who = _known(user)
    with _acting(lambda: who):
        yield


@contextmanager
def _acting(who: Callable[[], tuple[Any, Any]]) -> Iterator[None]:
    token = author.set(who)
    try:
        yield
    finally:
        author.reset(token)


class CurrentUserMiddleware(Middleware):
    """Set the user of a request as the author of objects that are created while the request is handled.

    Put it after ``AuthenticationMiddleware``. It reads the user only when an object is created, and treats an anonymous
    user as no author. Objects that a streamed response creates while it is sent are included. Works in synchronous and
    asynchronous projects.
    """

    def _answer_now(self, request: HttpRequest) -> HttpResponseBase:
        with _acting(lambda: _user_of(request)):
            response: HttpResponseBase = self.get_response(request)
        return _streamed(request, response)

    async def _answer(self, request: HttpRequest) -> HttpResponseBase:
        with _acting(lambda: _user_of(request)):
            response: HttpResponseBase = await self.get_response(request)
        return _streamed(request, response)


def _user_of(request: HttpRequest) -> tuple[Any, Any]:
    if not hasattr(request, "user"):
        raise ConfigurationError(
            "CurrentUserMiddleware does not know the request's user: put "
            "django.contrib.auth.middleware.AuthenticationMiddleware in front of it in MIDDLEWARE."
        )
    return _known(request.user)


def _known(user: object) -> tuple[object, object]:
    """Return the model and the ``pk`` of an object, or only a ``pk``."""
    is_object = isinstance(user, Model)  # including a lazy object
    return user.__class__ if is_object else None, getattr(user, "pk", user)


def _streamed(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    if is_stream(response):
        # The parts of a response need not all be read in one context.
        read_within(response, lambda: _acting(lambda: _user_of(request)), lambda: None)
    return response
