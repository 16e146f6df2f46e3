"""Sessions in the table: ``SESSION_ENGINE = "dynamo_single.sessions"``.

A session is one item under a hash of its key, so that the table and its backups cannot be used to log in. Reading it
sends one strongly consistent GetItem, and saving changes sends one write. An unavailable table raises an error; it
never results in an empty session, which would silently log the user out. Sessions do not take part in an ``atomic()``
block of a view: a logout stays effective if the surrounding block fails.

Earlier versions stored a session under its key. Such an item is read if there is none under the hash, and the next
``save()`` moves it there.
"""

from __future__ import annotations

import hashlib
import logging
import sys
import uuid
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, TypeVar

from asgiref.sync import sync_to_async
from django.contrib.sessions.backends.base import VALID_KEY_CHARS, CreateError, SessionBase, UpdateError
from django.db.models.signals import post_delete, pre_delete
from django.utils.crypto import get_random_string
from django.utils.translation import gettext_lazy as _

from dynamo_single import clock, models, transactions
from dynamo_single.conf import alias_of_own_models
from dynamo_single.exceptions import (
    AlreadyExists,
    InvalidValue,
    StaleObject,
    TableMismatch,
    UnexpectedItem,
    UnreadableItem,
)
from dynamo_single.orm.effects.all_effects import effects_of
from dynamo_single.orm.items.encode import key_of_pk
from dynamo_single.orm.requests import atomic_block
from dynamo_single.orm.requests.actions import ITEM_EXISTS, Action, Delete, Item
from dynamo_single.orm.requests.compiler import compile_transaction
from dynamo_single.orm.schema.types import all_plain, awaited
from dynamo_single.table import names
from dynamo_single.table.flow import call_method, call_sync, is_run, run
from dynamo_single.table.request import Request
from dynamo_single.table.table import get_table

T = TypeVar("T")

logger: Final = logging.getLogger("django.contrib.sessions")

KEY_LENGTH = 32
_MASK: Final = "•••"
SESSION_DATA = "sessionData"
_DELETES = ("ENABLED", "ENABLING")


class BaseSession(models.Model):
    """One visitor's data, signed and encoded, until it expires. DynamoDB deletes it some time later."""

    session_data = models.UnicodeAttribute(_("session data"), multiline=True, attr_name=SESSION_DATA)
    expire_date = models.TTLAttribute(_("expire date"), null=False)
    updated_at = models.TimestampAttribute(_("updated"), attr_name=names.UPDATED_AT)

    class Meta:
        abstract = True

    @classmethod
    def get_session_store_class(cls) -> type[SessionStore]:
        """Return the store that encoded the data."""
        return SessionStore

    def get_decoded(self) -> dict[str, Any]:
        """Return the data of the session."""
        return self.get_session_store_class()().decode(self.session_data)


class Session(BaseSession):
    """A stored session; ``pk`` is ``key_hash()`` of the key in the visitor's cookie."""

    session_key_hash = models.UnicodeAttribute(_("hash of the session key"), attr_name="sessionKeyHash")

    class Keys:
        primary = models.Key("SESSIONHASH#{session_key_hash}", "#METADATA")

    class Meta:
        item_type = "HashedSession"
        table = alias_of_own_models()
        verbose_name = _("session")
        verbose_name_plural = _("sessions")

    def __str__(self) -> str:
        return self.session_key_hash


class FormerSession(BaseSession):
    """A session as stored by earlier versions, under its key. It is read and moved, but never written."""

    session_key = models.UnicodeAttribute(_("session key"), attr_name="sessionKey")

    class Keys:
        primary = models.Key("SESSION#{session_key}", "#METADATA")

    class Meta:
        default_permissions = ()
        item_type = "Session"
        table = alias_of_own_models()
        verbose_name = _("former session")
        verbose_name_plural = _("former sessions")

    def __str__(self) -> str:
        return self.session_key


def key_hash(session_key: str) -> str:
    """Return the hash under which a session is stored: SHA-256 in hexadecimal digits. Sends no request.

    A key has 32 random characters out of 36, too many to guess, so that the hash needs no secret.
    """
    # A cookie may contain a lone surrogate, which UTF-8 does not support.
    return hashlib.sha256(session_key.encode("utf-8", "surrogatepass")).hexdigest()


class SessionStore(SessionBase):
    """Django's session interface for ``Session``. Asynchronous methods call a project's overrides in a thread."""

    def __init__(self, session_key: str | None = None) -> None:
        # The items as last read or written, by key. A changed session is then written without reading it again.
        self._items: dict[str, BaseSession] = {}
        # The key that cycle_key() chose, until save() stores the session under it.
        self._chosen: str | None = None
        super().__init__(session_key)

    @classmethod
    def get_model_class(cls) -> type[Session]:
        """Return the model of the stored sessions."""
        return Session

    def load(self) -> dict[str, Any]:
        """Return the data of the session: one GetItem. A missing or expired session has no data and loses its key.

        If nothing is stored under the hash, another GetItem looks for an item of an earlier version.
        """
        return run(self._loaded())

    async def aload(self) -> dict[str, Any]:
        """Return the same as ``load()``, asynchronously."""
        return await awaited(self.load, self._loaded)

    async def _loaded(self) -> dict[str, Any]:
        item = None if self.session_key is None else await self._find(self.session_key)
        if item is None:
            self._session_key = None
            return {}
        return self.decode(item.session_data)

    def exists(self, session_key: str | None) -> bool:
        """Return whether the session exists: one GetItem, and another one if nothing is stored under the hash."""
        return run(self._exists(session_key))

    async def aexists(self, session_key: str | None) -> bool:
        """Return the same as ``exists()``, asynchronously."""
        return await awaited(self.exists, self._exists, session_key)

    async def _exists(self, session_key: str | None) -> bool:
        return session_key is not None and await self._find(session_key) is not None

    def create(self) -> None:
        """Create a session with a new key: one PutItem, whose condition detects a key that is already used."""
        run(self._created())

    async def acreate(self) -> None:
        """Do the same as ``create()``, asynchronously."""
        await awaited(self.create, self._created)

    async def _created(self) -> None:
        while True:
            self._session_key = _new_key()
            try:
                await call_method(self, "save", must_create=True)
            except CreateError:
                continue
            self.modified = True
            return

    def cycle_key(self) -> None:
        """Change the session's key, and delete the item under the old key, as ``delete()`` does, if it was stored.

        ``save()`` stores the session under the new key; the middleware calls it after a login. Django's other engines
        store it here and then once more.
        """
        run(self._cycled())

    async def acycle_key(self) -> None:
        """Do the same as ``cycle_key()``, asynchronously."""
        await awaited(self.cycle_key, self._cycled)

    async def _cycled(self) -> None:
        await self._data()  # keeps the data of the old key in memory
        key = self.session_key
        if key is not None:
            await call_method(self, "delete", key)
        self._session_key = self._chosen = _new_key()
        self.modified = True

    async def _data(self, *, no_load: bool = False) -> dict[str, Any]:
        """Return the data of the session, loaded if necessary."""
        both: Any = self
        if is_run():
            found: dict[str, Any] = await call_sync(partial(both._get_session, no_load=no_load))
        else:
            found = await both._aget_session(no_load=no_load)
        return found

    def save(self, must_create: bool = False) -> None:
        """Write the session: one request. Raise ``UpdateError`` if it was deleted in the meantime; it stays deleted.

        An item of an earlier version is moved under the hash in one transaction.
        """
        run(self._saved(must_create))

    async def asave(self, must_create: bool = False) -> None:
        """Do the same as ``save()``, asynchronously."""
        await awaited(self.save, self._saved, must_create)

    async def _saved(self, must_create: bool = False) -> None:
        if self.session_key is None:
            await call_method(self, "create")
            return
        if self._is_chosen(self.session_key) and not must_create:
            await self._save_chosen()
            return
        data = await self._data(no_load=must_create)
        if self.session_key is None:  # loading has just found it missing or expired
            raise UpdateError
        if must_create:
            await self._insert(self.session_key, data)
        else:
            await self._update(self.session_key, data)

    def _is_chosen(self, session_key: str) -> bool:
        """Return whether nothing is stored under a key yet."""
        return session_key == self._chosen

    async def _save_chosen(self) -> None:
        while True:
            try:
                await call_method(self, "save", must_create=True)
            except CreateError:  # another session has that key
                self._session_key = self._chosen = _new_key()
            else:
                return

    async def _insert(self, session_key: str, data: dict[str, Any]) -> None:
        item = self._new(session_key, self._stored_values(data))
        try:
            with atomic_block.outside_block():
                await call_method(item, "save", force_insert=True)
        except AlreadyExists as error:
            raise CreateError from error
        self._items[session_key] = item
        self._chosen = None

    def _new(self, session_key: str, values: dict[str, Any]) -> Session:
        return self.get_model_class()(session_key_hash=key_hash(session_key), updated_at=clock.now(), **values)

    async def _update(self, session_key: str, data: dict[str, object]) -> None:
        item = self._items.get(session_key) or await self._find(session_key)
        if isinstance(item, FormerSession):
            if await self._move(session_key, item, self._stored_values(data)):
                return
            item = await self._find(session_key)  # another request moved or deleted it
        if item is None:
            raise UpdateError
        # Written even without changes: of two requests, the last one's session stays complete, and a deletion of the
        # session in the meantime is detected.
        item._stored = {
            name: value for name, value in (item._stored or {}).items() if name not in (SESSION_DATA, names.EXPIRES_AT)
        }
        item.updated_at = clock.now()
        for name, value in self._stored_values(data).items():
            setattr(item, name, value)
        try:
            with atomic_block.outside_block():
                await call_method(item, "save", force_update=True)
        except StaleObject as error:
            raise UpdateError from error

    async def _move(self, session_key: str, former: FormerSession, values: dict[str, Any]) -> Session | None:
        """Store a session of an earlier version under its hash: one transaction, which deletes the former item.

        Returns ``None`` without a write if another request moved or deleted it first. The signals are those of a new
        object.
        """
        item = self._new(session_key, values)
        self._items.pop(session_key, None)
        try:
            with atomic_block.outside_block():
                async with transactions.atomic():
                    await call_method(item, "save", force_insert=True)
                    _delete_former(session_key)
        except (AlreadyExists, StaleObject):
            return None
        self._items[session_key] = item
        return item

    def _stored_values(self, data: dict[str, object]) -> dict[str, Any]:
        return {"session_data": self.encode(data), "expire_date": self.get_expiry_date(modification=clock.instant())}

    def get_expiry_age(self, **kwargs: object) -> int:
        """Return what Django does; the default of ``modification`` is the current time of the app's clock."""
        return super().get_expiry_age(**{"modification": clock.now(), **kwargs})

    async def aget_expiry_age(self, **kwargs: object) -> int:
        """Return the same as ``get_expiry_age()``, asynchronously."""
        return await super().aget_expiry_age(**{"modification": clock.now(), **kwargs})

    def get_expiry_date(self, **kwargs: object) -> datetime:
        """Return what Django does; the default of ``modification`` is the current time of the app's clock."""
        return super().get_expiry_date(**{"modification": clock.now(), **kwargs})

    async def aget_expiry_date(self, **kwargs: object) -> datetime:
        """Return the same as ``get_expiry_date()``, asynchronously."""
        return await super().aget_expiry_date(**{"modification": clock.now(), **kwargs})

    def set_expiry(self, value: datetime | timedelta | int | None) -> None:
        """Do what Django does; a ``timedelta`` counts from the current time of the app's clock."""
        super().set_expiry(_from_now(value) if isinstance(value, timedelta) else value)

    async def aset_expiry(self, value: datetime | timedelta | int | None) -> None:
        """Do the same as ``set_expiry()``, asynchronously."""
        await super().aset_expiry(_from_now(value) if isinstance(value, timedelta) else value)

    def delete(self, session_key: str | None = None) -> None:
        """Delete a session, by default this one, under its hash and in its former place: one transaction.

        The session is read first if there are receivers for the signals of its deletion, or dependent items.
        """
        run(self._deleted(session_key))

    async def adelete(self, session_key: str | None = None) -> None:
        """Do the same as ``delete()``, asynchronously."""
        await awaited(self.delete, self._deleted, session_key)

    async def _deleted(self, session_key: str | None = None) -> None:
        session_key = self.session_key if session_key is None else session_key
        if session_key is None:
            return
        item = self._items.pop(session_key, None)
        if self._is_chosen(session_key):
            self._chosen = None
            return
        with atomic_block.outside_block():
            if not _goes_unread(self.get_model_class()):
                item = item or await self._find(session_key)
                if isinstance(item, FormerSession):  # there are no receivers for this model
                    held = {"session_data": item.session_data, "expire_date": item.expire_date}
                    item = await self._move(session_key, item, held) or await self._find(session_key)
                self._items.pop(session_key, None)
                if item is not None:
                    await call_method(item, "delete")
            await _delete_unread(session_key)

    async def _find(self, session_key: str) -> BaseSession | None:
        self._items.pop(session_key, None)
        item = await _read(self.get_model_class(), key_hash(session_key))
        # By the key only, never by a hash: a leaked hash that is sent as a cookie finds nothing.
        item = item or await _read(FormerSession, session_key)
        if item is not None:
            self._items[session_key] = item
        return item

    @classmethod
    def clear_expired(cls) -> None:
        """Check that DynamoDB deletes expired sessions: one DescribeTimeToLive. Raise ``TableMismatch`` otherwise.

        ``clearsessions`` calls this method, which prints that DynamoDB does the work. Expired sessions are never
        returned. DynamoDB deletes them within a few days, without using write capacity:
        https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/TTL.html
        """
        run(cls._expires())

    @classmethod
    async def aclear_expired(cls) -> None:
        """Do the same as ``clear_expired()``, asynchronously."""
        await (cls._expires() if all_plain(cls, ("clear_expired",)) else sync_to_async(cls.clear_expired)())

    @classmethod
    async def _expires(cls) -> None:
        table = get_table(cls.get_model_class()._options.alias)
        attribute = table.settings.shape.ttl_attribute
        found = (await table.ask(Request("DescribeTimeToLive"))).get("TimeToLiveDescription", {})
        if found.get("TimeToLiveStatus") not in _DELETES or found.get("AttributeName") != attribute:
            raise TableMismatch(
                f"Expired sessions would stay in the table {table.name!r}: its time to live is not enabled on "
                f"{attribute!r}. Run `{table.settings.command('dynamo_setup')}`, which enables it."
            )
        said = (
            f"Nothing to do: DynamoDB deletes expired sessions from the table {table.name!r} itself, within a few days."
        )
        sys.stdout.write(f"{said}\n")


def _new_key() -> str:
    return get_random_string(KEY_LENGTH, VALID_KEY_CHARS)


async def _read(model: type[BaseSession], key: str) -> BaseSession | None:
    """Return a session that has not expired, or ``None``: one strongly consistent GetItem.

    An item that cannot be read is treated as missing and logged.
    """
    try:
        with atomic_block.outside_block():
            item: BaseSession | None = await call_method(model.objects.consistent().filter(pk=key), "first")
        if item is None or (item.pk == key and item.session_data is not None and item.expire_date is not None):
            return item
    except (UnreadableItem, UnexpectedItem):
        pass
    except InvalidValue:
        return None  # a cookie that cannot be a session's key
    logger.error(
        "Cannot read the session pk=%r: its item is damaged, and its visitor is logged out. Delete the item.",
        # The log must not contain the key of a former session, which logs its visitor in.
        f"SESSION#{_MASK}" if issubclass(model, FormerSession) else f"SESSIONHASH#{key}",
    )
    return None


def _goes_unread(model: type[Session]) -> bool:
    """Return whether an item of a model can be deleted by its key, without receivers or dependent items."""
    heard = any(signal.has_listeners(model) for signal in (pre_delete, post_delete))
    return model is Session and not heard and not effects_of(model)


async def _delete_unread(session_key: str) -> None:
    try:
        keys = key_of_pk(Session, key_hash(session_key)), key_of_pk(FormerSession, session_key)
    except InvalidValue:
        return  # a cookie that cannot be a session's key
    table = get_table(Session._options.alias)
    # In one transaction: a request that moves the session in the meantime comes before or after both.
    await table.ask_patiently(compile_transaction([Delete(key) for key in keys], table.name, str(uuid.uuid4())))


def _delete_former(session_key: str) -> None:
    """Add the deletion of an earlier version's item to the current block; the item must exist."""

    def explain(action: Action, found: Item | None) -> Exception:
        return StaleObject("Another request moved or deleted the session first. Nothing was written.")

    delete = Delete(key_of_pk(FormerSession, session_key), ITEM_EXISTS)
    collected = atomic_block.current()
    if collected is not None:
        entry = atomic_block.Entry(lambda: "The former session", (delete,), (), explain, lambda: None)
        collected.add(FormerSession._options.alias, entry)


def _from_now(span: timedelta) -> datetime:
    return clock.as_django(clock.instant() + span)
