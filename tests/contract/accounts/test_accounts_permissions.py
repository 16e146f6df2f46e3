"""Users' own permissions and their groups' permissions, with the requests of a check."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import aget_user, get_user
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.test import Client

from accounts.models import Group, User
from dynamo_single import auth, models, permissions
from dynamo_single.contrib.accounts.backends import EmailOrUsernameBackend
from dynamo_single.table import SentRequest, Table
from dynamo_single.testing import assert_requests
from project.directory.models import Company
from tests.unit.declaring import declare, forgotten

Sent = list[SentRequest]
VIEW, ADD, CHANGE, DELETE = (f"directory.{action}_company" for action in ("view", "add", "change", "delete"))
ONE_GROUP, GROUPS = ["GetItem"], ["BatchGetItem"]


def operations(sent: Sent) -> list[str]:
    """Return the operations sent, in order."""
    return [request.operation for request in sent]


@pytest.fixture
def ann(table: Table) -> User:
    """Return a user with a permission and two groups, loaded as by a session."""
    user = User.objects.create_user("Ann", permissions={VIEW}, user_id="1")
    writers = Group.objects.create(name="Writers", permission_names={ADD, CHANGE}, group_id="w")
    empty = Group.objects.create(name="Empty", group_id="e")
    user.groups.add(writers, empty)
    return again()


def again() -> User:
    """Ann, read again."""
    return User.objects.consistent().get(pk="1")


def request_of(user: User) -> HttpRequest:
    """A request with the user's session."""
    client = Client()
    client.force_login(user)
    request = HttpRequest()
    request.session = client.session
    return request


# which there are


def test_every_registered_model_has_permissions() -> None:
    """Each model has Django's four, in SQL or in DynamoDB; one with soft delete two more."""
    found = auth.all_permissions()
    assert {VIEW, ADD, CHANGE, DELETE, "directory.restore_company", "directory.hard_delete_company"} <= found
    assert {"accounts.change_group", "accounts.delete_user", "auth.add_group"} <= found
    assert not {"accounts.restore_user", "accounts.hard_delete_user", "accounts.add_membership"} & found


@pytest.mark.parametrize(
    ("base", "options", "expected"),
    [
        (models.Model, {}, ["add", "change", "delete", "view"]),
        (models.SoftDeleteModel, {}, ["add", "change", "delete", "view", "restore", "hard_delete"]),
        (models.SoftDeleteModel, {"default_permissions": ("view", "restore")}, ["view", "restore"]),
        (models.SoftDeleteModel, {"default_permissions": ()}, []),
        (models.SoftDeleteModel, {"permissions": [("ship", "Can ship")]}, None),
    ],
)
def test_a_models_permissions(base: Any, options: dict[str, Any], expected: list[str] | None) -> None:
    """Meta determines them; otherwise, soft delete adds the permissions to restore and to delete permanently."""
    with forgotten():
        model = declare("Parcel", ("PARCEL#{p}", "#X"), bases=(base,), options=options, p=models.IdAttribute())
        found = permissions.permissions_of(model)
    if expected is None:
        assert found == {
            "add_parcel": "Can add parcel",
            "change_parcel": "Can change parcel",
            "delete_parcel": "Can delete parcel",
            "view_parcel": "Can view parcel",
            "restore_parcel": "Can restore parcel",
            "hard_delete_parcel": "Can delete parcel permanently",
            "ship": "Can ship",
        }
    else:
        assert list(found) == [f"{action}_parcel" for action in expected]


def test_forms_offer_what_can_be_of_use() -> None:
    """The choices are sorted by label, and exclude SQL models in a project without SQL."""
    choices = permissions.permission_choices()
    labels = [label for _permission, label in choices]
    assert labels == sorted(labels, key=str.casefold)
    assert ("directory.hard_delete_company", "Directory | company | Can delete company permanently") in choices
    assert ("accounts.add_group", "Accounts | group | Can add group") in choices
    assert not [label for label in labels if label.startswith("Authentication and Authorization")]


# who has them


def test_a_superuser_may_do_everything(table: Table, sent: Sent) -> None:
    """Without a request, an active superuser has every permission, and an inactive superuser does not have any."""
    boss = User(username="Boss", is_superuser=True, group_ids={"w", "e"})
    assert boss.get_all_permissions() == boss.get_group_permissions() == auth.all_permissions()
    assert boss.has_perms([CHANGE, "made.up"])
    assert boss.has_module_perms("directory")
    boss.is_active = False
    assert boss.get_all_permissions() == set()
    assert not boss.has_perm(CHANGE)
    assert not boss.has_module_perms("directory")
    assert sent == []


def test_a_user_without_groups_costs_no_request(table: Table, sent: Sent) -> None:
    """The user's item contains the user's own permissions."""
    ben = User(username="Ben", permissions={CHANGE})
    assert ben.get_user_permissions() == ben.get_all_permissions() == {CHANGE}
    assert ben.get_group_permissions() == set()
    assert ben.has_perm(CHANGE)
    assert not ben.has_perm(DELETE)
    assert ben.has_module_perms("directory")
    assert not ben.has_module_perms("accounts")
    assert not User(username="Cleo").has_module_perms("directory")
    assert sent == []


def test_a_groups_permissions_are_one_request(ann: User) -> None:
    """The first check reads all groups in one consistent request, and the object caches them."""
    with assert_requests(GROUPS) as sent:
        assert ann.has_perm(CHANGE)
    ((entry,),) = [sent[0].params["RequestItems"].values()]
    assert entry["ConsistentRead"] is True
    with assert_requests([]):
        assert not ann.has_perm(DELETE)
        assert ann.has_perms([VIEW, ADD, CHANGE])
        assert not ann.has_perms([VIEW, DELETE])
        assert ann.has_module_perms("directory")
        assert not ann.has_module_perms("accounts")
        assert ann.get_user_permissions() == {VIEW}
        assert ann.get_group_permissions() == {ADD, CHANGE}
        assert ann.get_all_permissions() == {VIEW, ADD, CHANGE}
    ann.groups.remove("e")
    with assert_requests(ONE_GROUP):
        assert again_in_memory(ann).has_perm(ADD)


def again_in_memory(user: User) -> User:
    """Return the user without cached results."""
    for name in ("_perm_cache", "_user_perm_cache", "_group_perm_cache"):
        user.__dict__.pop(name, None)
    return user


def test_single_objects_have_no_permissions(ann: User) -> None:
    """has_perm() with an object returns False, without a request, as in Django."""
    with assert_requests([]):
        assert not ann.has_perm(CHANGE, obj=ann)
        assert ann.get_all_permissions(obj=ann) == ann.get_group_permissions(obj=ann) == set()


def test_inactive_and_anonymous_users_have_none(ann: User) -> None:
    """Groups and own permissions do not count."""
    ann.is_active = False
    backend = EmailOrUsernameBackend()
    with assert_requests([]):
        assert not ann.has_perm(VIEW)
        assert not ann.has_module_perms("directory")
        assert ann.get_all_permissions() == set()
        assert backend.get_all_permissions(AnonymousUser()) == set()
        assert not AnonymousUser().has_perm(VIEW)
        assert not backend.has_module_perms(AnonymousUser(), "directory")


def test_has_perms_takes_several() -> None:
    """A string instead of a list raises an error, as in Django."""
    with pytest.raises(ValueError, match="must be an iterable of permissions"):
        User(username="Ben").has_perms(VIEW)


def test_permissions_are_asynchronous_too(ann: User) -> None:
    """Every asynchronous method has the same result, and reads the groups once."""

    async def use() -> None:
        assert await ann.aget_all_permissions() == {VIEW, ADD, CHANGE}
        assert await ann.aget_user_permissions() == {VIEW}
        assert await ann.aget_group_permissions() == {ADD, CHANGE}
        assert await ann.ahas_perm(CHANGE)
        assert not await ann.ahas_perms([CHANGE, DELETE])
        assert await ann.ahas_module_perms("directory")
        assert not await ann.ahas_module_perms("accounts")
        assert not await ann.ahas_perm(CHANGE, ann)

    with assert_requests(GROUPS):
        asyncio.run(use())


# a removed permission is gone with the next request


@pytest.mark.parametrize(
    "take",
    [
        lambda: Group.objects.filter(pk="w").update(permission_names={ADD}),
        lambda: again().groups.remove("w"),
        lambda: Group.objects.get(pk="w").user_set.remove(again()),
        lambda: again().groups.clear(),
        lambda: Group.objects.get(pk="w").delete(),
        lambda: Group.objects.filter(name="Writers").delete(),
        lambda: User.objects.filter(pk="1").update(is_active=False),
    ],
    ids=["permission", "leave", "expelled", "clear", "group", "groups", "inactive"],
)
def test_what_is_taken_away_is_gone_with_the_next_request(ann: User, take: Callable[[], Any]) -> None:
    """The next request reads the user and the groups strongly consistent."""
    request = request_of(ann)
    assert get_user(request).has_perm(CHANGE)
    take()
    assert not get_user(request).has_perm(CHANGE)
    assert not asyncio.run(aget_user(request)).has_perm(CHANGE)


def test_what_is_given_is_there_with_the_next_request(ann: User) -> None:
    """A new membership counts."""
    request = request_of(ann)
    again().groups.add(Group.objects.create(name="Removers", permission_names={DELETE}))
    assert get_user(request).has_perm(DELETE)


def test_a_deleted_group_gives_nothing_even_if_somebody_kept_it(ann: User) -> None:
    """A user who still has the group's identifier, because another process has added it, has no permissions from it."""
    Group.objects.get(pk="w").delete()
    late = again()
    late.group_ids = {"w", "e"}
    late.save()
    assert not again().has_perm(CHANGE)
    assert [group.pk for group in again().groups.all()] == ["e"]


# pages


def test_a_page_asks_for_permissions_only_when_it_shows_them(ann: User) -> None:
    """A page takes the session, the user and one request for the groups, whatever the number of checks is."""
    User.objects.filter(pk="1").update(is_staff=True)
    client = Client()
    client.force_login(again())
    with assert_requests(["GetItem", "GetItem", "BatchGetItem", "Query"]):
        page = client.get("/admin/directory/company/")
    assert page.status_code == 200
    with assert_requests(["GetItem", "GetItem"]):
        client.get("/admin/login/")
    Group.objects.filter(pk="w").update(permission_names=None)
    again().groups.remove("e")
    assert client.get("/admin/directory/company/add/").status_code == 403
    assert not Company.objects.exists()


# with_perm


def test_with_perm_finds_the_users(ann: User, sent: Sent) -> None:
    """The users with a permission, their own or a group's: a Query for the groups, and one for the users."""
    for name, options in {
        "Ben": {"permissions": {CHANGE}},
        "Carl": {"permissions": {CHANGE}, "is_active": False},
        "Cleo": {"is_superuser": True},
        "Dan": {},
    }.items():
        User.objects.create_user(name, **options)
    sent.clear()

    def names(**options: Any) -> list[str]:
        return [user.username for user in User.objects.with_perm(CHANGE, **options)]

    assert names() == ["Ann", "Ben", "Cleo"]
    assert [request.params["IndexName"] for request in sent] == ["gs1", "gs1"]
    assert operations(sent) == ["Query", "Query"]
    assert names(is_active=None) == ["Ann", "Ben", "Carl", "Cleo"]
    assert names(is_active=False) == ["Carl"]
    assert names(include_superusers=False) == ["Ann", "Ben"]
    assert names(obj=User()) == []
    assert [user.username for user in User.objects.with_perm(VIEW, include_superusers=False)] == ["Ann"]
    for wrong in ("change_company", "a.b.c"):
        with pytest.raises(ValueError, match=r"app_label\.permission_codename"):
            User.objects.with_perm(wrong)
    with pytest.raises(TypeError):
        User.objects.with_perm(3)


def test_every_asynchronous_question_is_answered_from_what_is_stored(ann: User) -> None:
    """This also applies if Django's backend, which reads SQL tables, is after the mixin."""

    class Own(permissions.StoredPermissions, ModelBackend):
        pass

    async def use() -> None:
        assert await Own().aget_user_permissions(ann) == {VIEW}
        assert await Own().aget_group_permissions(ann) == {ADD, CHANGE}
        assert await Own().aget_all_permissions(ann) == {VIEW, ADD, CHANGE}
        assert await Own().ahas_perm(ann, ADD)
        assert await Own().ahas_module_perms(ann, "directory")

    asyncio.run(use())
