"""Sessions in the table, against Django's documented contract for session backends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.sessions.backends.base import CreateError, UpdateError
from django.db.models.signals import post_delete
from django.utils import timezone

from dynamo_single import exceptions, testing, transactions
from dynamo_single.sessions import Session, SessionStore, key_hash
from dynamo_single.table import Request, SentRequest, Table

Sent = list[SentRequest]


@pytest.fixture
def stored(table: Table) -> SessionStore:
    """Return a stored session with some data."""
    session = SessionStore()
    session["colour"] = "green"
    session.save()
    return session


def operations(sent: Sent) -> list[str]:
    """Return the operations sent, in order."""
    return [request.operation for request in sent]


def items(table: Table) -> list[dict[str, Any]]:
    """Everything in the table."""
    found: list[dict[str, Any]] = table.send(Request("Scan", {}))["Items"]
    return found


def test_a_session_is_one_item(stored: SessionStore, table: Table) -> None:
    """The item has the session's key, its signed data and when it expires, in seconds."""
    (item,) = items(table)
    hashed = key_hash(str(stored.session_key))
    assert item["pk"] == {"S": f"SESSIONHASH#{hashed}"}
    assert item["sk"] == {"S": "#METADATA"}
    assert item["itemType"] == {"S": "HashedSession"}
    assert item["sessionKeyHash"] == {"S": hashed}
    expected = timezone.now().timestamp() + stored.get_expiry_age()
    assert abs(int(item["expiresAt"]["N"]) - expected) < 60
    assert stored.decode(item["sessionData"]["S"]) == {"colour": "green"}
    session = Session.objects.get(pk=hashed)
    assert session.get_decoded() == {"colour": "green"}
    assert str(session) == hashed


def test_a_session_costs_one_write_to_make_and_one_read_to_load(sent: Sent) -> None:
    """Making one is a conditional PutItem, loading a strongly consistent GetItem, changing it one UpdateItem."""
    session = SessionStore()
    session["a"] = 1
    session.save()
    assert operations(sent) == ["PutItem"]
    assert "attribute_not_exists" in sent[0].params["ConditionExpression"]
    sent.clear()
    again = SessionStore(session.session_key)
    assert again["a"] == 1
    assert again.get("b") is None
    assert operations(sent) == ["GetItem"]
    assert sent[0].params["ConsistentRead"] is True
    sent.clear()
    again["b"] = 2
    again.save()
    assert operations(sent) == ["UpdateItem"]
    assert dict(SessionStore(session.session_key).items()) == {"a": 1, "b": 2}


def test_every_save_is_one_write(stored: SessionStore, sent: Sent) -> None:
    """A save without changes also writes, because only a write detects a deleted session."""
    for _ in range(3):
        stored.save()
    assert operations(sent) == ["UpdateItem"] * 3


def test_reading_does_not_modify(stored: SessionStore) -> None:
    """A session that was only read does not need a save."""
    session = SessionStore(stored.session_key)
    assert not session.accessed
    assert session["colour"] == "green"
    assert session.accessed
    assert not session.modified


@pytest.mark.parametrize("key", [None, "", "short", "nobody-has-this-key", "x" * 3000, "lone\ud800surrogate"])
def test_a_key_that_no_session_has(table: Table, key: str | None) -> None:
    """An unknown or impossible key gives an empty session without a key, and does not exist."""
    session = SessionStore(key)
    assert dict(session.items()) == {}
    assert session.session_key is None
    assert not SessionStore().exists(key)


def test_no_request_for_no_key(sent: Sent) -> None:
    """Without a key, no request is sent."""
    assert not SessionStore().exists(None)
    SessionStore().delete()
    assert SessionStore().is_empty()
    assert sent == []


def test_exists(stored: SessionStore) -> None:
    """A stored session exists under its key."""
    assert SessionStore().exists(stored.session_key)
    stored.delete()
    assert not SessionStore().exists(stored.session_key)


def test_create_makes_an_empty_session_at_once(table: Table) -> None:
    """create() stores a session with a new key before it returns."""
    session = SessionStore()
    session.create()
    assert session.session_key is not None
    assert session.modified
    assert SessionStore().exists(session.session_key)
    assert dict(SessionStore(session.session_key).items()) == {}


def test_must_create_refuses_a_key_in_use(stored: SessionStore) -> None:
    """save(must_create=True) raises CreateError and leaves the other's data alone."""
    with pytest.raises(CreateError):
        SessionStore(stored.session_key).save(must_create=True)
    assert SessionStore(stored.session_key)["colour"] == "green"


def test_create_takes_another_key_if_one_is_in_use(stored: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The condition of the write detects a taken key, and the store generates a new key."""
    keys: Iterator[Any] = iter([stored.session_key, "a" * 32])
    monkeypatch.setattr("dynamo_single.sessions.get_random_string", lambda *args: next(keys))
    session = SessionStore()
    session.create()
    assert session.session_key == "a" * 32
    assert SessionStore(stored.session_key)["colour"] == "green"


@pytest.mark.parametrize("value", ["green", "blue"])
def test_a_session_deleted_elsewhere_does_not_come_back(stored: SessionStore, table: Table, value: str) -> None:
    """A save raises UpdateError, with or without changes, and does not write."""
    SessionStore(stored.session_key).delete()
    stored["colour"] = value
    with pytest.raises(UpdateError):
        stored.save()
    assert items(table) == []


def test_a_session_deleted_before_it_was_read_does_not_come_back(stored: SessionStore, table: Table) -> None:
    """This includes a session that was never loaded, or was emptied first."""
    late, emptied = SessionStore(stored.session_key), SessionStore(stored.session_key)
    stored.delete()
    with pytest.raises(UpdateError):
        late.save()
    emptied.clear()
    emptied["a"] = 1
    with pytest.raises(UpdateError):
        emptied.save()
    assert items(table) == []


def test_flush_deletes_and_forgets(stored: SessionStore, sent: Sent, table: Table) -> None:
    """flush() deletes the item with one request and leaves an empty session without a key."""
    key = stored.session_key
    stored.flush()
    assert operations(sent) == ["TransactWriteItems"]
    assert stored.session_key is None
    assert stored.is_empty()
    assert not SessionStore().exists(key)
    stored["a"] = 1
    stored.save()
    assert stored.session_key not in (None, key)


def test_cycle_key_keeps_the_data(stored: SessionStore, sent: Sent, table: Table) -> None:
    """cycle_key() moves the data: the old item is deleted, and the next save() creates one with a new key."""
    old = stored.session_key
    sent.clear()
    stored.cycle_key()
    assert stored.session_key != old
    stored.save()
    assert operations(sent) == ["TransactWriteItems", "PutItem"]
    assert stored["colour"] == "green"
    assert not SessionStore().exists(old)
    assert SessionStore(stored.session_key)["colour"] == "green"
    assert len(items(table)) == 1


def test_a_new_key_that_somebody_has_is_given_up(stored: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The condition of the PutItem detects a taken key, and the session gets a new key."""
    keys = iter([str(stored.session_key), "k" * 32])
    monkeypatch.setattr("dynamo_single.sessions._new_key", lambda: next(keys))
    session = SessionStore()
    session["colour"] = "red"
    session.cycle_key()
    session.save()
    assert session.session_key == "k" * 32
    assert (SessionStore(stored.session_key)["colour"], SessionStore("k" * 32)["colour"]) == ("green", "red")


def test_a_new_key_under_which_nothing_is_stored_costs_nothing(sent: Sent) -> None:
    """A login and a logout within one page leave no item, and a save after the first one changes it."""
    session = SessionStore()
    session["colour"] = "red"
    session.cycle_key()
    session.cycle_key()
    session.flush()
    assert (operations(sent), session.session_key) == ([], None)
    session["colour"] = "blue"
    session.cycle_key()
    session.save()
    session.save()
    assert operations(sent) == ["PutItem", "UpdateItem"]


def test_a_session_is_deleted_without_reading_unless_somebody_listens(stored: SessionStore, sent: Sent) -> None:
    """A handler of Django's signal gets the object, which then has to be read."""
    heard: list[Any] = []

    def note(instance: Any, **kwargs: Any) -> None:
        heard.append(instance.session_key_hash)

    key = stored.session_key
    sent.clear()
    post_delete.connect(note, sender=Session)
    try:
        SessionStore().delete(key)
    finally:
        post_delete.disconnect(note, sender=Session)
    SessionStore().delete(key)
    assert heard == [key_hash(str(key))]
    assert operations(sent) == ["GetItem", "DeleteItem", "TransactWriteItems", "TransactWriteItems"]


def test_clear_and_save_empties_the_stored_session(stored: SessionStore) -> None:
    """clear() takes the data away and keeps the key."""
    stored.clear()
    stored.save()
    assert dict(SessionStore(stored.session_key).items()) == {}


@pytest.mark.parametrize("ago", [1, 3600, 10**6])
def test_an_expired_session_is_gone(table: Table, ago: int) -> None:
    """The store does not load or find the session, even before DynamoDB deletes it."""
    session = SessionStore()
    session["a"] = 1
    session.set_expiry(-ago)
    session.save()
    assert len(items(table)) == 1
    key = session.session_key
    assert not SessionStore().exists(key)
    again = SessionStore(key)
    assert dict(again.items()) == {}
    assert again.session_key is None


def test_an_expired_session_counts_as_none(table: Table) -> None:
    """Its key can be used again, without its data."""
    session = SessionStore()
    session["secret"] = 1
    session.set_expiry(-10)
    session.save()
    SessionStore(session.session_key).save(must_create=True)
    again = SessionStore(session.session_key)
    assert again.get("secret") is None
    assert again.session_key == session.session_key


@pytest.mark.parametrize(
    "expiry",
    [lambda: 600, lambda: timedelta(seconds=600), lambda: timezone.now() + timedelta(seconds=600)],
    ids=["age", "delta", "date"],
)
def test_the_stored_expiry_is_the_sessions_own(table: Table, expiry: Any) -> None:
    """A custom expiry is what DynamoDB's time to live gets."""
    session = SessionStore()
    session.set_expiry(expiry())
    session.save()
    (item,) = items(table)
    assert abs(int(item["expiresAt"]["N"]) - (timezone.now().timestamp() + 600)) < 120
    assert SessionStore(session.session_key).get_expire_at_browser_close() is False


def test_data_that_somebody_changed_is_not_believed(stored: SessionStore) -> None:
    """Data whose signature is wrong is an empty session, as with Django's own backends."""
    item = Session.objects.get(pk=key_hash(str(stored.session_key)))
    item.session_data += "x"
    item.save()
    assert dict(SessionStore(stored.session_key).items()) == {}


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("ProvisionedThroughputExceededException", exceptions.Throttled),
        ("ResourceNotFoundException", exceptions.TableNotFound),
        ("AccessDeniedException", exceptions.AccessDenied),
    ],
)
def test_a_table_that_does_not_answer_is_an_error(stored: SessionStore, code: str, error: type[Exception]) -> None:
    """Loading, saving, making and deleting raise it: it is no empty session and no session deleted elsewhere."""
    key = stored.session_key
    stored["colour"] = "red"
    with testing.refuse(code):
        with pytest.raises(error):
            SessionStore(key).load()
        with pytest.raises(error):
            SessionStore().exists(key)
        with pytest.raises(error):
            stored.save()
        with pytest.raises(error):
            SessionStore().create()
        with pytest.raises(error):
            SessionStore(key).delete()
    assert SessionStore(key)["colour"] == "green"


def test_data_over_400_kilobytes_is_refused(stored: SessionStore) -> None:
    """DynamoDB's limit raises this app's error, and the stored session is unchanged."""
    stored["blob"] = [f"{number * 7919 % 1000003:x}" for number in range(200_000)]
    with pytest.raises(exceptions.ItemTooLarge):
        stored.save()
    assert dict(SessionStore(stored.session_key).items()) == {"colour": "green"}


def test_concurrent_changes_write_the_last_one_whole(stored: SessionStore) -> None:
    """Two requests that load and save one session: the last to save wins, as with Django's database backend."""
    first, second = SessionStore(stored.session_key), SessionStore(stored.session_key)
    first["a"], second["b"] = 1, 2
    first.save()
    second.save()
    assert dict(SessionStore(stored.session_key).items()) == {"colour": "green", "b": 2}


def test_the_whole_interface_is_asynchronous_too(table: Table) -> None:
    """Every asynchronous method has the effect of the synchronous one."""

    async def use() -> None:
        session = SessionStore()
        await session.aset("a", 1)
        await session.asave()
        key = session.session_key
        assert await session.aexists(key)
        again = SessionStore(key)
        assert await again.aget("a") == 1
        assert await again.apop("a") == 1
        await again.aupdate({"b": 2})
        assert await again.asetdefault("c", 3) == 3
        assert await again.ahas_key("c")
        assert set(await again.akeys()) == {"b", "c"}
        assert set(await again.avalues()) == {2, 3}
        assert dict(await again.aitems()) == {"b": 2, "c": 3}
        await again.aset_expiry(300)
        assert await again.aget_expiry_age() == 300
        await again.asave()
        await again.acycle_key()
        assert again.session_key != key
        assert not await again.aexists(key)
        await again.asave()
        assert await SessionStore(again.session_key).aload() == {"b": 2, "c": 3, "_session_expiry": 300}
        other = SessionStore(again.session_key)
        await other.adelete()
        await again.aset("d", 4)
        with pytest.raises(UpdateError):
            await again.asave()
        with pytest.raises(CreateError):
            made = SessionStore()
            await made.acreate()
            await SessionStore(made.session_key).asave(must_create=True)
        await again.aflush()
        assert again.session_key is None

    asyncio.run(use())


# within a view's transaction


def test_a_logout_stays_one_when_the_block_around_it_fails(stored: SessionStore) -> None:
    """A flushed session stays deleted, whatever happens to the block's objects."""
    key = stored.session_key
    with pytest.raises(ZeroDivisionError), transactions.atomic():
        stored.flush()
        raise ZeroDivisionError
    assert not SessionStore().exists(key)


def test_a_session_is_stored_although_the_block_around_it_fails(table: Table) -> None:
    """The visitor's cookie names a stored session, which can be saved again."""
    session = SessionStore()
    with pytest.raises(ZeroDivisionError), transactions.atomic():
        session["colour"] = "green"
        session.save()
        raise ZeroDivisionError
    session["colour"] = "red"
    session.save()
    assert SessionStore(session.session_key).load() == {"colour": "red"}


def test_a_session_is_saved_and_read_several_times_in_a_block(stored: SessionStore, sent: Sent) -> None:
    """Each request is sent immediately, as outside a block."""
    with transactions.atomic():
        for colour in ("red", "blue"):
            stored["colour"] = colour
            stored.save()
            assert SessionStore(stored.session_key)["colour"] == colour
        stored.cycle_key()
        stored.save()
    assert operations(sent) == ["UpdateItem", "GetItem", "UpdateItem", "GetItem", "TransactWriteItems", "PutItem"]
