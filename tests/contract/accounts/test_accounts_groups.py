"""Groups and their members: stored items, requests and agreement of both sides."""

from __future__ import annotations

import asyncio
import pickle
import threading
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.db import IntegrityError
from django.db.models import Q
from django.template import Context, Template

from accounts.models import Group, Membership, User
from dynamo_single import exceptions
from dynamo_single.auth import AbstractGroup, AbstractMembership, AbstractUser, membership
from dynamo_single.auth.groups import GroupsDescriptor
from dynamo_single.table import Request, SentRequest, Table
from dynamo_single.testing import assert_requests, refuse

Sent = list[SentRequest]
TRANSACTION = ["TransactWriteItems"]


def actions(request: SentRequest) -> list[str]:
    """Return the actions of a transaction and their items."""
    found = []
    for action in request.params["TransactItems"]:
        ((kind, described),) = action.items()
        key = described.get("Key") or described["Item"]
        found.append(f"{kind} {key['pk']['S']} {key['sk']['S']}")
    return found


def stored(table: Table) -> dict[tuple[str, str], dict[str, Any]]:
    """Everything in the table, by key."""
    return {(item["pk"]["S"], item["sk"]["S"]): item for item in table.send(Request("Scan", {}))["Items"]}


def memberships(table: Table) -> list[tuple[str, str]]:
    """User and group of each membership item."""
    found = [item for item in stored(table).values() if item["itemType"]["S"] == "Membership"]
    return sorted((item["userId"]["S"], item["groupId"]["S"]) for item in found)


def held(pk: str = "1") -> list[str]:
    """The groups that a user's own item names."""
    return sorted(User.objects.consistent().get(pk=pk).group_ids or ())


def names(users: Any) -> list[str]:
    """The user names, sorted."""
    return sorted(user.username for user in users)


@pytest.fixture
def ann(table: Table) -> User:
    """A user."""
    return User.objects.create_user("Ann", "ann@example.com", user_id="1")


@pytest.fixture
def ben(table: Table) -> User:
    """Another user."""
    return User.objects.create_user("Ben", user_id="2")


@pytest.fixture
def writers(table: Table) -> Group:
    """A group."""
    return Group.objects.create(name="Writers", permission_names={"a.write"}, group_id="w")


@pytest.fixture
def readers(table: Table) -> Group:
    """Another group."""
    return Group.objects.create(name="Readers", permission_names={"a.read"}, group_id="r")


# stored items


def test_a_membership_is_on_the_user_and_beside_it(ann: User, writers: Group, table: Table) -> None:
    """The user's item names the group, and a membership in the user's partition is in the group's index."""
    ann.groups.add(writers)
    items = stored(table)
    assert items["USER#1", "#METADATA"]["groups"] == {"SS": ["w"]}
    assert items["USER#1", "#GROUP#w"] == {
        "pk": {"S": "USER#1"},
        "sk": {"S": "#GROUP#w"},
        "gs1pk": {"S": "GROUP#w"},
        "gs1sk": {"S": "USER#1"},
        "itemType": {"S": "Membership"},
        "userId": {"S": "1"},
        "groupId": {"S": "w"},
    }
    assert items["GROUP#w", "#METADATA"]["permissions"] == {"SS": ["a.write"]}


def test_many_groups_are_one_transaction(ann: User, writers: Group, readers: Group, sent: Sent) -> None:
    """Joining and leaving write only the user and the memberships."""
    ann.groups.add(writers, readers)
    assert actions(sent[0]) == ["Update USER#1 #METADATA", "Put USER#1 #GROUP#r", "Put USER#1 #GROUP#w"]
    ann.groups.remove(writers)
    assert actions(sent[1]) == ["Update USER#1 #METADATA", "Delete USER#1 #GROUP#w"]
    ann.groups.set([writers])
    assert sorted(actions(sent[2])) == ["Delete USER#1 #GROUP#r", "Put USER#1 #GROUP#w", "Update USER#1 #METADATA"]
    ann.groups.clear()
    assert actions(sent[3]) == ["Update USER#1 #METADATA", "Delete USER#1 #GROUP#w"]
    assert len(sent) == 4


def test_many_members_never_rewrite_the_group(writers: Group, table: Table) -> None:
    """Each new member takes one transaction of the user's items, and the group's own item is not written."""
    users = [User.objects.create_user(f"user{number}", user_id=str(number)) for number in range(30)]
    with assert_requests(TRANSACTION * 30) as sent:
        writers.user_set.add(*users)
    assert not [action for request in sent for action in actions(request) if "GROUP#w #METADATA" in action]
    with assert_requests(["Query", "BatchGetItem"]):
        assert len(writers.user_set.all()) == 30


def test_a_deleted_user_leaves_no_membership(ann: User, writers: Group, table: Table) -> None:
    """The memberships go in the user's own transaction."""
    ann.groups.add(writers)
    with assert_requests(TRANSACTION):
        ann.delete()
    assert memberships(table) == []
    assert list(writers.user_set.all()) == []


def test_a_deleted_group_is_left_by_all(ann: User, ben: User, writers: Group, readers: Group, table: Table) -> None:
    """The group goes first, in one transaction, and then each member's membership."""
    writers.user_set.add(ann, ben)
    readers.user_set.add(ann)
    with assert_requests([*TRANSACTION, "Query", "BatchGetItem", *TRANSACTION, *TRANSACTION]):
        assert writers.delete() == (1, {"accounts.Group": 1})
    assert memberships(table) == [("1", "r")]
    assert (held("1"), held("2")) == (["r"], [])


def test_other_changes_of_a_user_keep_the_groups(ann: User, writers: Group, table: Table) -> None:
    """An address changes with its login item; the membership stays as it is, and untouched."""
    ann.groups.add(writers)
    ann.email = "new@example.com"
    with assert_requests(TRANSACTION) as sent:
        ann.save()
    assert not [action for action in actions(sent[0]) if "GROUP" in action]
    assert memberships(table) == [("1", "w")]


def test_a_user_is_in_ninety_groups_at_most(ann: User, table: Table) -> None:
    """More would not fit into the transaction that deletes the user; leaving is always possible."""
    groups = [Group.objects.create(name=f"Group {number}") for number in range(membership.MAX_GROUPS + 1)]
    ann.groups.add(*groups[:-1])
    with pytest.raises(exceptions.InvalidValue, match="would be in 91 groups; a user can be in 90"):
        ann.groups.add(groups[-1])
    with assert_requests(["BatchGetItem"]):
        assert len(ann.groups.all()) == 90
    ann.groups.remove(groups[0])
    ann.groups.add(groups[-1])
    assert len(memberships(table)) == 90
    ann.delete()
    assert memberships(table) == []


# user.groups


def test_reading_a_users_groups(ann: User, writers: Group, readers: Group) -> None:
    """A consistent request reads the groups by key; a user without groups does not need it."""
    with assert_requests([]):
        assert list(ann.groups.all()) == []
        assert not ann.groups.exists()
    ann.groups.add(writers, readers)
    with assert_requests(["BatchGetItem"]):
        assert sorted(ann.groups.values_list("name", flat=True)) == ["Readers", "Writers"]
    with assert_requests(["BatchGetItem"]):
        assert ann.groups.filter(name="Writers").exists()
    assert not ann.groups.filter(name="Nobody").exists()
    assert ann.groups.count() == 2
    assert ann.groups.get(name="Readers") == readers
    assert ann.groups.get(pk="w") == writers
    assert list(ann.groups.exclude(name="Readers")) == [writers]
    assert list(ann.groups.filter(pk__in=["w", "other"])) == [writers]
    with pytest.raises(Group.DoesNotExist):
        ann.groups.get(name="Nobody")


def test_groups_are_given_as_objects_or_by_pk(ann: User, writers: Group, readers: Group) -> None:
    """Both are accepted, as in Django; a pk is looked up, so that a user cannot be in a missing group."""
    ann.groups.add("w", readers)
    assert held() == ["r", "w"]
    ann.groups.set(["w"])
    assert held() == ["w"]
    ann.groups.remove("w", "w")
    assert held() == []
    with pytest.raises(Group.DoesNotExist, match=r"No accounts\.Group has pk 'nothing'\. Nothing was written"):
        ann.groups.add("w", "nothing")
    assert held() == []
    with assert_requests([]):
        ann.groups.add()
        ann.groups.remove()


def test_what_cannot_be_added_is_refused(ann: User, ben: User, writers: Group) -> None:
    """Objects of other models, unsaved objects and assignments raise errors, as in Django."""
    with pytest.raises(TypeError, match=r"'Group' instance expected, got accounts\.User with pk '2'"):
        ann.groups.add(ben)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(ValueError, match="is not stored"):
        ann.groups.add(Group(name="New"))
    with pytest.raises(ValueError, match="is not stored"):
        User(username="New").groups.add(writers)
    with pytest.raises(TypeError, match=r"Use groups\.set\(\) instead"):
        ann.groups = [writers]
    with pytest.raises(exceptions.NotSupported, match="through_defaults"):
        ann.groups.add(writers, through_defaults={"since": 1})
    gone = Group.objects.create(name="Gone")
    gone.delete()
    with pytest.raises(ValueError, match="is not stored"):
        ann.groups.add(gone)


def test_creating_through_a_user(ann: User, writers: Group, table: Table) -> None:
    """create(), get_or_create() and update_or_create() add the object, and find existing ones."""
    made = ann.groups.create(name="Made")
    assert held() == [made.pk]
    assert ann.groups.get_or_create(name="Made") == (made, False)
    second, created = ann.groups.get_or_create({"permission_names": {"a.b"}}, name="Second")
    assert (created, second.permission_names) == (True, {"a.b"})
    assert ann.groups.update_or_create({"permission_names": {"c.d"}}, name="Second")[1] is False
    assert Group.objects.get(pk=second.pk).permission_names == {"c.d"}
    third, created = ann.groups.update_or_create(name="Third")
    assert created
    assert held() == sorted([made.pk, second.pk, third.pk])
    with pytest.raises(IntegrityError):
        ann.groups.get_or_create(name="Writers")
    count = len(stored(table))
    with pytest.raises(ValueError, match="is not stored"):
        User(username="New").groups.create(name="Fourth")
    assert len(stored(table)) == count


@pytest.mark.parametrize("method", ["add", "remove", "set", "clear", "create", "aadd", "get_or_create"])
def test_templates_change_nothing(ann: User, method: str) -> None:
    """Django's templates call no method that writes."""
    assert Template(f"{{{{ user.groups.{method} }}}}").render(Context({"user": ann})) == ""


def test_the_methods_are_asynchronous_too(ann: User, ben: User, writers: Group, readers: Group) -> None:
    """Every asynchronous method has the same effect on both sides."""

    async def use() -> None:
        await ann.groups.aadd(writers, readers)
        assert {group.pk async for group in ann.groups.all()} == {"w", "r"}
        await ann.groups.aremove(writers)
        assert await ann.groups.acount() == 1
        await ann.groups.aset([writers])
        assert await ann.groups.aget() == writers
        await ann.groups.aclear()
        assert not await ann.groups.aexists()
        made = await ann.groups.acreate(name="Made")
        assert await ann.groups.aget_or_create(name="Made") == (made, False)
        assert (await ann.groups.aupdate_or_create(name="Made"))[1] is False
        await writers.user_set.aadd(ann, ben)
        assert [user.pk async for user in writers.user_set.filter(username="Ben")] == ["2"]
        await writers.user_set.aset([ben])
        await writers.user_set.aremove(ben)
        assert await writers.user_set.acount() == 0
        await writers.user_set.aclear()

    asyncio.run(use())


# outdated objects


def test_an_outdated_user_can_join_and_leave(ann: User, writers: Group, readers: Group, table: Table) -> None:
    """Another process's change is kept: the user is read again, and the change is repeated."""
    other = User.objects.get(pk="1")
    other.groups.add(writers)
    with assert_requests([*TRANSACTION, "GetItem", *TRANSACTION]):
        ann.groups.add(readers)
    assert held() == ["r", "w"]
    other.groups.remove(writers)
    assert held() == ["r"]
    assert memberships(table) == [("1", "r")]


def test_an_object_that_shows_no_change_is_read_first(ann: User, writers: Group) -> None:
    """An addition of a known group, or a removal of an unknown one, reads the table."""
    other = User.objects.get(pk="1")
    ann.groups.add(writers)
    other.groups.remove(writers)
    assert held() == []
    with assert_requests(["GetItem"]):
        other.groups.remove(writers)
    User.objects.get(pk="1").groups.add(writers)
    ann.groups.clear()
    assert ann.group_ids is None
    ann.groups.add(writers)
    with assert_requests(["GetItem"]):
        ann.groups.add(writers)
    assert held() == ["w"]


def test_joining_keeps_what_is_not_saved_yet(ann: User, writers: Group, readers: Group) -> None:
    """Only the groups are written; other changes stay unsaved."""
    User.objects.get(pk="1").groups.add(readers)
    ann.first_name = "Anna"
    ann.groups.add(writers)
    assert User.objects.get(pk="1").first_name == ""
    assert ann.first_name == "Anna"
    ann.save()
    assert User.objects.get(pk="1").first_name == "Anna"
    assert held() == ["r", "w"]


def test_a_refused_change_leaves_the_object_as_it_was(ann: User, writers: Group) -> None:
    """The object does not contain a group that was not written."""
    with refuse("ProvisionedThroughputExceededException"), pytest.raises(exceptions.Throttled):
        ann.groups.add(writers)
    assert not ann.group_ids
    User.objects.get(pk="1").delete()
    with pytest.raises(exceptions.StaleObject, match="was deleted since it was read"):
        ann.groups.add(writers)


def test_many_writers_at_once(ann: User, table: Table) -> None:
    """Each joins another group by an object of its own, and all of them are in at the end."""
    groups = [Group.objects.create(name=f"Group {number}") for number in range(6)]
    failures: list[Exception] = []

    def join(group: Group) -> None:
        try:
            User.objects.get(pk="1").groups.add(group)
        except exceptions.DynamoSingleError as error:
            failures.append(error)

    threads = [threading.Thread(target=join, args=(group,)) for group in groups]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(held()) == 6 - len(failures)
    assert failures == []
    assert len(memberships(table)) == 6


# group.user_set


def test_members_are_read_by_key(ann: User, ben: User, writers: Group) -> None:
    """On evaluation, a Query reads the memberships and a consistent BatchGetItem the users."""
    writers.user_set.add(ann, ben)
    with assert_requests([]):
        members = writers.user_set.all()
    with assert_requests(["Query", "BatchGetItem"]) as sent:
        assert names(members) == ["Ann", "Ben"]
    assert sent[0].params["IndexName"] == "gs1"
    assert next(iter(sent[1].params["RequestItems"].values()))["ConsistentRead"] is True
    empty = Group.objects.create(name="Empty", group_id="e")
    with assert_requests(["Query"]):
        assert list(empty.user_set.all()) == []
    assert writers.user_set.count() == 2
    assert writers.user_set.exists()
    assert names(writers.user_set.filter(is_active=True)[:1]) in (["Ann"], ["Ben"])
    assert names(writers.user_set.exclude(username="Ann")) == ["Ben"]
    assert writers.user_set.get(pk="2") == ben
    assert writers.user_set.filter(is_staff=True).first() is None
    assert writers.user_set.filter(pk="1").update(first_name="A") == 1
    assert User.objects.get(pk="1").first_name == "A"


def test_members_are_looked_up_once_for_an_update(ann: User, ben: User, writers: Group) -> None:
    """A single read finds the members to write, and an invalid value raises an error before it."""
    writers.user_set.add(ann, ben)
    with assert_requests(["Query", "BatchGetItem", "UpdateItem", "UpdateItem"]):
        assert writers.user_set.update(first_name="A") == 2
    with assert_requests([]), pytest.raises(exceptions.UnknownField):
        writers.user_set.update(nickname="A")


def test_members_of_several_groups(ann: User, ben: User, writers: Group, readers: Group) -> None:
    """Querysets of members can be combined with each other; a queryset of all users raises an error."""
    writers.user_set.add(ann)
    readers.user_set.add(ann, ben)
    assert names(writers.user_set.all() | readers.user_set.all()) == ["Ann", "Ben"]
    assert names(writers.user_set.all().union(readers.user_set.all())) == ["Ann", "Ben"]
    assert names(readers.user_set.all() & writers.user_set.all()) == ["Ann"]
    assert names(readers.user_set.filter(pk="1") | readers.user_set.filter(username="Ben")) == ["Ann", "Ben"]
    assert names(readers.user_set.exclude(pk="1") | writers.user_set.none()) == ["Ben"]
    for join in (lambda one, other: one | other, lambda one, other: one & other):
        for pair in ((User.objects.all(), writers.user_set.all()), (writers.user_set.all(), User.objects.all())):
            with pytest.raises(exceptions.NotSupported, match="different kinds"):
                join(*pair)


def test_both_sides_can_be_ordered(ann: User, ben: User, writers: Group, readers: Group) -> None:
    """Members and groups that are read by key have the order of the query."""
    writers.user_set.add(ben, ann)
    ann.groups.add(readers)
    assert [user.username for user in writers.user_set.order_by("-username")] == ["Ben", "Ann"]
    assert [group.name for group in ann.groups.order_by("name")] == ["Readers", "Writers"]


def test_who_has_left_is_no_member_although_the_index_lags(ann: User, writers: Group, table: Table) -> None:
    """The user's own item decides: a membership that the index still has does not count."""
    ann.groups.add(writers)
    item = stored(table)["USER#1", "#GROUP#w"]
    ann.groups.clear()
    table.send(Request("PutItem", {"Item": item}))
    assert list(writers.user_set.all()) == []
    assert writers.user_set.count() == 0


def test_changing_members(ann: User, ben: User, writers: Group, table: Table) -> None:
    """Each joining or leaving user takes a transaction; the others are not written."""
    writers.user_set.add(ann, "2")
    assert memberships(table) == [("1", "w"), ("2", "w")]
    cleo = User.objects.create_user("Cleo", user_id="3")
    with assert_requests(["Query", "BatchGetItem", *TRANSACTION, *TRANSACTION]):
        writers.user_set.set([cleo, ann])
    assert memberships(table) == [("1", "w"), ("3", "w")]
    writers.user_set.remove(ann)
    assert names(writers.user_set.all()) == ["Cleo"]
    dan = writers.user_set.create(username="Dan", password="!")
    assert names(writers.user_set.all()) == ["Cleo", "Dan"]
    assert held(dan.pk) == ["w"]
    writers.user_set.clear()
    assert memberships(table) == []


def test_an_interrupted_change_of_members_says_who_is_in(ann: User, ben: User, writers: Group, table: Table) -> None:
    """The error names the written users and the failed one."""
    User.objects.get(pk="2").delete()
    with pytest.raises(exceptions.BulkError) as caught:
        writers.user_set.add(ann, ben)
    assert (caught.value.written, [*caught.value.failed]) == (("1",), ["2"])
    assert memberships(table) == [("1", "w")]


def test_prefetching_groups(ann: User, ben: User, writers: Group, readers: Group) -> None:
    """Users and their groups: the list's Query and one BatchGetItem for the groups of all."""
    ann.groups.add(writers, readers)
    ben.groups.add(writers)
    with assert_requests(["Query", "BatchGetItem"]):
        users = list(User.objects.prefetch_related("groups"))
        found = {user.username: sorted(group.name for group in user.groups.all()) for user in users}
    assert found == {"Ann": ["Readers", "Writers"], "Ben": ["Writers"]}
    users[1].groups.add(readers)
    assert len(users[1].groups.all()) == 2


# the models


def test_group_names_are_unique(writers: Group) -> None:
    """A second group with the name raises an error, in forms at its field; as in Django, case matters."""
    with pytest.raises(exceptions.UniqueViolation):
        Group.objects.create(name="Writers")
    with pytest.raises(ValidationError) as caught:
        Group(name="Writers").full_clean()
    assert "name" in caught.value.message_dict
    Group.objects.create(name="writers")
    assert [str(group) for group in Group.objects.all()] == ["Writers", "writers"]


def test_finding_a_group_by_name(writers: Group) -> None:
    """By the index with one Query, or by the natural key strongly consistent."""
    with assert_requests(["Query"]):
        assert Group.objects.get(name="Writers") == writers
    with assert_requests(["GetItem", "GetItem"]):
        assert Group.objects.get_by_natural_key("Writers") == writers
    assert asyncio.run(Group.objects.aget_by_natural_key("Writers")) == writers
    assert writers.natural_key() == ("Writers",)
    with pytest.raises(Group.DoesNotExist):
        Group.objects.get_by_natural_key("Nobody")


def test_a_permission_has_a_form(writers: Group) -> None:
    """Validation rejects a string that is not a permission in every form."""
    writers.permission_names = {"directory.view_company", "made.up"}
    writers.full_clean()
    for wrong in ("view_company", "a.b.c", "a. b", ".b", "a."):
        writers.permission_names = {wrong}
        with pytest.raises(ValidationError) as caught:
            writers.full_clean()
        assert f"{wrong} is not a permission" in caught.value.message_dict["permission_names"][0]


def test_a_membership_is_not_written_by_itself(ann: User, writers: Group) -> None:
    """A membership alone would not grant permissions, so saving and deleting it raise errors."""
    with pytest.raises(exceptions.NotSupported, match=r"Use user\.groups or group\.user_set"):
        Membership.objects.create(user=ann, group=writers)
    ann.groups.add(writers)
    found = Membership.objects.get(user=ann, group=writers)
    assert str(found) == "1 in w"
    with pytest.raises(exceptions.NotSupported, match="cannot be deleted by itself"):
        found.delete()
    with pytest.raises(exceptions.NotSupported, match="cannot be deleted by itself"):
        Membership.objects.filter(group=writers).delete()
    assert names(writers.user_set.all()) == ["Ann"]


def test_groups_survive_a_fixture(ann: User, writers: Group, table: Table, tmp_path: Any) -> None:
    """Loaded users are members of their groups again."""
    ann.groups.add(writers)
    path = tmp_path / "users.json"
    call_command("dumpdata", "accounts.User", "accounts.Group", output=str(path))
    ann.delete()
    writers.delete()
    assert stored(table) == {}
    call_command("loaddata", str(path), verbosity=0)
    assert names(Group.objects.get(pk="w").user_set.all()) == ["Ann"]
    assert User.objects.get(pk="1").has_perm("a.write")


def test_a_user_with_groups_can_be_pickled(ann: User, writers: Group) -> None:
    """Caches and sessions can contain the user, as in Django."""
    ann.groups.add(writers)
    assert list(pickle.loads(pickle.dumps(ann)).groups.all()) == [writers]


def test_the_descriptors_know_their_models() -> None:
    """On the classes there are the descriptors, with the models that they lead to."""
    assert (User.groups.model, User.groups.through) == (Group, Membership)
    assert (Group.user_set.model, Group.user_set.through) == (User, Membership)
    assert issubclass(Group, AbstractGroup)
    assert issubclass(Membership, AbstractMembership)
    assert AbstractUser.groups is None
    nowhere = GroupsDescriptor("Nowhere")
    nowhere.__set_name__(User, "groups")
    with pytest.raises(
        exceptions.ConfigurationError, match=r"accounts\.User\.groups = Groups\('Nowhere'\): there is no"
    ):
        _ = nowhere.model


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        (Q(name__istartswith="ED"), ["Editors", "editing"]),
        (Q(name__icontains="ING"), ["editing"]),
        (Q(name__iexact="WRITERS"), ["writers"]),
        (~Q(name__istartswith="ed"), ["writers"]),
        (Q(name__istartswith="ed") & Q(name="editing"), ["editing"]),
        (Q(name__istartswith="w") | Q(name="Editors"), ["Editors", "writers"]),
        (Q(name__istartswith="x"), []),
    ],
)
def test_names_of_a_users_groups_are_compared_without_case(ann: User, condition: Q, found: list[str]) -> None:
    """The comparison in memory reads only this user's groups."""
    for name in ("Editors", "editing", "writers"):
        ann.groups.add(Group.objects.create(name=name))
    Group.objects.create(name="edges")
    assert sorted(group.name for group in ann.groups.filter(condition)) == sorted(found)
    assert ann.groups.filter(condition).count() == len(found)


def test_comparing_names_without_case_reads_the_groups_once(ann: User) -> None:
    """One BatchGetItem reads all groups of the user."""
    ann.groups.add(*(Group.objects.create(name=name) for name in ("Editors", "editing", "writers")))
    with assert_requests(["BatchGetItem"]):
        assert len(ann.groups.filter(name__istartswith="ed")) == 2


def test_names_of_all_groups_are_not_compared_without_case(table: Table) -> None:
    """Only a user's own groups are few."""
    with pytest.raises(exceptions.NotSupported, match="CanonicalAttribute"):
        list(Group.objects.filter(name__istartswith="ed"))
