"""Pages that use the session, for the tests of its middleware; a view for each thing that a page may do."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path

from dynamo_single.sessions import SessionStore


def show(request: HttpRequest) -> HttpResponse:
    """Show the contents of the session."""
    return JsonResponse(dict(request.session.items()))


def change(request: HttpRequest) -> HttpResponse:
    """Store the value in the URL."""
    request.session.update(request.GET.dict())
    return HttpResponse()


def ignore(request: HttpRequest) -> HttpResponse:
    """Leave the session alone."""
    return HttpResponse()


def log_out(request: HttpRequest) -> HttpResponse:
    """End the session."""
    request.session.flush()
    return HttpResponse()


def fail(request: HttpRequest) -> HttpResponse:
    """Store something, and fail."""
    request.session["lost"] = 1
    return HttpResponse(status=500)


def overtaken(request: HttpRequest) -> HttpResponse:
    """Store something while another request ends the session."""
    request.session["late"] = 1
    SessionStore(request.session.session_key).flush()
    return HttpResponse()


def say(request: HttpRequest) -> HttpResponse:
    """Leave a message for the next page."""
    messages.success(request, request.GET["text"])
    return HttpResponse()


def hear(request: HttpRequest) -> HttpResponse:
    """Show the stored messages."""
    return JsonResponse([str(message) for message in messages.get_messages(request)], safe=False)


async def count(request: HttpRequest) -> HttpResponse:
    """Count the visits, asynchronously."""
    visits = await request.session.aget("visits", 0) + 1
    await request.session.aset("visits", visits)
    return JsonResponse({"visits": visits})


urlpatterns = [
    path(f"{view.__name__}/", view) for view in (show, change, ignore, log_out, fail, overtaken, say, hear, count)
]
