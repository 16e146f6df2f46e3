"""The author of new objects: the user of an HTTP request, or a user that a command names.

``models.AuthoredModel`` stores it. This module must not depend on how objects are written.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.db.models import Model
from django.http import FileResponse, HttpRequest
from django.http.response import HttpResponseBase, StreamingHttpResponse

from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.schema.attributes.references import author

__all__ = ["CurrentUserMiddleware", "acting_as"]

_END = object()


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


class CurrentUserMiddleware:
    """Set the user of a request as the author of objects that are created while the request is handled.

    Put it after ``AuthenticationMiddleware``. It reads the user only when an object is created, and treats an anonymous
    user as no author. Objects that a streamed response creates while it is sent are included. Works in synchronous and
    asynchronous projects.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if self.is_async:
            return self._answer(request)
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
    # Reading a file does not create objects, and a wrapped file could not be sent by the server's file wrapper.
    if isinstance(response, StreamingHttpResponse) and not isinstance(response, FileResponse):
        content: Any = response.streaming_content
        response.streaming_content = _aread(request, content) if response.is_async else _read(request, content)
    return response


def _read(request: HttpRequest, content: Iterator[Any]) -> Iterator[Any]:
    while True:
        # The parts of a response need not all be read in one context.
        with _acting(lambda: _user_of(request)):
            chunk = next(content, _END)
        if chunk is _END:
            return
        yield chunk


async def _aread(request: HttpRequest, content: AsyncIterator[object]) -> AsyncIterator[object]:
    while True:
        with _acting(lambda: _user_of(request)):
            chunk = await anext(content, _END)
        if chunk is _END:
            return
        yield chunk
