"""Permissions over HTTP: every page and action of the admin, for users with exactly one permission."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.test import Client
from msgspec import Struct

from dynamo_single.admin.batch_actions.models import AdminJob
from dynamo_single.admin.log import LogEntry
from dynamo_single.table import Request, Table
from project.directory.models import Company, Person
from tests.contract.conftest import NO_INLINES, Pages, text_of

COMPANY = "directory/company/"
AUTOCOMPLETE = "autocomplete/?app_label=directory&model_name=person&field_name=company&term=A"


class World(Struct):
    """A company for each possible operation, with four in the trash."""

    live: Any
    doomed: Any
    chosen: Any
    binned: Any
    binned_too: Any
    lost: Any
    lost_too: Any


@pytest.fixture
def world(table: Table) -> World:
    """Create the objects of the pages."""
    found = World(*(Company.objects.create(name=f"A {name}") for name in World.__struct_fields__))
    for each in (found.binned, found.binned_too, found.lost, found.lost_too):
        each.delete()
    # The type is unknown, so the permission for the table is enough.
    table.send(Request("PutItem", {"Item": {"pk": {"S": "SOME"}, "sk": {"S": "ITEM"}, "itemType": {"S": "Other"}}}))
    return found


def opens(path: str) -> Callable[[Pages, World], bool]:
    """Return whether a page is shown instead of forbidden or hidden."""

    def shown(pages: Pages, world: World) -> bool:
        status = pages.get(
            path.format(**{name: getattr(world, name).pk for name in world.__struct_fields__})
        ).status_code
        assert status in {200, 404 if path == "directory/" else 403}, f"{path}: {status}"
        return bool(status == 200)

    return shown


def named(pk: str) -> list[str]:
    """Return the name of a company, live or in the trash; ``None`` if it is deleted."""
    return [company.name for company in Company.all_objects.filter(pk=pk)]


def adds(pages: Pages, world: World) -> bool:
    """Return whether a new company is stored."""
    pages.post(f"{COMPANY}add/", {"name": "A new one", **NO_INLINES})
    return "A new one" in [company.name for company in Company.objects.all()]


def changes(pages: Pages, world: World) -> bool:
    """Return whether the name of a company has changed."""
    pages.post(f"{COMPANY}{world.live.pk}/change/", {"name": "A renamed one", **NO_INLINES})
    return named(world.live.pk) == ["A renamed one"]


def changes_in_trash(pages: Pages, world: World) -> bool:
    """Return whether the name of a company in the trash has changed."""
    pages.post(f"{COMPANY}{world.binned.pk}/change/", {"name": "A renamed one", **NO_INLINES})
    return named(world.binned.pk) == ["A renamed one"]


def is_live(company: Any) -> bool:
    """Return whether a company is live."""
    return Company.objects.filter(pk=company.pk).exists()


def deletes(pages: Pages, world: World) -> bool:
    """Return whether a company is moved to the trash."""
    pages.post(f"{COMPANY}{world.doomed.pk}/delete/", {"post": "yes"})
    return not is_live(world.doomed)


def _acts(pages: Pages, action: str, company: Any, query: str = "") -> None:
    pages.post(f"{COMPANY}{query}", {"action": action, "_selected_action": [company.pk], "post": "yes"})


def deletes_selected(pages: Pages, world: World) -> bool:
    """Return whether the list's action moves a company to the trash."""
    _acts(pages, "delete_selected", world.chosen)
    return not is_live(world.chosen)


def purges(pages: Pages, world: World) -> bool:
    """Return whether a company in the trash is permanently deleted."""
    pages.post(f"{COMPANY}{world.lost.pk}/delete/", {"post": "yes"})
    return named(world.lost.pk) == []


def purges_selected(pages: Pages, world: World) -> bool:
    """Return whether the action of the trash permanently deletes a company."""
    _acts(pages, "delete_selected", world.lost_too, "?trash=yes")
    return named(world.lost_too.pk) == []


def restores(pages: Pages, world: World) -> bool:
    """Return whether a company is restored from the trash."""
    pages.post(f"{COMPANY}{world.binned.pk}/restore/")
    return is_live(world.binned)


def restores_selected(pages: Pages, world: World) -> bool:
    """Return whether the action of the trash restores a company."""
    _acts(pages, "restore_selected", world.binned_too, "?trash=yes")
    return is_live(world.binned_too)


def carries_on(action: str, name: str, is_done: Callable[[Any], bool]) -> Callable[[Pages, World], bool]:
    """Return whether the user can continue an earlier job."""

    def carried(pages: Pages, world: World) -> bool:
        company = getattr(world, name)
        job = AdminJob.objects.create(
            user_key=str(pages.user.pk),
            label="directory.company",
            action=action,
            keys=[company.pk],
            expires_at="2099-01-01T00:00:00Z",
        )
        status = pages.get(f"dynamodb/jobs/{job.job_id}/").status_code
        pages.post(f"dynamodb/jobs/{job.job_id}/")
        assert is_done(company) == (status == 200)
        return is_done(company)

    return carried


#: Every page and every action.
THINGS: Mapping[str, Callable[[Pages, World], bool]] = {
    "app": opens("directory/"),
    "list": opens(COMPANY),
    "search": opens(f"{COMPANY}?q=A"),
    "trash": opens(f"{COMPANY}?trash=yes"),
    "look through": opens(f"{COMPANY}?q=x&scan="),
    "add form": opens(f"{COMPANY}add/"),
    "form": opens(f"{COMPANY}{{live}}/change/"),
    "form in trash": opens(f"{COMPANY}{{binned}}/change/"),
    "question": opens(f"{COMPANY}{{live}}/delete/"),
    "question for good": opens(f"{COMPANY}{{binned}}/delete/"),
    "history": opens(f"{COMPANY}{{live}}/history/"),
    "history in trash": opens(f"{COMPANY}{{binned}}/history/"),
    "autocomplete": opens(AUTOCOMPLETE),
    "table": opens("dynamodb/table/"),
    "partition": opens("dynamodb/table/?pk=COMPANY%23{live}"),
    "beginnings": opens("dynamodb/table/?begins=COMPANY"),
    "pictures": opens("dynamodb/pictures/"),
    "download": opens("dynamodb/table/download/?pk=COMPANY%23{live}"),
    "patterns": opens("dynamodb/patterns/"),
    "picture": opens("dynamodb/patterns.svg"),
    "health": opens("dynamodb/health/"),
    "check": opens("dynamodb/health/?check="),
    "item": opens("dynamodb/item/?pk=SOME&sk=ITEM"),
    "log": opens("dynamodb/log/"),
    "jobs": opens("dynamodb/jobs/"),
    "adds": adds,
    "changes": changes,
    "changes in trash": changes_in_trash,
    "deletes": deletes,
    "deletes selected": deletes_selected,
    "job deletes": carries_on("delete", "live", lambda company: not is_live(company)),
    "purges": purges,
    "purges selected": purges_selected,
    "job purges": carries_on("purge", "lost", lambda company: named(company.pk) == []),
    "restores": restores,
    "restores selected": restores_selected,
    "job restores": carries_on("restore", "binned", is_live),
}
LOOKING = {
    *("app", "list", "search", "trash", "look through", "form", "form in trash", "history", "history in trash"),
    "autocomplete",
}
#: The operations that one permission allows. A list's actions also need the permission to view the list, and an app
#: without visible models is hidden.
OPENED: Mapping[str, set[str]] = {
    "": set(),
    "directory.view_company": LOOKING,
    "directory.change_company": {*LOOKING, "changes"},
    "directory.add_company": {"app", "add form", "adds"},
    "directory.delete_company": {"app", "question", "deletes", "job deletes", "jobs"},
    "directory.restore_company": {"restores", "job restores", "jobs"},
    "directory.hard_delete_company": {"question for good", "purges", "job purges", "jobs"},
    "directory.view_person": {"app"},
    "directory.change_person": {"app"},
    "dynamo_single.view_table": {"table", "partition", "beginnings", "item", "download", "pictures"},
    "dynamo_single.view_logentry": {"log"},
    "dynamo_single.view_access_patterns": {"patterns", "picture"},
    "dynamo_single.view_health": {"health", "check"},
    "dynamo_single.view_costs": set(),
}


@pytest.mark.parametrize("permission", OPENED)
def test_a_permission_opens_its_own_pages_and_no_others(staff: Any, world: World, permission: str) -> None:
    """The test tries everything in the admin."""
    pages = staff(*[permission] if permission else [])
    assert {name for name, thing in THINGS.items() if thing(pages, world)} == OPENED[permission]


def test_no_page_of_the_site_is_left_out() -> None:
    """A new page needs an entry above, or below if every logged-in user can see it."""
    tried = {"index", "login", "logout", "password_change", "password_change_done", "jsi18n", "view_on_site"}
    tried |= {"autocomplete", "app_list", "dynamodb_table", "dynamodb_item", "dynamodb_patterns", "dynamodb_log"}
    tried |= {
        "dynamodb_pictures",
        "dynamodb_table_download",
        "dynamodb_patterns_svg",
        "dynamodb_health",
        "dynamodb_job",
        "dynamodb_jobs",
    }
    assert {each.name for each in admin.site.get_urls() if getattr(each, "name", None)} == tried
    tried = {f"directory_company_{page}" for page in ("changelist", "add", "change", "delete", "history", "restore")}
    assert {each.name for each in admin.site.get_model_admin(Company).get_urls() if each.name} == tried


#: A list's actions, and the permissions that they need next to the view permission.
ACTIONS = {"deletes selected": "delete", "purges selected": "hard_delete", "restores selected": "restore"}


@pytest.mark.parametrize("permission", ["view", *ACTIONS.values()])
def test_an_action_takes_its_own_permission_beside_the_lists(staff: Any, world: World, permission: str) -> None:
    """A user who can view the list and has one more permission can run only that action."""
    pages = staff("directory.view_company", f"directory.{permission}_company")
    found = {name for name in ACTIONS if THINGS[name](pages, world)}
    assert found == {name for name, wanted in ACTIONS.items() if wanted == permission}


def everything(world: World) -> list[str]:
    """The addresses of all pages."""
    paths = ["", "password_change/", "jsi18n/", "directory/", COMPANY, f"{COMPANY}add/", AUTOCOMPLETE]
    paths += [f"{COMPANY}{world.live.pk}/{page}/" for page in ("change", "delete", "history", "restore")]
    paths += [
        f"dynamodb/{page}"
        for page in (
            "table/",
            "table/download/?pk=a",
            "pictures/",
            "item/?pk=a&sk=b",
            "patterns/",
            "patterns.svg",
            "health/",
        )
    ]
    return [*paths, "dynamodb/jobs/", "dynamodb/jobs/x/", "r/1/x/"]


@pytest.mark.parametrize("who", ["a visitor", "no staff", "not active"])
def test_who_is_no_staff_is_asked_to_log_in(world: World, who: str) -> None:
    """Every page redirects a user without staff status, whatever their permissions, and does not do anything."""
    client = Client()
    if who != "a visitor":
        user = get_user_model()._default_manager.create_superuser("root", "root@example.com", "secret")
        client.force_login(user)
        type(user)._default_manager.filter(pk=user.pk).update(
            **({"is_staff": False} if who == "no staff" else {"is_active": False})
        )
    for path in everything(world):
        for method in (client.get, client.post):
            answer = method(f"/admin/{path}")
            assert answer.status_code == 302, path
            assert answer.headers["Location"].startswith("/admin/login/?next="), path
    assert is_live(world.live)


def test_somebody_without_any_permission_may_change_their_own_password_and_no_more(staff: Any, world: World) -> None:
    """The index is theirs as well, with nothing on it."""
    pages = staff()
    opened = [path for path in everything(world) if pages.get(path).status_code == 200]
    assert opened == ["", "password_change/", "jsi18n/"]


@pytest.mark.parametrize("count", [1, 51])
@pytest.mark.parametrize("action", ["delete_selected", "page"])
def test_what_goes_along_takes_its_own_permission(staff: Any, count: int, action: str) -> None:
    """A user who may delete only companies cannot delete a company with people, in a selection of any size."""
    companies = [Company.objects.create(name=f"B {number}") for number in range(count)]
    Person.objects.create(company=companies[0], name="Mike")
    pages = staff("directory.view_company", "directory.delete_company")
    if action == "page":
        pages.post(f"{COMPANY}{companies[0].pk}/delete/", {"post": "yes"})
    else:
        data = {"action": action, "_selected_action": [each.pk for each in companies]}
        answer = pages.post(COMPANY, data if count > 1 else {**data, "post": "yes"})
        if count > 1:
            pages.client.post(answer.headers["Location"])
    assert is_live(companies[0])
    assert [person.name for person in Person.objects.all()] == ["Mike"]


def test_restoring_asks_for_each_object(pages: Pages, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project's rule about objects also applies to selected ones, and is reported."""

    def may(self: Any, request: Any, obj: Any = None) -> bool:
        return obj is None or obj.pk != world.binned.pk

    monkeypatch.setattr(type(admin.site.get_model_admin(Company)), "has_restore_permission", may)
    keys = [world.binned.pk, world.binned_too.pk]
    pages.post(f"{COMPANY}?trash=yes", {"action": "restore_selected", "_selected_action": keys})
    assert [is_live(world.binned), is_live(world.binned_too)] == [False, True]
    assert "You do not have permission to restore the company “A binned”." in text_of(pages.get(""))


def test_what_is_not_in_the_trash_is_not_restored(pages: Pages, world: World) -> None:
    """The log has no entry, and the message contains the reason."""
    pages.post(f"{COMPANY}{world.live.pk}/restore/")
    assert "The company “A live” is not in the trash." in text_of(pages.get(""))
    assert not LogEntry.objects.filter(user_id=pages.user.pk).exists()


def test_the_log_shows_nobody_what_others_have_done(pages: Pages, staff: Any, world: World) -> None:
    """Recent actions contain only the user's own."""
    LogEntry.objects.log_actions(pages.user.pk, [world.live], 2, "Something secret.", single_object=True)
    assert b"Something secret." not in staff("directory.view_company").get("").content


@pytest.mark.parametrize(("permission", "status"), [("view", 403), ("add", 403), ("delete", 403), ("change", 302)])
def test_a_password_is_set_by_those_who_may_change_users(staff: Any, permission: str, status: int) -> None:
    """The password page requires the permission to change users, as in Django."""
    user = get_user_model().objects.create_user("Mike", "mike@example.com", "Old-Good-9")
    data = {"usable_password": "true", "password1": "Another-Good-9", "password2": "Another-Good-9"}
    response = staff(f"accounts.{permission}_user").post(
        f"accounts/user/{user.pk}/password/", data | {"set-password": "1"}
    )
    assert response.status_code == status
    fresh = get_user_model().objects.get(pk=user.pk)
    assert fresh.check_password("Another-Good-9") == (status == 302)
