"""Pages by cursor in views and templates: Django's paginator and list view, without a count."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from django.core import paginator as django_paginator
from django.core.paginator import EmptyPage
from django.http import Http404, HttpResponse
from django.template import RequestContext, Template
from django.test import Client, RequestFactory, override_settings
from django.urls import path
from django.views.generic import ListView

from dynamo_single.exceptions import ConfigurationError, InvalidCursor, NotSupported
from dynamo_single.pagination import CursorListMixin, CursorPaginator
from dynamo_single.testing import assert_requests
from project.directory.models import Company

pytestmark = pytest.mark.usefixtures("companies")

TEMPLATE = Template(
    "{% for company in object_list %}{{ company.name }}{% endfor %}"
    "{% if is_paginated %}"
    "{% if page_obj.has_previous %} <a href='{% querystring page=page_obj.previous_page_number %}'>back</a>{% endif %}"
    "{% if page_obj.has_next %} <a href='?page={{ page_obj.next_cursor }}'>on</a>{% endif %}"
    "{% endif %}"
)


class Companies(CursorListMixin, ListView):  # type: ignore[type-arg]  # not generic at run time
    """All companies, three at a time."""

    model = Company
    paginate_by = 3

    def render_to_response(self, context: dict[str, Any], **options: Any) -> HttpResponse:
        """Without a file."""
        return HttpResponse(TEMPLATE.render(RequestContext(self.request, context)))


def unprotected(request: Any) -> HttpResponse:
    """A view that takes a cursor as it comes."""
    page = Company.objects.page(3, request.GET.get("page"))
    return HttpResponse("".join(company.name for company in page))


urlpatterns = [
    path("companies/", Companies.as_view()),
    path("companies/<str:page>/", Companies.as_view()),
    path("plain/", unprotected),
]


@pytest.fixture
def companies(table: Any) -> None:
    """Seven companies, A to G."""
    for name in "ABCDEFG":
        Company.objects.create(company_id=name.lower(), name=name, stock="T" if name in "AG" else None)


@pytest.fixture
def client() -> Any:
    """A browser of these views."""
    with override_settings(ROOT_URLCONF=__name__):
        yield Client()


def names(page: Any) -> str:
    """The names of a page's companies."""
    return "".join(company.name for company in page)


def link(body: str, text: str) -> str | None:
    """The address of a link, or nothing."""
    before, found, _ = body.partition(f"'>{text}</a>")
    return before.rpartition("href='")[2] if found else None


def test_a_list_view_pages_by_cursor(client: Client) -> None:
    """Each page is one Query and no count; its links lead on and back through all objects."""
    seen = []
    address: str | None = ""
    while address is not None:
        with assert_requests(["Query"]):
            body = client.get(f"/companies/{address}").content.decode()
        seen.append(body.partition(" ")[0])
        last, address = body, link(body, "on")
    assert seen == ["ABC", "DEF", "G"]
    body = client.get(f"/companies/{link(last, 'back')}").content.decode()
    assert body.startswith("DEF ")
    first = client.get(f"/companies/{link(body, 'back')}").content.decode()
    assert first.startswith("ABC ")
    assert link(first, "back") is None


def test_the_context_is_that_of_a_list_view() -> None:
    """``page_obj``, ``paginator``, ``is_paginated``, and the list by both of its names."""
    view: Any = type("View", (CursorListMixin, ListView), {"model": Company, "paginate_by": 3}).as_view()
    with assert_requests(["Query"]):
        context = view(RequestFactory().get("/")).context_data
        assert names(context["object_list"]) == names(context["company_list"]) == names(context["page_obj"]) == "ABC"
    assert context["is_paginated"] is True
    assert isinstance(context["paginator"], django_paginator.Paginator)
    assert isinstance(context["page_obj"], django_paginator.Page)
    assert (context["page_obj"].number, len(context["page_obj"]), context["page_obj"][1].name) == ("", 3, "B")
    assert context["page_obj"].next_page_number() == context["page_obj"].next_cursor
    all_of_them: Any = type("View", (CursorListMixin, ListView), {"model": Company, "paginate_by": 9}).as_view()
    assert all_of_them(RequestFactory().get("/")).context_data["is_paginated"] is False


def test_a_cursor_may_stand_in_the_path(client: Client) -> None:
    """Django's page number can also be in the path."""
    cursor = Company.objects.page(3).next_cursor
    assert client.get(f"/companies/{cursor}/").content.decode().startswith("DEF ")


def test_the_first_page_has_djangos_number(client: Client) -> None:
    """An old link with ``?page=1``, or an empty one, gives the first page."""
    for address in ("?page=1", "?page="):
        assert client.get(f"/companies/{address}").content.decode().startswith("ABC ")


def test_a_wrong_cursor_is_not_found_and_logged(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    """The list view returns a 404, as in Django, and the log contains the reason."""
    for address in ("?page=2", "?page=last", f"?page={Company.objects.reverse().page(3).next_cursor}"):
        caplog.clear()
        with caplog.at_level(logging.WARNING), assert_requests(0):
            assert client.get(f"/companies/{address}").status_code == 404
        logged = [record.getMessage() for record in caplog.records if record.name == "django.security.InvalidCursor"]
        assert len(logged) == 1
        assert logged[0].endswith("Start again without a cursor.")


def test_a_wrong_cursor_elsewhere_is_a_bad_request(client: Client) -> None:
    """A view that does not catch ``InvalidCursor`` returns status 400."""
    assert client.get("/plain/").content == b"ABC"
    assert client.get("/plain/?page=2").status_code == 400


def test_an_empty_list_is_a_page_or_not_found() -> None:
    """With ``allow_empty``, an empty list is an empty page; otherwise, the view returns a 404."""
    options = {"queryset": Company.objects.filter(name="x"), "paginate_by": 3}
    view: Any = type("View", (CursorListMixin, ListView), options).as_view()
    assert names(view(RequestFactory().get("/")).context_data["page_obj"]) == ""
    strict: Any = type("View", (CursorListMixin, ListView), {**options, "allow_empty": False}).as_view()
    with pytest.raises(Http404):
        strict(RequestFactory().get("/"))
    with pytest.raises(EmptyPage, match="contains no results"):
        CursorPaginator(Company.objects.filter(name="x"), 3, allow_empty_first_page=False).page()


def test_a_view_has_a_budget() -> None:
    """``paginate_max_requests`` bounds what one page sends."""
    options = {
        "queryset": Company.objects.filter(stock="T"),
        "paginate_by": 2,
        "paginate_max_requests": 1,
    }
    view: Any = type("View", (CursorListMixin, ListView), options).as_view()
    with assert_requests(["Query"]):
        page = view(RequestFactory().get("/")).context_data["page_obj"]
    assert (names(page), page.page.ended_by_budget, page.has_next()) == ("A", True, True)
    with assert_requests(["Query"]):
        page = view(RequestFactory().get("/", {"page": page.next_cursor})).context_data["page_obj"]
    assert names(page) == ""


def test_a_paginator_in_a_function() -> None:
    """``get_page()`` returns the first page for an invalid cursor, and ``page()`` raises an error."""
    paginator = CursorPaginator(Company.objects.all(), 3)
    first = paginator.get_page(None)
    assert repr(first) == "<Page of 3 objects>"
    assert names(paginator.get_page(first.next_cursor)) == "DEF"
    assert names(paginator.get_page("nonsense")) == "ABC"
    with pytest.raises(InvalidCursor):
        paginator.page("nonsense")
    assert [names(page) for page in paginator] == ["ABC", "DEF", "G"]
    with pytest.raises(EmptyPage):
        first.previous_page_number()
    assert (first.has_previous(), first.has_next(), first.has_other_pages()) == (False, True, True)


@pytest.mark.parametrize("name", ["count", "num_pages", "page_range"])
def test_what_takes_a_count_is_refused(name: str) -> None:
    """Nothing of a paginator counts behind the view's back."""
    with assert_requests(0), pytest.raises(NotSupported, match=f"{name} is not supported with cursor pagination"):
        getattr(CursorPaginator(Company.objects.all(), 3), name)


def test_methods_that_take_a_count_are_refused() -> None:
    """Pages and paginators do not have numbers."""
    paginator = CursorPaginator(Company.objects.all(), 3)
    page = paginator.page()
    for method in (
        page.start_index,
        page.end_index,
        paginator.get_elided_page_range,
        lambda: paginator.validate_number(1),
    ):
        with pytest.raises(NotSupported, match="is not supported with cursor pagination"):
            method()


def test_what_a_paginator_cannot_do_is_told_at_once() -> None:
    """Orphans, and lists that are no querysets of ours."""
    with pytest.raises(ConfigurationError, match="Leave orphans out"):
        CursorPaginator(Company.objects.all(), 3, orphans=1)
    with pytest.raises(ConfigurationError, match=r"django\.core\.paginator\.Paginator"):
        CursorPaginator([1, 2, 3], 3)


def test_every_public_name_of_djangos_paginator_is_ours() -> None:
    """All members of Django's classes except constants are overridden, so that none counts by inheritance."""
    ours = {"ELLIPSIS", "default_error_messages"}
    classes = [each for each in django_paginator.Paginator.__mro__ if each.__module__ == django_paginator.__name__]
    public = {name for each in classes for name in vars(each) if not name.startswith("_")}
    assert public - set(vars(CursorPaginator)) == ours
