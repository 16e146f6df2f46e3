"""Groups in the admin, and a user's groups and permissions there."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.forms import modelform_factory
from django.test import RequestFactory

from accounts.models import Group, User
from dynamo_single.contrib.accounts.admin import UserAdmin
from tests.contract.conftest import Pages, text_of

GROUPS = "accounts/group/"
USERS = "accounts/user/"
VIEW = "directory.view_company"
#: The group, and who holds its name.
READ = ("GetItem", "GetItem")
LABEL = "Directory | company | Can delete company permanently"


def user_data(user: User, **values: Any) -> dict[str, Any]:
    """Return the data of the user's page."""
    return {"username": user.username, "email": user.email or "", "is_active": "on", **values}


def chosen(response: Any, name: str) -> list[str]:
    """The values that a list to choose from shows as chosen."""
    found = re.search(rf'<select name="{name}".*?</select>', response.content.decode(), flags=re.DOTALL)
    assert found
    return re.findall(r'<option value="([^"]*)" selected', found[0])


@pytest.fixture
def writers(pages: Pages) -> Group:
    """A group."""
    return Group.objects.create(name="Writers", permission_names={VIEW}, group_id="w")


@pytest.fixture
def mike(pages: Pages, writers: Group) -> User:
    """A member of it."""
    user = User.objects.create_user("Mike", "mike@example.com", permissions={"gone.view_thing"}, user_id="1")
    user.groups.add(writers)
    return user


def test_link_next_to_groups_opens_form(pages: Pages, mike: User) -> None:
    """The form adds a group in a pop-up window."""
    page = pages.get(f"{USERS}1/change/").content.decode()
    link = re.search(r'id="add_id_groups".*?href="/admin/([^"]+)"', page, flags=re.DOTALL)
    assert link
    assert pages.get(link[1].replace("&amp;", "&")).status_code == 200


def test_adding_a_group(pages: Pages) -> None:
    """Two lists with a search offer permissions by name."""
    page = pages.get(f"{GROUPS}add/", sends=[])
    assert 'class="selectfilter"' in page.content.decode()
    assert LABEL in text_of(page)
    assert "Authentication and Authorization" not in text_of(page)
    chosen = [Permission.objects.get(codename=code).pk for code in ("view_company", "hard_delete_company")]
    data = {"name": "Editors", "permissions": chosen}
    pages.post(f"{GROUPS}add/", data, sends=["GetItem", "TransactWriteItems"])
    assert Group.objects.get(name="Editors").permission_names == {VIEW, "directory.hard_delete_company"}
    pages.post(f"{GROUPS}add/", {"name": "None"})
    assert Group.objects.get(name="None").permission_names is None


def test_a_group_name_that_is_taken(pages: Pages, writers: Group) -> None:
    """The error belongs to its field."""
    assert "Group with this Name already exists." in text_of(pages.post(f"{GROUPS}add/", {"name": "Writers"}))


def test_what_is_no_permission_is_refused(pages: Pages) -> None:
    """A form that no page shows cannot store one."""
    response = pages.post(f"{GROUPS}add/", {"name": "Odd", "permissions": ["7"]})
    assert "Select a valid choice. 7 is not one of the available choices." in text_of(response)
    assert not Group.objects.exists()


def test_changing_a_group(pages: Pages, writers: Group) -> None:
    """The page shows the chosen permissions; a save writes the group, and the log describes the change."""
    writers.permission_names = {VIEW, "gone.view_thing"}
    writers.save()
    page = pages.get(f"{GROUPS}w/change/", sends=["GetItem"])
    assert chosen(page, "permissions") == [str(Permission.objects.get(codename="view_company").pk)]
    data = {"name": "Writers", "permissions": chosen(page, "permissions")}
    pages.post(f"{GROUPS}w/change/", data, sends=[*READ, "PutItem"])
    pages.post(f"{GROUPS}w/change/", {"name": "Writers"}, sends=[*READ, "TransactWriteItems"])
    assert Group.objects.get(pk="w").permission_names == {"gone.view_thing"}
    assert "Changed Permissions." in text_of(pages.get(f"{GROUPS}w/history/"))


def test_listing_and_deleting_groups(pages: Pages, mike: User) -> None:
    """Groups are listed by name and found by its beginning; a deleted group has no members."""
    Group.objects.create(name="Admins")
    text = text_of(pages.get(GROUPS, sends=["Query"]))
    assert text.index("Admins") < text.index("Writers")
    assert "Admins" not in text_of(pages.get(f"{GROUPS}?q=Wri"))
    assert pages.post(f"{GROUPS}w/delete/", {"post": "yes"}).status_code == 302
    assert User.objects.get(pk="1").group_ids is None
    assert [group.name for group in Group.objects.all()] == ["Admins"]


def test_a_users_groups_and_permissions(pages: Pages, mike: User, writers: Group) -> None:
    """A single transaction saves both with the user, and the log describes the change."""
    readers = Group.objects.create(name="Readers", group_id="r")
    page = pages.get(f"{USERS}1/change/", sends=["GetItem", "Query"])
    assert page.content.decode().count('class="selectfilter"') == 2
    assert chosen(page, "groups") == ["w"]
    assert chosen(page, "user_permissions") == []
    data = user_data(mike, groups=["r", "w"], user_permissions=[Permission.objects.get(codename="view_company").pk])
    response = pages.post(f"{USERS}1/change/", data)
    assert response.status_code == 302, text_of(response)
    changed = User.objects.get(pk="1")
    assert (changed.group_ids, changed.permissions) == ({"r", "w"}, {VIEW, "gone.view_thing"})
    assert [user.username for user in readers.user_set.all()] == ["Mike"]
    assert "Changed Groups and User permissions." in text_of(pages.get(f"{USERS}1/history/"))
    pages.post(f"{USERS}1/change/", user_data(mike))
    assert User.objects.get(pk="1").group_ids is None
    assert list(readers.user_set.all()) == list(writers.user_set.all()) == []


def test_a_group_that_is_gone_cannot_be_chosen(pages: Pages, mike: User) -> None:
    """The form reports the missing group, and the user does not change."""
    response = pages.post(f"{USERS}1/change/", user_data(mike, groups=["w", "nowhere"]))
    assert "Select a valid choice. nowhere is not one of the available choices." in text_of(response)
    assert User.objects.get(pk="1").group_ids == {"w"}


def test_who_may_only_look_sees_names(mike: User, staff: Callable[..., Pages]) -> None:
    """Without the permission to change, the page shows permissions, and the groups that the user may see, as text."""
    mike.user_permissions.add(Permission.objects.get(codename="view_company"))
    text = text_of(staff("accounts.view_user", "accounts.view_group").get(f"{USERS}1/change/"))
    # The help text is after the value, and before it since Django 6.0.
    for relation in (User._meta.get_field("groups"), User._meta.get_field("user_permissions")):
        text = text.replace(f"{relation.help_text} ", "")
    assert "Groups: Writers User permissions: Directory | company | Can view company Important dates" in text


def test_a_page_without_the_groups_leaves_them_alone(mike: User, pages: Pages) -> None:
    """A subclass that shows fewer fields does not take the groups away."""

    class Small(UserAdmin):
        fieldsets = ((None, {"fields": ("username",)}),)

    request = RequestFactory().post("/", {"username": "Michael"})
    request.user = pages.user
    form_class = Small(User, admin.site).get_form(request, mike, change=True)
    form = form_class({"username": "Michael"}, instance=mike)
    assert form.is_valid(), form.errors
    form.save()
    assert (User.objects.get(pk="1").username, User.objects.get(pk="1").group_ids) == ("Michael", {"w"})


def test_a_plain_form_offers_the_permissions_too(writers: Group) -> None:
    """Outside the admin the field is a list to choose from."""
    held = Permission.objects.get(codename="view_company").pk
    form = modelform_factory(Group, fields=["name", "permissions"])(instance=writers)
    assert f'<option value="{held}" selected>' in str(form["permissions"])
    bound = modelform_factory(Group, fields=["permissions"])({"permissions": [held]}, instance=writers)
    assert bound.is_valid()
    assert not bound.has_changed()
