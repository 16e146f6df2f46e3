"""Pages that read, write, stream and fail, for the tests of the middleware."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import path

from project.directory.models import Company, Person


def nothing(request: HttpRequest) -> HttpResponse:
    """A page without requests."""
    return HttpResponse("")


def people(request: HttpRequest, limit: int) -> HttpResponse:
    """People with their companies, one by one."""
    listed = Person.objects.order_by("name")[:limit]
    return HttpResponse(", ".join(f"{person.name} of {person.company.name}" for person in listed))


def again(request: HttpRequest) -> HttpResponse:
    """Read a company, save it, and read it twice more."""
    company = Company.objects.get(pk="c1")
    company.name = "Again"
    company.save()
    Company.objects.get(pk="c1")
    return HttpResponse(Company.objects.get(pk="c1").name)


def saved(request: HttpRequest) -> HttpResponse:
    """Read a company, save it, and read it again."""
    company = Company.objects.get(pk="c1")
    company.name = "Again"
    company.save()
    company.refresh_from_db()
    return HttpResponse(company.name)


def missing(request: HttpRequest) -> HttpResponse:
    """Read a missing company repeatedly."""
    return HttpResponse(str([Company.objects.filter(pk="nowhere").exists() for _ in range(3)]))


def failing(request: HttpRequest) -> HttpResponse:
    """A view that reads and then fails."""
    Company.objects.get(pk="c1")
    raise ValueError("private")


def stream(request: HttpRequest) -> StreamingHttpResponse:
    """Return a page that reads while it is sent."""

    def parts() -> Iterator[str]:
        for _ in range(2):
            yield Company.objects.get(pk="c1").name

    return StreamingHttpResponse(parts())


async def apeople(request: HttpRequest) -> HttpResponse:
    """Two people, from asynchronous code."""
    return HttpResponse(", ".join([person.name async for person in Person.objects.order_by("name")[:2]]))


async def astream(request: HttpRequest) -> StreamingHttpResponse:
    """Return a page that reads asynchronously while it is sent."""

    async def parts() -> AsyncIterator[str]:
        for _ in range(2):
            yield (await Company.objects.aget(pk="c1")).name

    return StreamingHttpResponse(parts())


urlpatterns = [
    path("nothing/", nothing),
    path("people/<int:limit>/", people),
    path("again/", again),
    path("saved/", saved),
    path("missing/", missing),
    path("failing/", failing),
    path("stream/", stream),
    path("apeople/", apeople),
    path("astream/", astream),
]
