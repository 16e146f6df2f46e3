"""Permissions in the admin, and its log."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from unittest import mock
from uuid import UUID

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group
from django.contrib.contenttypes.models import ContentType
from django.db.models import Q

from dynamo_single.admin import DynamoAdminSite
from dynamo_single.admin.history import LoggedModelAdmin
from dynamo_single.admin.log import LogEntry
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests, refuse
from project.directory.models import Company, Person
from tests.contract.conftest import NO_INLINES, Pages, text_of

COMPANY = "directory/company/"


def test_every_action_is_logged_beside_the_user(pages: Pages, table: Table) -> None:
    """Add, change, delete and restore are one entry each, in the user's partition, newest last."""
    pages.post(f"{COMPANY}add/", {"name": "Acme", **NO_INLINES})
    (acme,) = Company.objects.all()
    pages.post(f"{COMPANY}{acme.pk}/change/", {"name": "Acme Ltd", **NO_INLINES})
    pages.post(f"{COMPANY}{acme.pk}/delete/", {"post": "yes"})
    pages.post(f"{COMPANY}{acme.pk}/restore/")

    entries = list(LogEntry.objects.filter(user_id=pages.user.pk).order_by("action_time"))
    assert [(entry.action_flag, entry.get_change_message()) for entry in entries] == [
        (1, "Added."),
        (2, 'Changed Name. Name: from "Acme" to "Acme Ltd".'),
        (3, "Moved to the trash."),
        (2, "Restored from the trash."),
    ]
    item = entries[0]._stored
    assert item["pk"]["S"] == f"LOG#USER#{pages.user.pk}"
    assert item["gs1pk"]["S"] == f"LOG#OBJECT#directory.company#{acme.pk}"
    assert item["itemType"]["S"] == "AdminLogEntry"

    history = text_of(pages.get(f"{COMPANY}{acme.pk}/history/", sends=["GetItem", "Query", "GetItem"]))
    assert "Added." in history
    assert "Changed Name." in history
    assert "4 entries" in history
    index = pages.get("", sends=["Query"])
    assert f'<a href="/admin/{COMPANY}{acme.pk}/change/">Acme Ltd</a>' in index.content.decode()
    assert entries[0].get_edited_object() == acme


def test_recent_actions_read_ten_entries(pages: Pages) -> None:
    """The index reads only the newest ten entries."""
    for number in range(12):
        pages.post(f"{COMPANY}add/", {"name": f"Number {number}", **NO_INLINES})
    pages.get("")  # shows the messages of the additions
    text = text_of(pages.get("", sends=["Query"]))
    assert [number for number in range(12) if f"Number {number} " in text] == list(range(2, 12))


def test_a_failed_deletion_is_not_logged(pages: Pages) -> None:
    """The entry is written after the deletion, so the log contains only completed deletions."""
    acme = Company.objects.create(name="Acme")
    with refuse("ProvisionedThroughputExceededException", operation="UpdateItem"):
        assert pages.post(f"{COMPANY}{acme.pk}/delete/", {"post": "yes"}).status_code == 503
    assert not LogEntry.objects.filter(user_id=pages.user.pk).exists()


def test_staff_without_permissions_is_refused(staff: Callable[..., Pages]) -> None:
    """Staff status opens only the index, which is empty."""
    acme = Company.objects.create(name="Acme")
    pages = staff()
    assert "permission to view or edit anything." in text_of(pages.get(""))
    for path in (COMPANY, f"{COMPANY}add/", f"{COMPANY}{acme.pk}/change/", f"{COMPANY}{acme.pk}/delete/"):
        assert pages.get(path).status_code == 403
    for path in (f"{COMPANY}add/", f"{COMPANY}{acme.pk}/delete/", f"{COMPANY}{acme.pk}/restore/"):
        assert pages.post(path, {"name": "x", "post": "yes", **NO_INLINES}).status_code == 403
    assert [company.name for company in Company.objects.all()] == ["Acme"]


def test_visitors_are_sent_to_the_login_page(pages: Pages) -> None:
    """A user without staff status does not see any page of the admin."""
    pages.client.logout()
    response = pages.client.get(f"/admin/{COMPANY}")
    assert response.headers["Location"] == f"/admin/login/?next=/admin/{COMPANY}"


def test_permissions_of_the_parent_do_not_open_its_inlines(staff: Callable[..., Pages]) -> None:
    """A user with permission for companies only cannot see or add people on a company's page."""
    acme = Company.objects.create(name="Acme")
    Person.objects.create(company=acme, name="Mike")
    pages = staff("directory.change_company")
    assert "Mike" not in text_of(pages.get(f"{COMPANY}{acme.pk}/change/"))
    row = {"identity": "", "company": acme.pk, "name": "Nora", "email": "", "role": "member"}
    rows = {f"person_set-0-{field}": value for field, value in row.items()}
    data = {"name": "Acme", **NO_INLINES, **rows, "person_set-TOTAL_FORMS": "1"}
    assert pages.post(f"{COMPANY}{acme.pk}/change/", data).status_code == 302
    assert [person.name for person in Person.objects.filter(company=acme)] == ["Mike"]


@pytest.mark.parametrize(
    ("permissions", "names"),
    [
        (["view_company", "view_person"], ["Mike"]),
        (["change_company", "view_person"], ["Mike"]),
        (["change_company", "change_person"], ["Nora"]),
        (["change_company", "add_person"], ["Mike"]),
        (["change_company", "delete_person"], ["Mike"]),
    ],
)
def test_an_inline_asks_for_its_own_models_permission_to_change(
    staff: Callable[..., Pages], permissions: list[str], names: list[str]
) -> None:
    """People on a company's page need their own view permission, and their own change permission to be renamed."""
    acme = Company.objects.create(name="Acme")
    mike = Person.objects.create(company=acme, name="Mike")
    pages = staff(*(f"directory.{permission}" for permission in permissions))
    page = pages.get(f"{COMPANY}{acme.pk}/change/")
    assert ("Mike" in page.content.decode()) == bool({"view_person", "change_person"} & set(permissions))
    assert ('name="person_set-0-name" value="Mike"' in page.content.decode()) == ("change_person" in permissions)
    row = {"identity": mike.pk, "company": acme.pk, "name": "Nora", "email": "", "role": "member"}
    rows = {f"person_set-0-{field}": value for field, value in row.items()}
    counts = {"person_set-TOTAL_FORMS": "1", "person_set-INITIAL_FORMS": "1"}
    pages.post(f"{COMPANY}{acme.pk}/change/", {"name": "Acme", **NO_INLINES, **rows, **counts})
    assert [person.name for person in Person.objects.filter(company=acme)] == names


@pytest.mark.parametrize(
    ("permission", "allowed"),
    [
        ("view", {"list", "change"}),
        ("change", {"list", "change"}),
        ("add", {"add"}),
        ("delete", {"delete"}),
        ("restore", {"restore"}),
        ("hard_delete", set()),
    ],
)
def test_each_permission_opens_its_own_pages(staff: Callable[..., Pages], permission: str, allowed: set[str]) -> None:
    """A model's four permissions work as in Django, and restoring requires a separate permission."""
    acme = Company.objects.create(name="Acme")
    pages = staff(f"directory.{permission}_company")
    paths = {"list": COMPANY, "add": f"{COMPANY}add/"}
    paths |= {page: f"{COMPANY}{acme.pk}/{page}/" for page in ("change", "delete")}
    opened = {page for page, path in paths.items() if pages.get(path).status_code == 200}
    acme.delete()
    pages.post(f"{COMPANY}{acme.pk}/restore/")
    if Company.objects.filter(pk=acme.pk).exists():
        opened.add("restore")
    assert opened == allowed


def test_an_sql_models_admin_logs_where_the_users_are() -> None:
    """The site puts our logging beneath a project's own methods, and above Django's, whatever the model."""

    class GroupAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
        def log_addition(self, request: Any, obj: Any, message: Any) -> str:
            return "the project's own"

    site = DynamoAdminSite()
    site.register(Group, GroupAdmin)
    registered = site.get_model_admin(Group)
    assert isinstance(registered, GroupAdmin)
    assert registered.log_addition(None, None, "") == "the project's own"  # type: ignore[arg-type]  # it looks at none
    assert type(registered).log_change is LoggedModelAdmin.log_change
    site.unregister(Group)
    site.register(Group)
    assert isinstance(site.get_model_admin(Group), LoggedModelAdmin)


def test_content_types_survive_a_cleared_cache(pages: Pages) -> None:
    """The change form works without SQL content types, even after their cache is cleared."""
    acme = Company.objects.create(name="Acme")
    ContentType.objects.clear_cache()
    assert pages.get(f"{COMPANY}{acme.pk}/change/").status_code == 200
    assert ContentType.objects.get_for_model(Company).model_class() is Company


def test_log_entry_has_id_and_content_type(pages: Pages) -> None:
    """Django's own entries have these attributes, and its constructor accepts them."""
    kind = ContentType.objects.get_for_model(Company)
    entry = LogEntry.objects.create(user_id=pages.user.pk, content_type_id=kind.pk, object_id="c1", action_flag=1)
    assert (entry.object_type, entry.content_type, entry.content_type_id) == ("directory.company", kind, kind.pk)
    assert LogEntry.objects.get(pk=entry.id) == entry


@pytest.mark.parametrize(
    "asked",
    [
        lambda kind: {"content_type": kind},
        lambda kind: {"content_type_id": kind.pk},
        lambda kind: {"content_type__in": [kind.pk]},
        lambda kind: {"content_type__in": [kind]},
        lambda kind: {"content_type__in": ContentType.objects.filter(pk=kind.pk)},
        lambda kind: {"content_type__app_label": "directory", "content_type__model__iexact": "COMPANY"},
    ],
)
def test_the_log_is_filtered_by_content_types_as_django_s(pages: Pages, asked: Any) -> None:
    """With the object's key it is the Query of the object's entries."""
    for key, model in (("c1", "company"), ("c1", "person"), ("c2", "company")):
        LogEntry.objects.create(user_id="u", object_type=f"directory.{model}", object_id=key, action_flag=1)
    with assert_requests(["Query"]):
        (entry,) = LogEntry.objects.filter(object_id="c1", **asked(ContentType.objects.get_for_model(Company)))
    assert (entry.object_type, entry.object_id) == ("directory.company", "c1")


def test_log_filter_by_app_and_model_keeps_both(pages: Pages) -> None:
    """Both conditions become one on ``object_type``, and two apps have a model of this name."""
    for app in ("auth", "accounts"):
        LogEntry.objects.create(user_id="u", object_type=f"{app}.group", object_id="g", action_flag=1)
    asked = {"content_type__app_label": "accounts", "content_type__model": "group"}
    assert [each.object_type for each in LogEntry.objects.filter(user_id="u", **asked)] == ["accounts.group"]


def test_message_that_is_a_list_of_texts_is_shown(pages: Pages) -> None:
    """A project may log any text, and Django reads what begins with a bracket as JSON."""
    assert LogEntry(change_message='["Checked."]').get_change_message() == "No fields changed."


@pytest.mark.parametrize("key", [7, UUID(int=7)])
def test_the_log_is_filtered_by_a_key_of_any_type(pages: Pages, key: Any) -> None:
    """The log stores it as text."""
    LogEntry.objects.create(user_id="u", object_type="directory.company", object_id=str(key), action_flag=1)
    assert LogEntry.objects.get(object_type="directory.company", object_id=key).object_id == str(key)


def test_a_condition_of_the_log_may_be_nested_and_negated(pages: Pages) -> None:
    """``id`` has the order of the time."""
    for key, model in (("c1", "company"), ("c2", "person"), ("c3", "company")):
        LogEntry.objects.create(user_id="u", object_type=f"directory.{model}", object_id=key, action_flag=1)
    entries = LogEntry.objects.filter(user_id="u", action_flag=1).allow_in_memory()
    kind = ContentType.objects.get_for_model(Company)
    assert [each.object_id for each in entries.filter(~Q(content_type=kind))] == ["c2"]
    found = entries.filter(Q(content_type=kind) | Q(object_id="x")).order_by("id")
    assert {each.object_id for each in found} == {"c1", "c3"}
    assert [each.action_time for each in found] == sorted(each.action_time for each in found)
    latest = entries.latest("id")
    assert entries.get(id=latest.id) == latest


def test_view_on_site_leads_to_the_object_by_its_content_type(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """The link is the admin's own, as in Django: it reads the object when it is followed."""
    acme = Company.objects.create(name="Acme")
    assert "viewsitelink" not in pages.get(f"{COMPANY}{acme.pk}/change/").content.decode()
    monkeypatch.setattr(Company, "get_absolute_url", lambda self: f"/companies/{self.pk}/", raising=False)
    address = f"r/{ContentType.objects.get_for_model(Company).pk}/{acme.pk}/"
    assert f'href="/admin/{address}" class="viewsitelink"' in pages.get(f"{COMPANY}{acme.pk}/change/").content.decode()
    followed = pages.get(address, sends=["GetItem"])
    assert followed["Location"].endswith(f"/companies/{acme.pk}/")


def test_log_actions_writes_an_entry_for_each_object(pages: Pages) -> None:
    """The method writes entries in one request without signals, and returns a list, as in Django."""
    companies = [Company(company_id=pk, name=pk.upper()) for pk in ("c1", "c2")]
    with assert_requests(["BatchExecuteStatement"]):
        entries = LogEntry.objects.log_actions(pages.user.pk, companies, 2, [{"changed": {"fields": ["Name"]}}])
    assert [(entry.object_id, entry.object_repr) for entry in entries] == [("c1", "C1"), ("c2", "C2")]
    assert {entry.get_change_message() for entry in LogEntry.objects.all().allow_scan().order_by()} == {"Changed Name."}


def test_log_actions_of_a_single_object_gives_its_entry(pages: Pages) -> None:
    """Django's ``ModelAdmin`` requests one entry with ``single_object``."""
    entry = LogEntry.objects.log_actions(pages.user.pk, [Company(company_id="c1", name="A")], 1, single_object=True)
    assert entry.is_addition()


def test_the_history_says_from_what_to_what(pages: Pages) -> None:
    """This includes the object and its inline rows."""
    company = Company.objects.create(company_id="acme", name="Acme", stock="ACM")
    Person.objects.create(company=company, person_id="anna", name="Anna")
    row = {"TOTAL_FORMS": "1", "INITIAL_FORMS": "1", "0-company": "acme", "0-person_id": "anna", "0-name": "Berta"}
    people = {f"person_set-{name}": value for name, value in {**row, "0-role": "founder"}.items()}
    found = pages.get("directory/company/acme/change/").content.decode()
    identity = re.findall(r'name="(person_set-0-[\w]+)" value="([^"]*)"', found)
    sent = {**NO_INLINES, **dict(identity), **people, "name": "Apex", "stock": ""}
    assert pages.post("directory/company/acme/change/", sent).status_code == 302
    history = text_of(pages.get("directory/company/acme/history/"))
    assert 'Name: from "Acme" to "Apex"' in history
    assert 'Ticker: from "ACM" to ""' in history
    assert 'person “Berta”, Name: from "Anna" to "Berta"' in history
    assert 'Role: from "Member" to "Founder"' in history


def test_the_history_has_no_secret(pages: Pages) -> None:
    """The history only shows that the secret has changed."""
    with mock.patch.object(admin.site, "is_secret", lambda model, name: name == "stock"):
        Company.objects.create(company_id="acme", name="Acme", stock="ACM")
        pages.post("directory/company/acme/change/", {**NO_INLINES, "name": "Acme", "stock": "NEW"})
    (entry,) = LogEntry.objects.filter(object_type="directory.company", object_id="acme")
    assert "Ticker" in entry.get_change_message()
    assert "ACM" not in entry.change_message
    assert "NEW" not in entry.change_message


def test_a_long_value_is_cut_in_the_log(pages: Pages) -> None:
    """The log is no copy of the data."""
    Company.objects.create(company_id="acme", name="A" * 120)
    pages.post("directory/company/acme/change/", {**NO_INLINES, "name": "B" * 120})
    (entry,) = LogEntry.objects.filter(object_type="directory.company", object_id="acme")
    assert "B" * 101 not in entry.change_message
    assert "B" * 90 in entry.change_message


def test_an_entry_of_an_earlier_release_is_shown_as_it_was(pages: Pages) -> None:
    """Such an entry has no values."""
    Company.objects.create(company_id="acme", name="Acme")
    entry = LogEntry(change_message='[{"changed": {"fields": ["Name"]}}]')
    assert entry.get_change_message() == "Changed Name."
