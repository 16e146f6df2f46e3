"""Sessions in the table: ``SESSION_ENGINE = "dynamo_single.sessions"``.

A session is one item. Reading it is one strongly consistent GetItem, saving a changed one is one write. Whatever keeps
the table from answering is an error here and never an empty session, which would be a silent logout. No ``atomic()``
block of a view has a part in it: a logout stays one when the block around it fails.
"""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.sessions.backends.base import VALID_KEY_CHARS, CreateError, SessionBase, UpdateError
from django.db.models.signals import post_delete, pre_delete
from django.utils.crypto import get_random_string
from django.utils.translation import gettext_lazy as _

from dynamo_single import clock, models
from dynamo_single.exceptions import AlreadyExists, InvalidValue, StaleObject, TableMismatch
from dynamo_single.orm.effects.together import effects_of
from dynamo_single.orm.items.serialization import key_of_pk
from dynamo_single.orm.requests import block
from dynamo_single.orm.requests.actions import Delete
from dynamo_single.orm.requests.compiler import compile_action
from dynamo_single.table import names
from dynamo_single.table.request import Request
from dynamo_single.table.table import get_table

KEY_LENGTH = 32
SESSION_DATA = "sessionData"
_DELETES = ("ENABLED", "ENABLING")


class Session(models.Model):
    """One visitor's data, signed and encoded, until it expires; DynamoDB deletes it some time after that."""

    session_key = models.UnicodeAttribute(_("session key"), attr_name="sessionKey")
    session_data = models.UnicodeAttribute(_("session data"), multiline=True, attr_name=SESSION_DATA)
    expire_date = models.TTLAttribute(_("expire date"), null=False)
    updated_at = models.TimestampAttribute(_("updated"), attr_name=names.UPDATED_AT)

    class Keys:
        primary = models.Key("SESSION#{session_key}", "#METADATA")

    class Meta:
        verbose_name = _("session")
        verbose_name_plural = _("sessions")

    def __str__(self) -> str:
        return self.session_key

    @classmethod
    def get_session_store_class(cls) -> type[SessionStore]:
        """The store that encoded the data."""
        return SessionStore

    def get_decoded(self) -> dict[str, Any]:
        """What the session holds."""
        return self.get_session_store_class()().decode(self.session_data)


class SessionStore(SessionBase):
    """Django's session interface over ``Session``; the asynchronous methods are its own, and run these in a thread."""

    def __init__(self, session_key: str | None = None) -> None:
        # The items as they were last read or written, by key: a changed one is then written without reading it again.
        self._items: dict[str, Session] = {}
        # The key that cycle_key() chose, until save() stores something under it.
        self._chosen: str | None = None
        super().__init__(session_key)

    @classmethod
    def get_model_class(cls) -> type[Session]:
        """The model of the stored sessions."""
        return Session

    def load(self) -> dict[str, Any]:
        """The data of the session: one GetItem. A session that is missing or expired gives up its key and is empty."""
        item = None if self.session_key is None else self._find(self.session_key)
        if item is None:
            self._session_key = None
            return {}
        return self.decode(item.session_data)

    def exists(self, session_key: str | None) -> bool:
        """Whether there is such a session: one GetItem."""
        return session_key is not None and self._find(session_key) is not None

    def create(self) -> None:
        """Make a session with a key that nobody has: one PutItem, whose condition finds out whether the key is new."""
        while True:
            self._session_key = _new_key()
            try:
                self.save(must_create=True)
            except CreateError:
                continue
            self.modified = True
            return

    def cycle_key(self) -> None:
        """Give the session another key: the item under the old one is deleted, by one DeleteItem if there was one.

        ``save()`` stores it under the new key, as the middleware does when a view has logged somebody in. Django's
        other engines store it here, and then once more.
        """
        self._get_session()  # type: ignore[attr-defined]  # as below; what is stored under the old key stays in memory
        key = self.session_key
        if key is not None:
            self.delete(key)
        self._session_key = self._chosen = _new_key()
        self.modified = True

    async def acycle_key(self) -> None:
        """``cycle_key()`` in a thread."""
        await sync_to_async(self.cycle_key)()

    def save(self, must_create: bool = False) -> None:
        """Write the session: one request. One that was deleted meanwhile raises ``UpdateError`` and stays deleted."""
        if self.session_key is None:
            self.create()
            return
        if self._is_chosen(self.session_key) and not must_create:
            self._save_chosen()
            return
        data = self._get_session(no_load=must_create)  # type: ignore[attr-defined]  # not in the stubs
        if self.session_key is None:  # found missing or expired just now
            raise UpdateError
        if must_create:
            self._insert(self.session_key, data)
        else:
            self._update(self.session_key, data)

    def _is_chosen(self, session_key: str) -> bool:
        """Whether nothing is stored under a key yet."""
        return session_key == self._chosen

    def _save_chosen(self) -> None:
        while True:
            try:
                self.save(must_create=True)
            except CreateError:  # somebody has that key
                self._session_key = self._chosen = _new_key()
            else:
                return

    def _insert(self, session_key: str, data: dict[str, Any]) -> None:
        values = self._stored_values(data)
        item = self.get_model_class()(session_key=session_key, updated_at=clock.now(), **values)
        try:
            with block.outside():
                item.save(force_insert=True)
        except AlreadyExists as error:
            raise CreateError from error
        self._items[session_key] = item
        self._chosen = None

    def _update(self, session_key: str, data: dict[str, Any]) -> None:
        item = self._items.get(session_key) or self._find(session_key)
        if item is None:
            raise UpdateError
        # Written in any case, not only if they differ from what was read: of two requests the last one's session stays
        # whole, and a session that was deleted meanwhile is noticed.
        item._stored = {
            name: value for name, value in (item._stored or {}).items() if name not in (SESSION_DATA, names.EXPIRES_AT)
        }
        item.updated_at = clock.now()
        for name, value in self._stored_values(data).items():
            setattr(item, name, value)
        try:
            with block.outside():
                item.save(force_update=True)
        except StaleObject as error:
            raise UpdateError from error

    def _stored_values(self, data: dict[str, Any]) -> dict[str, Any]:
        return {"session_data": self.encode(data), "expire_date": self.get_expiry_date(modification=clock.instant())}

    def get_expiry_age(self, **kwargs: Any) -> int:
        """See Django; ``modification`` is the present of the app's clock unless it is given."""
        return super().get_expiry_age(**{"modification": clock.now(), **kwargs})

    async def aget_expiry_age(self, **kwargs: Any) -> int:
        """See ``get_expiry_age()``."""
        return await super().aget_expiry_age(**{"modification": clock.now(), **kwargs})

    def get_expiry_date(self, **kwargs: Any) -> datetime:
        """See ``get_expiry_age()``."""
        return super().get_expiry_date(**{"modification": clock.now(), **kwargs})

    async def aget_expiry_date(self, **kwargs: Any) -> datetime:
        """See ``get_expiry_age()``."""
        return await super().aget_expiry_date(**{"modification": clock.now(), **kwargs})

    def set_expiry(self, value: datetime | timedelta | int | None) -> None:
        """See Django; a ``timedelta`` counts from the present of the app's clock."""
        super().set_expiry(_from_now(value) if isinstance(value, timedelta) else value)

    async def aset_expiry(self, value: datetime | timedelta | int | None) -> None:
        """See ``set_expiry()``."""
        await super().aset_expiry(_from_now(value) if isinstance(value, timedelta) else value)

    def delete(self, session_key: str | None = None) -> None:
        """Delete a session, by default this one: one DeleteItem.

        It is read first, by a GetItem, if somebody listens to the signals of its deletion, or other items follow it.
        """
        session_key = self.session_key if session_key is None else session_key
        if session_key is None:
            return
        item = self._items.pop(session_key, None)
        if self._is_chosen(session_key):
            self._chosen = None
            return
        with block.outside():
            if item is None and _goes_unread(self.get_model_class()):
                _delete_unread(session_key)
                return
            item = item or self._find(session_key)
            self._items.pop(session_key, None)
            if item is not None:
                item.delete()

    def _find(self, session_key: str) -> Session | None:
        self._items.pop(session_key, None)
        try:
            with block.outside():
                item = self.get_model_class().objects.consistent().filter(session_key=session_key).first()
        except InvalidValue:
            return None  # a cookie that no session's key can be
        if item is not None:
            self._items[session_key] = item
        return item

    @classmethod
    def clear_expired(cls) -> None:
        """Delete nothing, and make sure that DynamoDB does: one DescribeTimeToLive, ``TableMismatch`` if it does not.

        It is what ``clearsessions`` calls, and prints that DynamoDB does it: that command prints nothing itself.

        Expired sessions are never returned. DynamoDB deletes them within a few days, without using write capacity:
        https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/TTL.html
        """
        table = get_table(cls.get_model_class()._options.alias)
        found = table.send(Request("DescribeTimeToLive")).get("TimeToLiveDescription", {})
        if found.get("TimeToLiveStatus") not in _DELETES or found.get("AttributeName") != names.EXPIRES_AT:
            raise TableMismatch(
                f"Expired sessions would stay in the table {table.name!r}: its time to live is not enabled on "
                f"{names.EXPIRES_AT!r}. Run `manage.py dynamo_setup`, which enables it."
            )
        said = (
            f"Nothing to do: DynamoDB deletes expired sessions from the table {table.name!r} itself, within a few days."
        )
        sys.stdout.write(f"{said}\n")


def _new_key() -> str:
    return get_random_string(KEY_LENGTH, VALID_KEY_CHARS)


def _goes_unread(model: type[Session]) -> bool:
    """Whether an item of a model can be deleted by its key alone: nobody is told, and nothing follows from it."""
    heard = any(signal.has_listeners(model) for signal in (pre_delete, post_delete))
    return model is Session and not heard and not effects_of(model)


def _delete_unread(session_key: str) -> None:
    try:
        delete = Delete(key_of_pk(Session, session_key))
    except InvalidValue:
        return  # a cookie that no session's key can be
    get_table(Session._options.alias).send_patiently(compile_action(delete))


def _from_now(span: timedelta) -> datetime:
    return clock.as_django(clock.instant() + span)
