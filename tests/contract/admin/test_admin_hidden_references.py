"""References to hidden objects in the admin's own output: columns, read-only fields and forms without inputs."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin import AdminSite
from django.contrib.auth.models import Group
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext

from dynamo_single import models
from dynamo_single.admin.viewing.references import without_hidden
from project.chat.models import Member, Profile, Server
from project.service.models import Beneficiary, User
from tests.contract.admin.test_admin_hidden import hiding
from tests.contract.conftest import Pages, text_of
from tests.contract.sqlite import ALIAS, sqlite
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.urls("project.urls")

LIST = "service/user/"


@pytest.fixture
def users(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Create a user of a hidden school and one of a visible school; return the admin of users."""
    hiding(monkeypatch, Beneficiary, lambda queryset: queryset.filter(name__startswith="Open"))
    for key, name in (("h", "Hidden School"), ("o", "Open School")):
        school = Beneficiary.objects.create(beneficiary_id=key, name=name)
        User.objects.create(user_id=f"u{key}", beneficiary=school, first_name="Inés", last_name="Gómez")
    return admin.site.get_model_admin(User)


@pytest.mark.parametrize("column", ["beneficiary", "beneficiary__name"])
def test_column_names_hidden_object_by_kind(
    pages: Pages, users: Any, monkeypatch: pytest.MonkeyPatch, column: str
) -> None:
    """The column still sorts, and the objects of all rows are one batch; the first Query is of the filter."""
    monkeypatch.setattr(users, "list_display", ("last_name", column))
    monkeypatch.setattr(users, "list_display_links", (column,))
    page = pages.get(LIST, sends=["Query", "Query", "BatchGetItem"])
    head, _, rows = page.content.decode().partition("<tbody>")
    assert (head.count('class="sortable column-beneficiary'), "?o=2" in head) == (1, True)
    assert ("Hidden School" in rows, rows.count(">Open School</a>"), rows.count(">Beneficiary</a>")) == (False, 1, 1)


def test_method_of_project_shows_any_object(pages: Pages, users: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users, "list_display", ("last_name", lambda user: user.beneficiary.name))
    assert "Hidden School" in text_of(pages.get(LIST))


@pytest.mark.parametrize("is_viewer", [False, True])
def test_page_names_hidden_object_by_kind(
    pages: Pages, staff: Any, users: Any, monkeypatch: pytest.MonkeyPatch, is_viewer: bool
) -> None:
    """In ``readonly_fields``, and for a user who may only view; another object keeps its name and its link."""
    if is_viewer:
        pages = staff("service.view_user", "service.view_beneficiary")
    else:
        monkeypatch.setattr(users, "readonly_fields", ("beneficiary",))
    hidden, shown = (pages.get(f"{LIST}{key}/change/") for key in ("uh", "uo"))
    assert "Hidden School" not in text_of(hidden)
    assert '<div class="readonly">Beneficiary</div>' in hidden.content.decode()
    assert '<div class="readonly"><a href="/admin/service/beneficiary/o/change/">Open School</a></div>' in (
        shown.content.decode()
    )


def test_read_only_many_to_many_leaves_out_hidden_objects(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    hiding(monkeypatch, Profile, lambda queryset: queryset.filter(username__startswith="open"))
    monkeypatch.setattr(admin.site.get_model_admin(Server), "readonly_fields", ("users",))
    server = Server.objects.create(server_id="s", name="Chess")
    for name in ("open Ann", "hidden Bob", "open Cy"):
        Member.objects.create(server=server, user=Profile.objects.create(profile_id=name[-1], username=name))
    page = pages.get("chat/server/s/change/").content.decode()
    assert '<div class="readonly">open Ann, open Cy</div>' in page
    assert "hidden Bob" not in page


def test_sql_objects_of_column_are_one_query(pages: Pages, django_db_blocker: Any) -> None:
    """A reference may lead to a model in SQL."""
    with forgotten(), django_db_blocker.unblock(), sqlite() as connection:
        with connection.schema_editor() as editor:
            editor.create_model(Group)
        for number, name in enumerate(("open a", "hidden b", "open c"), start=1):
            Group.objects.using(ALIAS).create(pk=number, name=name)
        own = lambda self, request: Group.objects.using(ALIAS).filter(name__startswith="open")  # noqa: E731 - a method
        site = AdminSite()
        site.register(Group, type("OwnAdmin", (admin.ModelAdmin,), {"get_queryset": own}))
        request: Any = RequestFactory().get("/")
        request.user = pages.user
        model = declare(
            "Referring",
            ("REFERRING#{number}", "#METADATA"),
            number=models.IntegerAttribute(),
            team=models.ReferenceAttribute(Group, on_delete=models.DO_NOTHING),
        )
        rows = [model(number=number, team_id=number) for number in (1, 2, 3, 2)]
        for row in rows:
            row.team = Group.objects.using(ALIAS).get(pk=row.team_id)
        with CaptureQueriesContext(connection) as queries:
            shown = without_hidden(site.get_model_admin(Group), request, model, "team", rows)
            assert shown is not None
            assert [str(shown(row)) for row in rows] == ["open a", "Group", "open c", "Group"]
        assert len(queries) == 1
