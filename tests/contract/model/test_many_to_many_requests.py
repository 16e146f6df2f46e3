"""The number of requests of many-to-many managers, and the equality of their writes with single edges."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from django.db.models.signals import m2m_changed, post_delete, pre_delete
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_single import transactions
from dynamo_single.costs import measure_requests
from dynamo_single.exceptions import BulkError, DynamoSingleError, MissingReference
from dynamo_single.table import Request, Table, get_table
from dynamo_single.testing import assert_requests, capture_requests, intercept
from tests.catalog.servers import GameFan, GameGuild, GameMember, GamePlayer, GameServer, GameTag
from tests.contract.clubs import items
from tests.contract.racing import before_write
from tests.contract.robustness.crashing import Crash, crash_behind
from tests.contract.tables import assert_consistent
from tests.deep import examples

pytestmark = pytest.mark.usefixtures("table")

NUMBER = 110


def plain(number: int) -> tuple[Any, Sequence[Any]]:
    """Edges from which nothing follows."""
    server = GameServer.objects.create(server_id="1", name="Gaming")
    return server.tags, GameTag.objects.bulk_create([GameTag(word=f"{each:03}") for each in range(number)])


def copying(number: int) -> tuple[Any, Sequence[Any]]:
    """Edges that copy a name."""
    server = GameServer.objects.create(server_id="1", name="Gaming")
    made = [GamePlayer(player_id=f"{each:03}", username=f"name {each}") for each in range(number)]
    return server.players, GamePlayer.objects.bulk_create(made)


def checked(number: int) -> tuple[Any, Sequence[Any]]:
    """Edges that both sides count."""
    guild = GameGuild.objects.create(guild_id="1")
    return guild.fans, GameFan.objects.bulk_create([GameFan(fan_id=f"{each:03}") for each in range(number)])


KINDS: dict[str, Callable[[int], tuple[Any, Sequence[Any]]]] = {
    "plain": plain,
    "copying": copying,
    "checked": checked,
}


@pytest.mark.parametrize(
    ("kind", "add", "remove", "clear"),
    [
        # 50 edges with the checks of their names, and 100 edges without
        ("copying", ["BatchGetItem"] * 2 + ["TransactWriteItems"] * 3, 1, 2),
        # 49 edges with their fans' counts, and the guild's: two of the first hundred remain for a transaction
        ("checked", ["TransactWriteItems"] * 4, 1, 4),
    ],
)
def test_edges_with_effects_are_packed(kind: str, add: list[str], remove: int, clear: int) -> None:
    manager, objects = KINDS[kind](NUMBER)
    with assert_requests(add):
        manager.add(*objects)
    with assert_requests(["BatchGetItem", *["TransactWriteItems"] * remove]):
        manager.remove(*objects[:40])
    with assert_requests(["Query", "BatchGetItem", *["TransactWriteItems"] * remove]):
        manager.set(objects[50:])
    manager.add(*objects)
    with assert_requests(["Query", *["TransactWriteItems"] * clear]):
        manager.clear()
    assert manager.count() == 0
    assert_consistent()


def test_plain_edges_are_deleted_25_a_request() -> None:
    manager, objects = plain(NUMBER)
    manager.add(*objects)
    with assert_requests(["BatchGetItem", "BatchWriteItem", "BatchWriteItem"]):
        manager.remove(*objects[:40])
    with assert_requests(["Query", "DeleteItem"]):
        manager.set(objects[41:])
    with assert_requests(["Query", *["BatchWriteItem"] * 3]):
        manager.clear()
    assert manager.count() == 0
    assert GameTag.objects.count() == NUMBER


def test_packed_deletion_of_plain_edges_costs_no_more() -> None:
    manager, objects = plain(30)
    manager.add(*objects)
    with measure_requests() as packed:
        manager.clear()
    manager.add(*objects)
    with measure_requests() as single:
        for edge in GameServer.tags.through.objects.filter(gameserver_id="1"):
            edge.delete()
    assert packed.write_units == single.write_units


@pytest.mark.parametrize("change", ["add", "remove", "clear"])
def test_counter_changes_once_a_request_in_order(change: str, table: Table) -> None:
    """Parallel transactions that change one item conflict, so they are sent sequentially."""
    manager, objects = checked(NUMBER)
    if change != "add":
        manager.add(*objects)
    threads = set()

    def interceptor(operation: str, params: Mapping[str, Any]) -> None:
        if operation == "TransactWriteItems":
            threads.add(threading.get_ident())

    with intercept(interceptor), capture_requests() as sent:
        getattr(manager, change)(*(() if change == "clear" else objects))
    written = [
        Counter(entry["Update"]["Key"]["pk"]["S"] for entry in each.params["TransactItems"] if "Update" in entry)
        for each in sent
        if each.operation == "TransactWriteItems"
    ]
    assert [keys["GAMEGUILD#1"] for keys in written] == [1, 1, 1, 1]
    assert all(number == 1 for keys in written for number in keys.values())
    assert threads == {threading.get_ident()}


@contextmanager
def deletions(model: Any) -> Iterator[list[str]]:
    """The signals of deletions."""
    told: list[str] = []

    def before(instance: Any, **_: object) -> None:
        told.append(f"pre {instance.pk}")

    def after(instance: Any, **_: object) -> None:
        told.append(f"post {instance.pk}")

    pre_delete.connect(before, sender=model)
    post_delete.connect(after, sender=model)
    try:
        yield told
    finally:
        pre_delete.disconnect(before, sender=model)
        post_delete.disconnect(after, sender=model)


def test_receivers_hear_of_each_edge_of_a_declared_model() -> None:
    manager, objects = copying(3)
    manager.add(*objects)
    with deletions(manager.through) as told:
        manager.remove(objects[0])
        manager.clear()
    assert told == [f"{when} 1~~{number:03}" for number in range(3) for when in ("pre", "post")]
    assert_consistent()


@pytest.mark.parametrize("kind", ["plain", "checked"])
def test_receivers_hear_of_no_edge_of_a_created_model(kind: str) -> None:
    """As in Django. A receiver of all models does not prevent packed edges."""
    manager, objects = KINDS[kind](40)
    with deletions(None) as told:
        manager.add(*objects)
        with assert_requests(2 + (kind == "plain")):
            manager.clear()
        manager.through(**{manager.end.near.attname: "1", manager.end.far.attname: "000"}).save()
        manager.remove(objects[0])
    assert told == []
    assert_consistent()


@pytest.mark.parametrize("kind", [*KINDS])
def test_many_edges_are_announced_together(kind: str) -> None:
    """``m2m_changed`` is sent once before and once after, as in Django."""
    manager, objects = KINDS[kind](60)
    heard: list[Any] = []

    def receive(action: str, pk_set: Any, **_: object) -> None:
        heard.append((action, None if pk_set is None else len(pk_set), manager.count()))

    m2m_changed.connect(receive, sender=manager.through)
    try:
        manager.add(*objects)
        manager.remove(*objects[:10])
        manager.clear()
    finally:
        m2m_changed.disconnect(receive, sender=manager.through)
    assert heard == [
        ("pre_add", 60, 0),
        ("post_add", 60, 60),
        ("pre_remove", 10, 60),
        ("post_remove", 10, 50),
        ("pre_clear", None, 50),
        ("post_clear", None, 0),
    ]


@pytest.mark.parametrize("kind", [*KINDS])
def test_edges_that_another_process_deletes_are_left_out(kind: str) -> None:
    """They are deleted between the read and the write, without a request for each."""
    manager, objects = KINDS[kind](60)
    manager.add(*objects)
    others = type(manager.instance).objects.get(pk="1")
    other = getattr(others, manager.end.name)

    def act() -> None:
        other.remove(*objects[::2])

    if kind == "plain":
        with intercept(_once("BatchWriteItem", act)):
            manager.clear()
    else:
        with before_write(1, act), capture_requests() as sent:
            manager.clear()
        assert len([each for each in sent if each.operation == "TransactWriteItems"]) <= 6
    assert manager.count() == 0
    assert_consistent()


def _once(wanted: str, act: Callable[[], object]) -> Callable[[str, Mapping[str, Any]], None]:
    done: list[bool] = []

    def interceptor(operation: str, params: Mapping[str, Any]) -> None:
        if operation == wanted and not done:
            done.append(True)
            act()

    return interceptor


def test_edges_left_out_by_the_table_are_repeated() -> None:
    """DynamoDB may return a part of a batch as unprocessed."""
    manager, objects = plain(20)
    manager.add(*objects)
    answered: list[int] = []

    def interceptor(operation: str, params: Any) -> Any:
        if operation != "BatchWriteItem" or answered:
            return None
        ((name, writes),) = params["RequestItems"].items()
        answered.append(len(writes))
        get_table().send(Request("BatchWriteItem", {"RequestItems": {name: writes[:5]}}))
        return {"UnprocessedItems": {name: writes[5:]}}

    with intercept(interceptor), capture_requests() as sent:
        manager.clear()
    assert answered == [20]
    assert len(sent[-1].params["RequestItems"][get_table().name]) == 15
    assert manager.count() == 0


def test_failed_batch_names_its_edges_and_is_completed() -> None:
    manager, objects = plain(60)
    manager.add(*objects)
    batches: list[str] = []

    def interceptor(operation: str, params: Any) -> None:
        if operation == "BatchWriteItem":
            batches.append(operation)
            if len(batches) > 1:
                raise DynamoSingleError("No more.")

    with intercept(interceptor), pytest.raises(BulkError) as raised:
        manager.clear()
    assert len(raised.value.written) == 25
    assert manager.count() == 35
    manager.clear()
    assert manager.count() == 0


@pytest.mark.parametrize("kind", [*KINDS])
@pytest.mark.parametrize("change", ["add", "remove", "clear", "set"])
def test_change_that_is_killed_is_completed_when_repeated(kind: str, change: str, table: Table) -> None:
    """After any of its requests."""
    manager, objects = KINDS[kind](NUMBER)
    if change != "add":
        manager.add(*objects)
    given = {"add": objects, "remove": objects[:105], "clear": (), "set": ([],)}[change]
    kill = 1
    while True:
        try:
            with crash_behind(kill):
                getattr(manager, change)(*given)
            break
        except Crash:
            assert_consistent()
            kill += 1 if kind != "plain" or change != "add" else 40
    assert manager.count() == {"add": NUMBER, "remove": 5, "clear": 0, "set": 0}[change]
    assert_consistent()


CHANGES = st.lists(
    st.tuples(st.sampled_from(["add", "remove", "set", "clear"]), st.sets(st.integers(0, 4))), min_size=1, max_size=6
)


@pytest.mark.parametrize("kind", [*KINDS])
@settings(max_examples=examples(6, 400))
@given(CHANGES)
def test_changes_leave_what_single_edges_leave(kind: str, changes: list[tuple[str, set[int]]]) -> None:
    """Items and counts are the same as after separate creations and deletions of edges."""
    found = []
    for one_by_one in (False, True):
        table = get_table()
        for partition, sort in items(table):
            table.send(Request("DeleteItem", {"Key": {"pk": {"S": partition}, "sk": {"S": sort}}}))
        manager, objects = KINDS[kind](5)
        for change, numbers in changes:
            chosen = [objects[number] for number in sorted(numbers)]
            if one_by_one:
                singly(manager, change, chosen)
            elif change == "set":
                manager.set(chosen)
            else:
                getattr(manager, change)(*(() if change == "clear" else chosen))
        found.append({key: without_zero(item) for key, item in items(table).items()})
    assert found[0] == found[1]


def singly(manager: Any, change: str, chosen: Sequence[Any]) -> None:
    """Make the same change with single edges."""
    edges = manager.through.objects
    near, far = manager.end.near.attname, manager.end.far.attname
    there = {getattr(edge, far): edge for edge in edges.filter(**{near: "1"})}
    wanted = {obj.pk for obj in chosen}
    for pk in wanted - there.keys() if change in ("add", "set") else ():
        edges.create(**{near: "1", far: pk})
    gone = {"remove": wanted, "set": there.keys() - wanted, "clear": there.keys(), "add": set()}[change]
    for pk in gone & there.keys():
        there[pk].delete()


def without_zero(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item without counts of nothing, which a removed edge leaves."""
    return {name: value for name, value in item.items() if value != {"N": "0"}}


# what new objects copy


def test_sources_of_many_objects_are_read_together() -> None:
    _, objects = copying(120)
    edges = [GameMember(server_id="1", player=player) for player in objects]
    with assert_requests(["BatchGetItem", "BatchGetItem", *["TransactWriteItems"] * 3]):
        GameMember.objects.bulk_create(edges, in_transactions=True)
    assert [edge.username for edge in edges] == [player.username for player in objects]
    assert_consistent()


def test_source_of_many_objects_is_read_once() -> None:
    _, (player,) = copying(1)
    edges = [GameMember(server_id=str(number), player=player) for number in range(30)]
    with assert_requests(["GetItem", "TransactWriteItems"]):
        GameMember.objects.bulk_create(edges, in_transactions=True)
    assert {edge.username for edge in edges} == {player.username}


def test_missing_source_among_many_is_reported(table: Table) -> None:
    _, objects = copying(3)
    before = items(table)
    with pytest.raises(MissingReference, match="'nobody'"):
        GameMember.objects.bulk_create(
            [GameMember(server_id="1", player_id=pk) for pk in (objects[0].pk, "nobody", objects[2].pk)]
        )
    assert items(table) == before


def test_source_that_changes_before_the_write_is_read_again() -> None:
    manager, objects = copying(5)
    player = GamePlayer.objects.get(pk=objects[3].pk)

    def rename() -> None:
        player.username = "New"
        player.save()

    with before_write(1, rename):
        manager.add(*objects)
    assert GameMember.objects.get(pk=f"1~~{player.pk}").username == "New"
    assert_consistent()


def test_source_that_a_block_writes_is_not_read() -> None:
    _, objects = copying(3)
    with transactions.atomic(), assert_requests(["Query", "BatchGetItem"]):
        objects[0].username = "New"
        objects[0].save()
        made = GameMember.objects.bulk_create([GameMember(server_id="1", player=player) for player in objects])
    assert [edge.username for edge in made] == ["New", "name 1", "name 2"]
    assert_consistent()
