"""Many-to-many relations on the real engine, with declared and generated edges."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from typing import Any

import pytest
from django import forms
from django.core import serializers
from django.core.management import call_command
from django.db.models.signals import m2m_changed
from django.template import Context, Template

from dynamo_single import models, transactions
from dynamo_single.exceptions import NotSupported
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests
from tests.catalog.servers import GameMember, GamePlayer, GameServer, GameTag
from tests.contract.clubs import items
from tests.contract.tables import assert_consistent
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.usefixtures("table")


@pytest.fixture
def gaming(table: Table) -> Any:
    """Return a server without users."""
    return GameServer.objects.create(server_id="1", name="Gaming")


@pytest.fixture
def john(table: Table) -> Any:
    """A player on no server."""
    return GamePlayer.objects.create(player_id="1", username="John")


@pytest.fixture
def tags(table: Table) -> list[Any]:
    """Three words."""
    return [GameTag.objects.create(word=word) for word in ("fun", "new", "old")]


@contextmanager
def told(sender: Any) -> Iterator[list[Any]]:
    """Return the data of ``m2m_changed``."""
    found: list[Any] = []

    def receive(sender: Any, instance: Any, action: str, reverse: bool, model: Any, pk_set: Any, **_: Any) -> None:
        found.append((action, instance.pk, reverse, model.__name__, pk_set if pk_set is None else sorted(pk_set)))

    m2m_changed.connect(receive, sender=sender)
    try:
        yield found
    finally:
        m2m_changed.disconnect(receive, sender=sender)


# declared edges


def test_related_objects_have_the_mode_of_their_owner(gaming: Any, john: Any) -> None:
    gaming.players.add(john)
    found = GameServer.objects.fetch_mode(models.FETCH_PEERS).get(pk="1")
    assert [player._state.fetch_mode for player in found.players.all()] == [models.FETCH_PEERS]


def test_both_sides_are_a_query_and_a_batch(gaming: Any, john: Any) -> None:
    gaming.players.add(john, GamePlayer.objects.create(player_id="2", username="Mike"))
    john.servers.add(GameServer.objects.create(server_id="2", name="Chess"))
    with assert_requests(["Query", "BatchGetItem"]):
        assert [player.username for player in gaming.players.all()] == ["John", "Mike"]
    with assert_requests(["Query", "BatchGetItem"]):
        assert [server.name for server in john.servers.all()] == ["Gaming", "Chess"]
    with assert_requests(["Query"]):
        assert [member.username for member in GameMember.objects.filter(server=gaming)] == ["John", "Mike"]


def test_an_edge_is_added_with_what_it_copies_and_what_it_is_given(gaming: Any, john: Any, table: Table) -> None:
    with assert_requests(["GetItem", "TransactWriteItems"]):
        gaming.players.add(john, through_defaults={"role": "admin"})
    edge = items(table)["SERVER#1", "PLAYER#1"]
    assert {name: edge[name]["S"] for name in ("role", "username", "gs1pk", "gs1sk")} == {
        "role": "admin",
        "username": "John",
        "gs1pk": "MEMBERSOF#1",
        "gs1sk": "1",
    }
    assert_consistent()


def test_what_is_there_already_stays_as_it_is(gaming: Any, john: Any) -> None:
    gaming.players.add(john, through_defaults={"role": "admin"})
    gaming.players.add(john, john.pk, through_defaults={"role": "guest"})
    assert GameMember.objects.get(pk="1~~1").role == "admin"


def test_counting_and_asking_read_the_edges(gaming: Any, john: Any) -> None:
    gaming.players.add(john)
    with assert_requests(["Query"]):
        assert gaming.players.count() == 1
    assert gaming.players.filter(username="John").exists()
    assert not gaming.players.filter(username="Mike").exists()
    assert gaming.players.get(pk="1") == john
    with pytest.raises(GamePlayer.DoesNotExist):
        gaming.players.get(pk="2")


def test_edges_are_removed_and_cleared(gaming: Any, john: Any) -> None:
    mike = GamePlayer.objects.create(player_id="2", username="Mike")
    gaming.players.add(john, mike)
    gaming.players.remove(john, "nobody")
    assert list(gaming.players.all()) == [mike]
    mike.servers.clear()
    assert list(gaming.players.all()) == []
    assert GamePlayer.objects.count() == 2


def test_exactly_what_is_set_is_there(gaming: Any, john: Any) -> None:
    mike, ann = (GamePlayer.objects.create(player_id=pk, username=pk) for pk in ("2", "3"))
    gaming.players.add(john, mike, through_defaults={"role": "old"})
    gaming.players.set([mike.pk, ann])
    roles = {member.player_id: member.role for member in GameMember.objects.filter(server=gaming)}
    assert roles == {"2": "old", "3": "member"}
    gaming.players.set([ann], clear=True)
    assert list(gaming.players.all()) == [ann]


def test_an_object_is_created_on_the_other_side(gaming: Any, john: Any) -> None:
    made = gaming.players.create(username="Ann", through_defaults={"role": "admin"})
    assert GameMember.objects.get(server=gaming, player=made).role == "admin"
    chess = john.servers.create(name="Chess")
    assert list(chess.players.all()) == [john]


def test_related_objects_are_prefetched_on_both_sides(gaming: Any, john: Any) -> None:
    mike = GamePlayer.objects.create(player_id="2", username="Mike")
    chess = GameServer.objects.create(server_id="2", name="Chess")
    gaming.players.add(john, mike)
    chess.players.add(john)
    with assert_requests(["Query", "Query", "Query", "BatchGetItem"]):
        servers = list(GameServer.objects.prefetch_related("players").order_by("name"))
        found = {server.name: sorted(map(str, server.players.all())) for server in servers}
    assert found == {"Chess": ["John"], "Gaming": ["John", "Mike"]}
    with assert_requests([]):
        assert servers[1].players.count() == 2
    (one, two) = GamePlayer.objects.prefetch_related("servers").order_by("username")
    assert (len(one.servers.all()), len(two.servers.all())) == (2, 1)
    servers[1].players.remove(john)
    assert list(servers[1].players.all()) == [mike]


def test_listeners_hear_what_really_changes(gaming: Any, john: Any) -> None:
    mike = GamePlayer.objects.create(player_id="2", username="Mike")
    gaming.players.add(john)
    with told(GameMember) as heard:
        gaming.players.add(john, mike)
        john.servers.remove(gaming)
        gaming.players.clear()
        gaming.players.add()
    assert heard == [
        ("pre_add", "1", False, "GamePlayer", ["2"]),
        ("post_add", "1", False, "GamePlayer", ["2"]),
        ("pre_remove", "1", True, "GameServer", ["1"]),
        ("post_remove", "1", True, "GameServer", ["1"]),
        ("pre_clear", "1", False, "GamePlayer", None),
        ("post_clear", "1", False, "GamePlayer", None),
    ]


def test_what_is_not_stored_or_of_another_kind_is_refused(gaming: Any, john: Any, table: Table) -> None:
    before = items(table)
    with pytest.raises(GamePlayer.DoesNotExist, match=r"No catalog.GamePlayer has pk 'nobody'"):
        gaming.players.add(john, "nobody")
    with pytest.raises(TypeError, match="'GamePlayer' instance expected"):
        gaming.players.add(gaming)
    with pytest.raises(ValueError, match="it is not stored"):
        gaming.players.add(GamePlayer(username="x"))
    with pytest.raises(NotSupported, match=r"in an atomic\(\) block, because"), transactions.atomic():
        gaming.players.add(john)
    with pytest.raises(TypeError, match=r"Use players\.set\(\) instead"):
        gaming.players = [john]
    with pytest.raises(GameServer.DoesNotExist):
        john.servers.add("nowhere")
    assert items(table) == before


@pytest.mark.parametrize("change", ["add", "set", "create", "get_or_create", "update_or_create"])
def test_an_object_that_is_not_stored_gets_no_edges(john: Any, table: Table, change: str) -> None:
    """This applies to both sides; a stored object may be given by its ``pk``, for a GetItem."""
    chess = GameServer(name="Chess")
    given: Any = {"add": (john,), "set": ([john],)}.get(change, ())
    options = {} if given else {"username": "Ann"}
    before = items(table)
    with pytest.raises(ValueError, match=r"Cannot change players of catalog.GameServer .*, which is not stored"):
        getattr(chess.players, change)(*given, **options)
    assert items(table) == before
    chess.save()
    with assert_requests(["GetItem", "GetItem", "TransactWriteItems"]):
        GamePlayer(player_id=john.pk).servers.add(chess)
    assert list(chess.players.all()) == [john]


def test_a_question_through_the_relation_is_refused_with_the_way_out(john: Any) -> None:
    with pytest.raises(NotSupported, match=r"filter\(pk__in=GameMember.objects.filter\(player=...\)"):
        list(GameServer.objects.filter(players=john))


def test_deleting_one_side_takes_the_edges_along(gaming: Any, john: Any, table: Table) -> None:
    gaming.players.add(john)
    before = {key for key in items(table) if key[0].startswith("PLAYER")}
    assert gaming.delete() == (2, {"catalog.GameServer": 1, "catalog.GameMember": 1})
    assert items(table).keys() == before
    assert_consistent()


def test_renaming_follows_into_the_edges(gaming: Any, john: Any) -> None:
    gaming.players.add(john)
    john.username = "Jack"
    john.save()
    assert [member.username for member in GameMember.objects.filter(server=gaming)] == ["Jack"]


def test_the_asynchronous_twins_do_the_same(gaming: Any, john: Any) -> None:
    async def steps() -> list[Any]:
        await gaming.players.aadd(john)
        found = [await gaming.players.acount(), [str(each) async for each in gaming.players.all()]]
        await gaming.players.aset([])
        made = await gaming.players.acreate(username="Ann")
        await gaming.players.aremove(made)
        await gaming.players.aclear()
        return [*found, await gaming.players.acount()]

    assert asyncio.run(steps()) == [1, ["John"], 0]


# generated edges


def test_edges_that_nobody_declared_are_stored_as_documented(gaming: Any, tags: list[Any], table: Table) -> None:
    with assert_requests(["PutItem"]):
        gaming.tags.add(tags[0])
    assert items(table)["GameServer_tags#1", "fun"] == {
        "pk": {"S": "GameServer_tags#1"},
        "sk": {"S": "fun"},
        "gs1pk": {"S": "GameServer_tags#TO#fun"},
        "gs1sk": {"S": "1"},
        "itemType": {"S": "GameServer_tags"},
        "gameserver_id": {"S": "1"},
        "gametag_id": {"S": "fun"},
    }
    assert list(tags[0].servers.all()) == [gaming]
    assert gaming.delete()[0] == 2
    assert not tags[0].servers.exists()


def test_a_model_relates_to_itself_by_its_two_sides(gaming: Any) -> None:
    chess = GameServer.objects.create(name="Chess")
    gaming.links.add(chess)
    assert list(gaming.links.all()) == [chess]
    assert list(chess.linked_from.all()) == [gaming]
    assert list(chess.links.all()) == []


class ServerForm(forms.ModelForm):  # type: ignore[type-arg]
    """The form of a server with its tags."""

    class Meta:
        model = GameServer
        fields = ("name", "tags")


def test_a_form_chooses_and_saves(gaming: Any, tags: list[Any]) -> None:
    form = ServerForm({"name": "Games", "tags": ["fun", "old"]}, instance=gaming)
    assert form.is_valid(), form.errors
    form.save()
    assert {tag.word for tag in gaming.tags.all()} == {"fun", "old"}
    again = ServerForm(instance=GameServer.objects.get(pk="1"))
    assert {tag.word for tag in again.initial["tags"]} == {"fun", "old"}
    assert again["tags"].as_widget().count("selected") == 2
    wrong = ServerForm({"name": "Games", "tags": ["nothing"]}, instance=gaming)
    assert wrong.errors == {"tags": ["Select a valid choice. nothing is not one of the available choices."]}


def test_a_fixture_holds_the_edges_with_their_object_in_any_order(gaming: Any, tags: list[Any], table: Table) -> None:
    gaming.tags.add(*tags)
    before = items(table)
    out = StringIO()
    call_command("dumpdata", "catalog.GameServer", "catalog.GameTag", stdout=out)
    assert [each["fields"].get("tags") for each in json.loads(out.getvalue())] == [["fun", "new", "old"], *[None] * 3]
    gaming.delete()
    for tag in tags:
        tag.delete()
    assert items(table) == {}
    for each in serializers.deserialize("json", out.getvalue()):
        each.save()
    assert items(table) == before


def test_what_the_relation_gives_is_ordered_sliced_and_paged(gaming: Any, john: Any) -> None:
    for name in "cab":
        john.servers.add(GameServer.objects.create(server_id=f"{name}{name}", name=name))
    assert [server.name for server in john.servers.order_by("-pk")] == ["c", "b", "a"]
    assert [server.name for server in john.servers.allow_in_memory(10).order_by("name")] == ["a", "b", "c"]
    assert [server.name for server in john.servers.order_by("pk")[:2]] == ["a", "b"]
    assert sorted(john.servers.exclude(name="a").values_list("name", flat=True)) == ["b", "c"]
    assert len(john.servers.page(2)) == 2


@pytest.fixture
def courses(table: Table) -> Iterator[Any]:
    """Return a pupil with two courses, one in the trash, and the class of courses."""
    with forgotten():
        pupil = declare("Pupil", ("PUPIL#{pupil_id}", "#METADATA"), pupil_id=models.IdAttribute())
        course = declare(
            "Course",
            ("COURSE#{course_id}", "#METADATA"),
            bases=(models.SoftDeleteModel,),
            course_id=models.IdAttribute(),
            pupils=models.ManyToMany(pupil, related_name="courses"),
        )
        ann = pupil.objects.create(pupil_id="ann")
        ann.courses.add(*[course.objects.create(course_id=pk) for pk in "123"])
        course.objects.get(pk="1").delete()
        yield ann, course


def test_what_is_in_the_trash_is_hidden_and_shown_by_the_managers_that_do(courses: Any) -> None:
    ann, course = courses
    assert [each.pk for each in ann.courses.all()] == ["2", "3"]
    assert ann.courses.count() == 2
    assert [each.pk for each in ann.courses(manager="all_objects").all()] == ["1", "2", "3"]
    assert [each.pk for each in ann.courses(manager="deleted_objects").all()] == ["1"]
    (found,) = type(ann).objects.filter(pk="ann").prefetch_related("courses")
    assert [each.pk for each in found.courses.all()] == ["2", "3"]
    course.deleted_objects.get(pk="1").restore()
    assert ann.courses.count() == 3


def test_setting_what_is_shown_leaves_the_edges_to_what_is_in_the_trash(courses: Any) -> None:
    """A form offers and submits only live objects; a restored one is related as before."""
    ann, course = courses
    with assert_requests(["GetItem", "Query", "BatchGetItem", "DeleteItem"]):
        ann.courses.set(["2"])
    course.deleted_objects.get(pk="1").restore()
    assert [each.pk for each in ann.courses.all()] == ["1", "2"]
    ann.courses.set([], clear=True)
    assert ann.courses.count() == 0


def test_templates_read_both_sides(gaming: Any, john: Any) -> None:
    gaming.players.add(john)
    page = Template("{{ server.players.all.0 }}, {{ server.players.count }}: {{ john.servers.all.0 }}")
    assert page.render(Context({"server": gaming, "john": john})) == "John, 1: Gaming"


def test_what_is_related_may_have_a_number_or_a_pk_of_several_parts(table: Table) -> None:
    with forgotten():
        seat = declare(
            "Stool", ("STOOL#{bar}", "{number}"), bar=models.UnicodeAttribute(), number=models.IntegerAttribute()
        )
        drink = declare("Drink", ("DRINK#{code}", "#METADATA"), code=models.IntegerAttribute())
        guest = declare(
            "Drinker",
            ("DRINKER#{guest_id}", "#METADATA"),
            guest_id=models.IdAttribute(),
            stools=models.ManyToMany(seat, related_name="guests"),
            drinks=models.ManyToMany(drink, related_name="guests"),
        )
        ann = guest.objects.create(guest_id="a#1")
        stools = [seat.objects.create(bar="b~#", number=number) for number in (1, -2)]
        drinks = [drink.objects.create(code=code) for code in (7, 8)]
        ann.stools.add(*stools)
        ann.drinks.set([7, "8"])
        assert sorted(each.number for each in ann.stools.all()) == [-2, 1]
        assert [each.code for each in ann.drinks.all()] == [7, 8]
        assert list(stools[1].guests.all()) == list(drinks[0].guests.all()) == [ann]
        ann.stools.remove(stools[0].pk)
        assert ann.stools.count() == 1
        assert ann.delete()[0] == 4
        assert stools[1].guests.count() == 0
