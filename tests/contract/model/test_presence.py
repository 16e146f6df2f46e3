"""A process sends its presence item and reads the state, but only while it works."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec import json
from msgspec.structs import replace

from dynamo_single import counters
from dynamo_single.exceptions import AccessDenied
from dynamo_single.orm.effects import send
from dynamo_single.orm.items.form import item_of
from dynamo_single.orm.requests.compiler import item_key
from dynamo_single.orm.rollout import knowledge, presence, states
from dynamo_single.table import Request, Table, intercept, lease
from dynamo_single.table.flow import run
from dynamo_single.testing import assert_requests
from tests.catalog.clubs import Club
from tests.catalog.models import Sample
from tests.catalog.records import Slip
from tests.catalog.servers import GameMember, GamePlayer, GameServer, GameTag
from tests.contract.model.test_filled import FORM, LAYOUT, MIGRATED

#: The requests of a process before its first one: register, read the state, and report its revision.
BEGUN = ["UpdateItem", "GetItem", "UpdateItem"]


@pytest.fixture
def served(table: Table, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Table]:
    """A table of a project with migrations, which is no test table."""
    settings.MIGRATION_MODULES = MIGRATED
    change(table)
    monkeypatch.setattr(table, "replaced", 0)
    knowledge._tables.clear()
    knowledge.forget()
    yield table
    end(table)
    knowledge._tables.clear()
    knowledge.forget()


def change(table: Table, **changes: Any) -> states.TableState:
    """Record a schema of clubs, like ``migrate``; ``synonyms`` do not affect code."""
    return knowledge.change(table, lambda state: state.with_form(LAYOUT.item_type, replace(FORM, **changes)))


def end(table: Table) -> None:
    """End this process, as far as the table sees it."""
    known = knowledge._tables.get(table)
    if known is not None and known.presence is not None:
        known.presence.end(table)


def processes(table: Table) -> list[dict[str, Any]]:
    """The presence items of a table."""
    items = table.send(Request("Scan", {"ConsistentRead": True}))["Items"]
    return [item for item in items if item["sk"]["S"].startswith(states.PROCESS)]


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Let seconds pass by the clock of leases."""
    begun, original = [0.0], time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: original() + begun[0])

    def wait(seconds: float) -> None:
        begun[0] += seconds

    return wait


def test_process_begins_with_three_requests(served: Table) -> None:
    """The process registers before it reads, and reports its revision before its first request."""
    with assert_requests([*BEGUN, "Query", "Query"]):
        for _ in range(2):
            assert list(Club.objects.all()) == []


def test_presence_item_names_the_process(served: Table) -> None:
    """Its revision and its code."""
    list(Club.objects.all())
    (item,) = processes(served)
    assert item["sk"]["S"].split("#")[2] == str(os.getpid())
    assert (item[presence.HEARD], item[presence.UNDER_WAY]) == ({"N": "1"}, {"N": "1"})
    assert item[presence.CODE]["M"]["catalog"] == {"S": "0003_name"}
    assert int(item["expiresAt"]["N"]) > time.time() + presence.KEPT - 60


def test_process_that_works_reads_the_state_twice_a_lease(served: Table, passed: Callable[[float], None]) -> None:
    """The process sends one GetItem per half lease, for any number of operations."""
    list(Club.objects.all())
    for _ in range(3):
        passed(knowledge.LOCAL_LEASE / 2 + 0.01)
        with assert_requests(["GetItem", "Query", "Query"]):
            assert list(Club.objects.all()) == list(Club.objects.all()) == []


def test_idle_process_sends_nothing(served: Table, passed: Callable[[float], None]) -> None:
    """Its lease ends in the meantime. The next operation reads the state once."""
    list(Club.objects.all())
    with assert_requests(0):
        passed(3600)
    with assert_requests(["GetItem", "Query"]):
        assert list(Club.objects.all()) == []


def test_new_revision_is_answered_once(served: Table) -> None:
    """A GetItem and an UpdateItem, and the query goes by the new revision."""
    list(Club.objects.all())
    change(served, synonyms={"later": "earlier"})
    with assert_requests(["GetItem", "UpdateItem", "Query", "Query"]):
        assert list(Club.objects.all()) == list(Club.objects.all()) == []
    (item,) = processes(served)
    assert item[presence.HEARD] == {"N": "2"}


def test_presence_item_ends_with_the_process(served: Table) -> None:
    """A DeleteItem, and once only."""
    list(Club.objects.all())
    with assert_requests(["DeleteItem"]):
        end(served)
        end(served)
    assert processes(served) == []


def test_forgotten_process_registers_again(served: Table) -> None:
    """The process was silent during a bump: its item is gone when it reports the new revision."""
    list(Club.objects.all())
    (item,) = processes(served)
    served.send(Request("DeleteItem", {"Key": {name: item[name] for name in ("pk", "sk")}}))
    change(served, synonyms={"later": "earlier"})
    with assert_requests(["GetItem", "UpdateItem", *BEGUN, "Query"]):
        assert list(Club.objects.all()) == []
    (found,) = processes(served)
    assert found[presence.HEARD] == {"N": "2"}


@pytest.fixture
def outlasted(passed: Callable[[float], None], monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The requests of an operation that lasts a lease longer with each BatchWriteItem; leases do end."""
    monkeypatch.setattr(lease, "monotonic", lambda: time.monotonic())
    sent: list[str] = []

    def wait(operation: str, params: Any) -> None:
        sent.append(operation)
        if operation == "BatchWriteItem":
            passed(knowledge.LOCAL_LEASE + 1)

    with intercept(wait):
        yield sent


def test_bulk_create_outlasts_its_lease(served: Table, outlasted: list[str]) -> None:
    """The objects of the batch that was not sent are written one by one, and the next batches by the renewed lease."""
    slips = [Slip(till_id="t", slip_id=f"{number:03}") for number in range(60)]
    Slip.objects.bulk_create(slips[:30])
    outlasted.clear()
    created = Slip.objects.bulk_create(slips, update_conflicts=True)
    assert not created.skipped and all(slip._stored is not None for slip in slips)
    assert outlasted.count("BatchWriteItem") < 3
    assert Slip.objects.filter(till="t").count() == 60


def test_clear_outlasts_its_lease(served: Table, outlasted: list[str]) -> None:
    """The edges of the batch that was not sent are deleted one by one."""
    server = GameServer.objects.create(server_id="s", name="Server")
    server.tags.set(GameTag.objects.bulk_create([GameTag(word=f"{number:03}") for number in range(40)]))
    outlasted.clear()
    server.tags.clear()
    assert (outlasted.count("BatchWriteItem"), outlasted.count("DeleteItem")) == (1, 15)
    assert server.tags.count() == 0


def test_copies_are_written_although_the_lease_ends(served: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread reads a new state before a batch of copies: it had counted as a change of the source."""
    player = GamePlayer.objects.create(player_id="p", username="john")
    GameMember.objects.bulk_create([GameMember(server_id=f"{number:03}", player=player) for number in range(120)])
    original, ended = send.send_actions, []

    async def send_late(alias: str, actions: Any, **given: Any) -> Any:
        if len(actions) > 1 and not ended:
            ended.append(given["lease"])
            change(served, synonyms={"later": "earlier"})
            knowledge.stale()
            await knowledge.binding_for(GamePlayer)
        return await original(alias, actions, **given)

    monkeypatch.setattr(send, "send_actions", send_late)
    player.username = "jack"
    player.save()
    assert ended[0].is_closed
    assert {each.username for each in GameMember.objects.filter(player="p")} == {"jack"}


def test_addition_begins_again_when_its_lease_ends(served: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread has read a new state in between: the item is composed again, and not sent by the next lease."""
    composed = []

    def compose(obj: Any) -> Any:
        composed.append(obj)
        item = item_of(obj)
        if len(composed) == 1:
            change(served, synonyms={"later": "earlier"})
            knowledge.stale()
            run(knowledge.binding_for(Sample))
        return item

    monkeypatch.setattr(counters, "item_of", compose)
    assert counters.add(Sample(sample_id="s", integer=1), "integer").integer == 1
    assert len(composed) == 2


def test_process_that_may_not_write_reads_each_second(
    served: Table, passed: Callable[[float], None], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process continues with the shortest lease, and logs this once."""
    monkeypatch.setattr(knowledge, "LOCAL_LEASE", 60.0)

    def refuse(operation: str, params: Any) -> None:
        if operation == "UpdateItem" and params["Key"]["sk"]["S"].startswith(states.PROCESS):
            raise AccessDenied("not allowed")

    with intercept(refuse):
        assert list(Club.objects.all()) == []
        for _ in range(3):
            passed(knowledge.UNREGISTERED_LEASE / 2 + 0.01)
            with assert_requests(["GetItem", "Query"]):
                assert list(Club.objects.all()) == []
    assert caplog.text.count("cannot write its presence item") == 1
    assert processes(served) == []


def test_forked_process_has_a_presence_item_of_its_own(served: Table) -> None:
    """Registered before it reads the state; the parent's item stays."""
    list(Club.objects.all())
    child = os.fork()
    if child == 0:  # pragma: no cover - in another process
        try:
            list(Club.objects.all())
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    pids = {item["sk"]["S"].split("#")[2] for item in processes(served)}
    assert pids == {str(os.getpid()), str(child)}


def test_process_that_trusts_says_that_it_has_no_fence(served: Table, settings: Any) -> None:
    """The process never reads the state, so ``migrate`` waits for its end."""
    end(served)
    described = served.settings
    url = f"{described.endpoint_url}/{described.table_name}?region={described.region}&migrations=trust"
    settings.DYNAMO_SINGLE = {**settings.DYNAMO_SINGLE, "default": url.replace("http://", "dynamodb://")}
    with assert_requests(["UpdateItem", "Query"]):
        list(Club.objects.all())
    (item,) = processes(served)
    assert (item[presence.HEARD], item[presence.UNFENCED]) == ({"N": "-1"}, {"N": "1"})


def test_test_table_has_no_presence_items(table: Table, settings: Any) -> None:
    """No other process uses it, and tests count requests."""
    settings.MIGRATION_MODULES = MIGRATED
    change(table)
    with assert_requests(["GetItem", "Query"]):
        list(Club.objects.all())
    assert processes(table) == []


# A state that an earlier release wrote.

FORMER = (
    '{"Club":{"label":"catalog.club","primary":"%s","attributes":%s,"keys":%s,"rules":%s,'
    '"opened":[{"kind":"AddKey","migration":"catalog.0009_later","parameters":{"number":"0","label":"Add key"}}]}}'
)


def former_text(phase: str = "filled") -> str:
    """The forms as releases before this protocol wrote them."""

    def text(found: object) -> str:
        return json.encode(found).decode()

    keys = dict.fromkeys(FORM.keys, phase)
    return FORMER % (FORM.primary, text(FORM.attributes), text(keys), text(dict.fromkeys(FORM.rules, "filled")))


@pytest.fixture
def former(table: Table, settings: Any) -> Iterator[Table]:
    """A table whose state item has the attribute of an earlier release."""
    settings.MIGRATION_MODULES = MIGRATED
    item = {"revision": {"N": "7"}, "forms": {"S": former_text()}, "itemType": {"S": states.STATE_TYPE}}
    table.send(Request("PutItem", {"Item": {**item_key(states.STATE_KEY), **item}}))
    knowledge.forget()
    yield table
    knowledge.forget()


def stored_state(table: Table) -> dict[str, Any]:
    """Return the stored state item."""
    found: dict[str, Any] = table.send(Request("GetItem", {"Key": item_key(states.STATE_KEY)}))["Item"]
    return found


def test_former_state_is_followed(former: Table) -> None:
    """Complete keys are public, and open changes continue from their first phase."""
    assert list(Club.objects.all()) == []
    (change,) = knowledge._tables[former].state.forms["Club"].opened
    assert (change.migration, change.phase, change.is_reverted) == ("catalog.0009_later", 0, False)


def test_former_state_stays_until_a_form_changes(former: Table) -> None:
    """Old code still reads its own attribute, which is unchanged to the byte."""
    knowledge.change(former, lambda state: replace(state, owner="shop"))
    assert stored_state(former)["forms"] == {"S": former_text()}
    assert "schema" not in stored_state(former)


def test_first_change_of_a_form_replaces_the_former_attribute(former: Table) -> None:
    """Code of before refuses the table from then on."""
    change(former)
    found = stored_state(former)
    assert ("forms" in found, "schema" in found) == (False, True)
