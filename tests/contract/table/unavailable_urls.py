"""Pages that query DynamoDB at each point of a response, and middlewares that do so before or after the view."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.template import engines
from django.template.response import TemplateResponse
from django.urls import path

from project.directory.models import Company


def read(request: HttpRequest) -> HttpResponse:
    """A page that reads."""
    return HttpResponse(str(Company.objects.filter(pk="c1").exists()))


def written(request: HttpRequest) -> HttpResponse:
    """A page that writes."""
    Company.objects.create(company_id=request.GET.get("id", "c1"), name="Acme")
    return HttpResponse("written")


async def awaited(request: HttpRequest) -> HttpResponse:
    """A page that awaits."""
    return HttpResponse(str(await Company.objects.filter(pk="c1").aexists()))


def rendered(request: HttpRequest) -> TemplateResponse:
    """Return a page that reads while its template is rendered, after the view."""
    template: Any = engines["django"].from_string("{% for company in companies %}{{ company.name }}{% endfor %}")
    return TemplateResponse(request, template, {"companies": Company.objects.all()})


def stored(request: HttpRequest) -> HttpResponse:
    """Return a page whose session is saved after it."""
    request.session["a"] = "b"
    return HttpResponse("stored")


def streamed(request: HttpRequest) -> StreamingHttpResponse:
    """A page that reads before its first part."""

    def parts() -> Iterator[str]:
        yield str(Company.objects.filter(pk="c1").exists())
        yield " end"

    return StreamingHttpResponse(parts())


async def astreamed(request: HttpRequest) -> StreamingHttpResponse:
    """Return a streamed page in an event loop."""

    async def parts() -> AsyncIterator[str]:
        yield str(await Company.objects.filter(pk="c1").aexists())
        yield " end"

    return StreamingHttpResponse(parts())


def repeated(request: HttpRequest) -> HttpResponse:
    """Return a page that continues after a failed read."""
    failed = 0
    for _ in range(20):
        try:
            Company.objects.get(pk="c1")
        except Exception:
            failed += 1
    return HttpResponse(str(failed))


def nothing(request: HttpRequest) -> HttpResponse:
    """Return a page without requests."""
    return HttpResponse("nothing")


def with_session(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """A middleware that reads the session before the view."""

    def middleware(request: HttpRequest) -> HttpResponse:
        request.session.get("a")
        return get_response(request)

    return middleware


def with_user(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Read the user before the view."""

    def middleware(request: HttpRequest) -> HttpResponse:
        assert request.user.is_anonymous in {True, False}
        return get_response(request)

    return middleware


def failing(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """A middleware that fails for itself."""

    def middleware(request: HttpRequest) -> HttpResponse:
        raise ZeroDivisionError

    return middleware


urlpatterns = [path(f"{view.__name__}/", view) for view in (read, written, awaited, rendered, stored, streamed)]  # type: ignore[attr-defined]
urlpatterns += [path(f"{view.__name__}/", view) for view in (astreamed, repeated, nothing)]
