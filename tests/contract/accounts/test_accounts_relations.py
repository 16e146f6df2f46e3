"""``groups`` and ``user_permissions`` as relations: in filters, forms, fixtures and commands, as Django's are."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from typing import Any
from unittest.mock import patch

import pytest
from django.contrib.auth.models import Permission
from django.core import serializers
from django.core.management import call_command
from django.db.models import Count, Prefetch, Q
from django.forms import modelform_factory

from accounts.models import Group, Membership, User
from dynamo_single.exceptions import NotSupported
from dynamo_single.testing import assert_requests
from dynamo_single.transactions import atomic

pytestmark = pytest.mark.usefixtures("table")


def names(users: Any) -> list[str]:
    """The user names, sorted."""
    return sorted(user.username for user in users)


def permission(codename: str) -> Any:
    """Return a permission of the directory."""
    return Permission.objects.get(codename=codename, content_type__app_label="directory")


@pytest.fixture
def writers() -> Group:
    """A group with one member, and one without."""
    Group.objects.create(name="Readers", group_id="r")
    return Group.objects.create(name="Writers", group_id="w")


@pytest.fixture
def ann(writers: Group) -> User:
    """Return a member of the group with a permission; Ben has no group, and a permission of a removed app."""
    User.objects.create_user("Ben", user_id="2", permissions={"gone.view_thing"})
    made = User.objects.create_user("Ann", user_id="1", permissions={"directory.view_company"})
    made.groups.add(writers)
    return made


FILTERS: dict[str, tuple[Callable[[], Any], list[str], list[str]]] = {
    "group": (lambda: User.objects.filter(groups=Group.objects.get(pk="w")), ["Ann"], ["GetItem", "Query", "GetItem"]),
    "key": (lambda: User.objects.filter(groups="w"), ["Ann"], ["Query", "GetItem"]),
    "keys": (lambda: User.objects.filter(groups__in=["r", "w"]), ["Ann"], ["Query", "Query", "GetItem"]),
    "without": (lambda: User.objects.exclude(groups="w"), ["Ben"], ["Query"]),
    "none": (lambda: User.objects.filter(groups__isnull=True), ["Ben"], ["Query"]),
    "any": (lambda: User.objects.filter(groups__isnull=False), ["Ann"], ["Query"]),
    "either": (lambda: User.objects.filter(Q(groups="w") | Q(username="Ben")), ["Ann", "Ben"], ["Query"]),
    "both": (lambda: User.objects.filter(groups="w").filter(groups="r"), [], ["Query", "Query"]),
    "name": (
        lambda: User.objects.filter(groups__name="Writers").allow_in_memory(10),
        ["Ann"],
        ["Query", "Query", "GetItem"],
    ),
    "same group": (lambda: User.objects.filter(groups="w", groups__name="Readers").allow_in_memory(10), [], ["Query"]),
    "permission": (lambda: User.objects.filter(user_permissions=permission("view_company")), ["Ann"], ["Query"]),
    "permissions": (
        lambda: User.objects.filter(
            user_permissions__in=Permission.objects.filter(
                content_type__app_label="directory", codename__startswith="view_"
            )
        ),
        ["Ann"],
        ["Query"],
    ),
    "codename": (
        lambda: User.objects.filter(
            user_permissions__codename="view_company", user_permissions__content_type__app_label="directory"
        ),
        ["Ann"],
        ["Query"],
    ),
    "another app's": (
        lambda: User.objects.filter(
            user_permissions__codename="view_company", user_permissions__content_type__app_label="accounts"
        ),
        [],
        [],
    ),
    "without permission": (
        lambda: User.objects.exclude(user_permissions__codename="view_company"),
        ["Ben"],
        ["Query"],
    ),
    "of permission": (lambda: permission("view_company").user_set.all(), ["Ann"], ["Query"]),
}


@pytest.mark.parametrize("name", FILTERS)
def test_filter_over_relation(ann: User, name: str) -> None:
    ask, found, requests = FILTERS[name]
    with assert_requests(requests):
        assert names(ask()) == found


def test_members_filter_groups(ann: User) -> None:
    found = Group.objects.filter(user__username="Ann").allow_in_memory(10)
    assert [group.name for group in found] == ["Writers"]


def test_filter_by_name_names_both_ways_out(ann: User) -> None:
    with assert_requests([]), pytest.raises(NotSupported, match=r"User\.groups\.through.*allow_in_memory"):
        list(User.objects.filter(groups__name="Writers"))


def test_users_of_permission_are_not_joined(ann: User) -> None:
    with pytest.raises(NotSupported, match="user_set"):
        list(Permission.objects.filter(user=ann))


def test_groups_are_counted(ann: User) -> None:
    counted = User.objects.allow_in_memory(10).annotate(number=Count("groups"))
    assert {user.username: user.number for user in counted} == {"Ann": 1, "Ben": 0}


def test_filter_leaves_out_former_members(ann: User, writers: Group) -> None:
    """The user's item decides, however long a membership stays in the index."""
    with patch("dynamo_single.auth.users.PermissionsMixin.derived_objects", lambda user: iter(())):
        User.objects.filter(pk="1").update(group_ids=None)
    assert Membership.objects.filter(group="w").exists()
    assert names(User.objects.filter(groups=writers)) == []


# changes


def test_permissions_are_stored_as_strings(ann: User) -> None:
    with assert_requests(["UpdateItem"]):
        ann.user_permissions.add(permission("add_company"))
    assert User.objects.get(pk="1").permissions == {"directory.add_company", "directory.view_company"}


def test_permissions_are_read_without_request(ann: User) -> None:
    with assert_requests([]):
        assert [each.codename for each in ann.user_permissions.all()] == ["view_company"]


def test_set_starts_with_the_stored_permissions(ann: User) -> None:
    """Another process has granted one since."""
    User.objects.get(pk="1").user_permissions.add(permission("delete_company"))
    ann.user_permissions.set([permission("add_company")])
    assert User.objects.get(pk="1").permissions == {"directory.add_company"}


def test_clear_keeps_permissions_of_other_apps(ann: User) -> None:
    ben = User.objects.get(pk="2")
    ben.user_permissions.add(permission("add_company").pk)
    ben.user_permissions.clear()
    assert User.objects.get(pk="2").permissions == {"gone.view_thing"}


def test_unknown_permission_does_not_exist(ann: User) -> None:
    with pytest.raises(Permission.DoesNotExist, match=r"No auth\.Permission has pk 7\."):
        ann.user_permissions.add(7)


def test_permission_adds_and_removes_users(ann: User) -> None:
    added = permission("add_company")
    added.user_set.add(ann, "2")
    assert names(added.user_set.all()) == ["Ann", "Ben"]
    added.user_set.set(["2"])
    assert names(added.user_set.all()) == ["Ben"]


def test_permission_refuses_another_model_of_equal_pk(ann: User, writers: Group) -> None:
    """A group with the ``pk`` of a user in the same call had been left out in silence."""
    other = Group.objects.create(name="Ones", group_id="1")
    with assert_requests([]), pytest.raises(TypeError, match="'User' instance expected"):
        permission("add_company").user_set.add(ann, other)


def test_permission_named_twice_by_pk_is_unknown_once(ann: User) -> None:
    """Both texts mean one number, which no permission has."""
    with pytest.raises(Permission.DoesNotExist, match=r"No auth\.Permission has pk 7\."):
        ann.user_permissions.add("7", "07")


def test_prefetch_slices_the_permissions_of_each_user(ann: User) -> None:
    ann.user_permissions.add(permission("add_company"))
    one = Prefetch("user_permissions", queryset=Permission.objects.order_by("codename")[:1])
    read = {
        each.username: [row.codename for row in each.user_permissions.all()]
        for each in User.objects.prefetch_related(one)
    }
    assert read == {"Ann": ["add_company"], "Ben": []}


@pytest.mark.parametrize("relation", ["groups", "user_permissions"])
def test_prefetch_with_a_queryset_keeps_its_conditions(ann: User, relation: str) -> None:
    """Django calls a method of the manager that both lacked."""
    model: Any = User._meta.get_field(relation).related_model
    lookup = Prefetch(relation, queryset=model.objects.filter(name__in=["Writers", "Can view company"]))
    read = {each.username: len(getattr(each, relation).all()) for each in User.objects.prefetch_related(lookup)}
    assert read == {"Ann": 1, "Ben": 0}


def test_relations_change_in_one_transaction(ann: User) -> None:
    with assert_requests(["TransactWriteItems"]), atomic():
        ann.user_permissions.add(permission("add_company"))
        Group.objects.create(name="Others")


def test_prefetch_sends_one_request_for_all_users(ann: User) -> None:
    with assert_requests(["Query", "GetItem"]):
        found = User.objects.prefetch_related("user_permissions", "groups")
        read = {each.username: [*each.user_permissions.all(), *each.groups.all()] for each in found}
    assert {name: [str(each) for each in related] for name, related in read.items()} == {
        "Ann": ["Directory | company | Can view company", "Writers"],
        "Ben": [],
    }


# permissions of groups


@pytest.fixture
def granting(ann: User, writers: Group) -> Group:
    """Return Ann's group with a permission, and one with a permission of a removed app."""
    writers.permission_names = {"directory.view_company", "gone.view_thing"}
    writers.save()
    return writers


OF_GROUPS: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "permission": (lambda: Group.objects.filter(permissions=permission("view_company")), ["Writers"]),
    "codename": (lambda: Group.objects.filter(permissions__codename="view_company"), ["Writers"]),
    "none": (lambda: Group.objects.filter(permissions__isnull=True), ["Readers"]),
    "without": (lambda: Group.objects.exclude(permissions=permission("view_company")), ["Readers"]),
    "of permission": (lambda: permission("view_company").group_set.all(), ["Writers"]),
}


@pytest.mark.parametrize("name", OF_GROUPS)
def test_groups_by_permissions(granting: Group, name: str) -> None:
    made, wanted = OF_GROUPS[name]
    with assert_requests(["Query"]):
        assert sorted(group.name for group in made()) == wanted


def test_users_by_permissions_of_groups(granting: Group) -> None:
    found = User.objects.filter(groups__permissions=permission("view_company")).allow_in_memory(10)
    assert names(found) == ["Ann"]


def test_permissions_of_groups_are_prefetched(granting: Group) -> None:
    with assert_requests(["Query"]):
        found = Group.objects.prefetch_related("permissions")
        read = {each.name: [row.codename for row in each.permissions.all()] for each in found}
    assert read == {"Readers": [], "Writers": ["view_company"]}


def test_permission_of_group_is_stored_as_string(granting: Group) -> None:
    with assert_requests(["UpdateItem"]):
        granting.permissions.add(permission("add_company"))
    assert User.objects.get(pk="1").has_perm("directory.add_company")


def test_set_keeps_permissions_of_other_apps(granting: Group) -> None:
    granting.permissions.set([permission("add_company")])
    assert Group.objects.get(pk="w").permission_names == {"directory.add_company", "gone.view_thing"}


def test_permission_adds_and_removes_groups(granting: Group) -> None:
    """``group_set`` contains the groups of this project's users instead of Django's."""
    added = permission("add_company")
    added.group_set.set(["r"])
    assert [group.name for group in added.group_set.all()] == ["Readers"]


def test_strings_have_a_name_of_their_own() -> None:
    with pytest.raises(TypeError, match=r"or assign a set of strings to Group\.permission_names\."):
        Group(name="Odd").permissions = {"directory.add_company"}


def test_form_of_group_writes_permissions(granting: Group) -> None:
    form_class = modelform_factory(Group, fields=["name", "permissions"])
    form = form_class({"name": "Writers", "permissions": [permission("add_company").pk]}, instance=granting)
    assert form.is_valid(), form.errors
    form.save()
    assert Group.objects.get(pk="w").permission_names == {"directory.add_company", "gone.view_thing"}


def test_fixture_of_groups(granting: Group) -> None:
    """Strings include removed apps; a fixture of Django's own groups has natural keys."""
    text = serializers.serialize("json", [granting])
    assert "permissions" not in json.loads(text)[0]["fields"]
    granting.permission_names = None
    granting.save()
    for each in serializers.deserialize("json", text):
        each.save()
    assert Group.objects.get(pk="w").permission_names == {"directory.view_company", "gone.view_thing"}
    fields = {"name": "Others", "permissions": [["add_company", "directory", "company"]]}
    for each in serializers.deserialize("python", [{"model": "accounts.group", "pk": "o", "fields": fields}]):
        each.save()
    assert Group.objects.get(pk="o").permission_names == {"directory.add_company"}


# forms


def test_form_writes_relations(ann: User) -> None:
    """Like any ``ModelForm``, after the object."""
    form_class = modelform_factory(User, fields=["username", "groups", "user_permissions"])
    data = {"username": "Ann", "groups": ["r"], "user_permissions": [permission("add_company").pk]}
    form = form_class(data, instance=ann)
    assert form.is_valid(), form.errors
    form.save()
    changed = User.objects.get(pk="1")
    assert (changed.group_ids, changed.permissions) == ({"r"}, {"directory.add_company"})


def test_form_offers_usable_permissions(ann: User) -> None:
    """Permissions of SQL models have no use in this project."""
    form = modelform_factory(User, fields=["user_permissions"])(instance=ann)
    offered = {each.content_type.app_label for each in form.fields["user_permissions"].queryset}
    assert "directory" in offered and "contenttypes" not in offered


def test_form_reads_content_types_with_permissions(ann: User) -> None:
    """The label of a choice names both: without SQL, a page took a second for a query of each."""
    form = modelform_factory(User, fields=["user_permissions"])(instance=ann)
    offered = form.fields["user_permissions"].queryset
    assert all(Permission.content_type.is_cached(each) for each in offered)


# fixtures


@pytest.mark.parametrize("natural", [True, False])
def test_fixture_restores_relations(ann: User, writers: Group, natural: bool) -> None:
    """By the names of the groups, or by their keys; users may come before their groups."""
    text = serializers.serialize(
        "json", [*User.objects.all(), *Group.objects.all()][:: -1 if natural else 1], use_natural_foreign_keys=natural
    )
    fields = next(each["fields"] for each in json.loads(text) if each["pk"] == "1")
    assert fields["groups"] == ([["Writers"]] if natural else ["w"]) and "group_ids" not in fields
    ann.delete()
    if not natural:
        writers.delete()
    for each in serializers.deserialize("json", text):
        each.save()
    assert names(Group.objects.get(pk="w").user_set.all()) == ["Ann"]
    assert User.objects.get(pk="1").permissions == {"directory.view_company"}


def test_fixture_of_django_grants_permissions(ann: User) -> None:
    """A fixture of Django's own users names permissions by their natural keys."""
    fields = {"username": "Carl", "password": "!", "groups": [["Readers"]]}
    fields["user_permissions"] = [["add_company", "directory", "company"]]
    for each in serializers.deserialize("python", [{"model": "accounts.user", "pk": "3", "fields": fields}]):
        each.save()
    carl = User.objects.get(pk="3")
    assert (carl.group_ids, carl.permissions) == ({"r"}, {"directory.add_company"})


# commands


def test_createsuperuser_takes_relations(writers: Group) -> None:
    """Many-to-many fields may be required, and the manager gets their keys."""
    with (
        patch.object(User, "REQUIRED_FIELDS", ["email", "groups"]),
        patch.object(type(User.objects), "create_superuser", _create),
    ):
        call_command(
            "createsuperuser",
            interactive=False,
            username="Root",
            email="r@example.com",
            groups=["w"],
            stdout=StringIO(),
        )
    assert names(writers.user_set.all()) == ["Root"]


def _create(manager: Any, username: str, email: str, password: str | None = None, groups: Any = ()) -> User:
    user: User = manager.create_user(username, email, password, is_superuser=True)
    user.groups.set(groups)
    return user
