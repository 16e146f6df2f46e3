"""Wrap Django's test runs: create, restore and remove test tables. A project may have only SQL databases.

Django does not call an app when it creates test databases or when a test begins and ends. ``wrapped_hooks()`` therefore
wraps these methods of Django's classes while tests run; decision 0019 gives the reasons. A test and a class restore the
contents that they found, so that our engine supports transactions in the meantime: ``setUpTestData()`` is called once a
class.
"""

from __future__ import annotations

import inspect
import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any
from unittest import mock

from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.creation import BaseDatabaseCreation
from django.test import TestCase, TransactionTestCase

from dynamo_single.test_tables import guard, tables, write_record
from dynamo_single.test_tables.contents import VENDOR
from dynamo_single.test_tables.tables import Snapshot
from dynamo_single.test_tables.write_record import Level

#: The variables that distinguish parallel runs without a test database: tox's, and that of pytest-xdist's worker.
_WORKERS = ("TOX_PARALLEL_ENV", "PYTEST_XDIST_WORKER")

Method = Callable[..., Any]


@contextmanager
def wrapped_hooks() -> Iterator[None]:
    """Create test tables with the first test database, empty them, and guard all other tables while tests run."""
    with ExitStack() as stack:
        for owner, name, wrapper in _WRAPPERS:
            original = inspect.getattr_static(owner, name)
            stack.enter_context(mock.patch.object(owner, name, _wrapped(original, wrapper)))
        for features in {type(each.features) for each in connections.all() if each.vendor == VENDOR}:
            stack.enter_context(mock.patch.object(features, "supports_transactions", True))
        stack.enter_context(guard.guarded())
        yield


def _wrapped(original: Any, wrapper: Callable[[Method], Method]) -> object:
    if isinstance(original, classmethod):
        return classmethod(wrapper(original.__func__))
    return wrapper(original)


class _Owner:
    """The SQL database with which the test tables are created and removed."""

    creation: BaseDatabaseCreation | None = None


_owner = _Owner()


def _wrap_create(create: Method) -> Method:
    @wraps(create)
    def create_test_db(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.connection.vendor != VENDOR and not tables.are_in_use():
            asked = _arguments(create, self, args, kwargs)
            suffix = "_".join(filter(None, map(os.environ.get, _WORKERS)))
            tables.create_tables(suffix=suffix, keep=asked["keepdb"], verbosity=asked["verbosity"])
            _owner.creation = self
            # Engines override this method, so that the instance's method is wrapped. A forked process inherits it.
            self.setup_worker_connection = _wrap_use_clone(self.setup_worker_connection)
        return create(self, *args, **kwargs)

    return create_test_db


def _wrap_use_clone(switch: Method) -> Method:
    @wraps(switch)
    def setup_worker_connection(*args: object) -> None:
        switch(*args)
        tables.use_clone(str(args[0]))

    return setup_worker_connection


def _wrap_clone(clone: Method) -> Method:
    @wraps(clone)
    def clone_test_db(self: object, *args: object, **kwargs: Any) -> None:
        clone(self, *args, **kwargs)
        if self is not _owner.creation:
            return
        if multiprocessing.get_start_method() != "fork":
            raise ImproperlyConfigured(
                "Parallel tests with an SQL database need forked processes: a spawned process would use the "
                "test table of the others. Run them without --parallel, or with pytest-xdist."
            )
        asked = _arguments(clone, self, args, kwargs)
        tables.clone_tables(asked["suffix"], keep=asked["keepdb"])

    return clone_test_db


def _wrap_destroy(destroy: Method) -> Method:
    @wraps(destroy)
    def destroy_test_db(self: object, *args: object, **kwargs: Any) -> None:
        destroy(self, *args, **kwargs)
        if self is not _owner.creation:
            return
        asked = _arguments(destroy, self, args, kwargs)
        if not asked["keepdb"]:
            tables.remove_tables(asked["suffix"] or "")
        if asked["suffix"] is None:
            tables.use_settings_tables()
            _owner.creation = None

    return destroy_test_db


def _arguments(method: Method, owner: object, args: tuple[object, ...], kwargs: dict[str, object]) -> dict[str, Any]:
    bound = inspect.signature(method).bind(owner, *args, **kwargs)
    bound.apply_defaults()
    return bound.arguments


class _TestContents:
    """The contents of the test tables before a class or a test, until they are restored."""

    def __init__(self, level: Level) -> None:
        self._level = level
        self._snapshot: Snapshot | None = None

    def take(self) -> None:
        """Store the contents before a test or a class of tests begins."""
        self.give_back()  # a test whose preparation was interrupted did not restore them
        if tables.are_in_use():
            self._snapshot = tables.snapshot()
            write_record.enter(self._level)

    def give_back(self, *, look: bool = False) -> None:
        """Restore the contents. With ``look``, a Scan also finds changes that were not recorded."""
        snapshot, self._snapshot = self._snapshot, None
        if snapshot is not None and tables.are_in_use():
            tables.restore(snapshot, look=look)
            write_record.leave(self._level)

    def empty(self) -> None:
        """Delete all items before Django flushes SQL, so that handlers of the flush find neither SQL rows nor items."""
        if self._snapshot is not None and tables.are_in_use():
            tables.restore({})


class _FinalScan:
    """Whether the test tables are scanned after the running test."""

    is_due = False


_by_class, _by_test, _final_scan = _TestContents(Level.CLASS), _TestContents(Level.TEST), _FinalScan()


def look_after_test(is_due: bool) -> None:
    """Set whether the test tables are scanned after the next test. Test functions have no class that would do so."""
    _final_scan.is_due = is_due


def _rolls_back(test: object) -> bool:
    """Return whether Django rolls the test back rather than flushing the database."""
    return isinstance(test, TestCase) and all(each.features.supports_transactions for each in _connections(test))


def _connections(test: Any) -> list[BaseDatabaseWrapper]:
    names = connections if test.databases == "__all__" else test.databases
    return [connections[name] for name in names]


def _wrap_set_up_class(set_up: Method) -> Method:
    @wraps(set_up)
    def setUpClass(cls: object) -> None:
        _by_class.take()
        try:
            set_up(cls)
        except BaseException:
            _by_class.give_back()
            raise

    return setUpClass


def _wrap_tear_down_class(tear_down: Method) -> Method:
    @wraps(tear_down)
    def tearDownClass(cls: object) -> None:
        try:
            tear_down(cls)
        finally:
            _by_class.give_back(look=True)

    return tearDownClass


def _wrap_skipped_class(tear_down: Method) -> Method:
    @wraps(tear_down)
    def tearDownClass(cls: object) -> None:
        tear_down(cls)
        _by_test.give_back()  # the first test is prepared with its class, even if the class is then skipped

    return tearDownClass


def _wrap_pre_setup(pre_setup: Method) -> Method:
    @wraps(pre_setup)
    def _pre_setup(cls: object) -> None:
        _by_test.take()
        try:
            pre_setup(cls)
        except BaseException:
            _by_test.give_back()  # Django does not tear down a test whose fixtures failed
            raise

    return _pre_setup


def _wrap_post_teardown(post_teardown: Method) -> Method:
    @wraps(post_teardown)
    def _post_teardown(self: object) -> None:
        try:
            if not _rolls_back(self):
                _by_test.empty()
            post_teardown(self)
        finally:
            _by_test.give_back(look=_final_scan.is_due)

    return _post_teardown


def _wrap_rollback(roll_back: Method) -> Method:
    @wraps(roll_back)
    def _rollback_atomics(cls: object, atomics: object) -> None:
        ours: list[Any] = [each for each in _connections(cls) if each.vendor == VENDOR]
        for connection in ours:
            connection.writes.forget()  # these writes are rolled back here
        roll_back(cls, atomics)

    return _rollback_atomics


_WRAPPERS: tuple[tuple[type, str, Callable[[Method], Method]], ...] = (
    (BaseDatabaseCreation, "create_test_db", _wrap_create),
    (BaseDatabaseCreation, "clone_test_db", _wrap_clone),
    (BaseDatabaseCreation, "destroy_test_db", _wrap_destroy),
    (TestCase, "setUpClass", _wrap_set_up_class),
    (TestCase, "tearDownClass", _wrap_tear_down_class),
    (TestCase, "_rollback_atomics", _wrap_rollback),
    (TransactionTestCase, "tearDownClass", _wrap_skipped_class),
    (TransactionTestCase, "_pre_setup", _wrap_pre_setup),
    (TransactionTestCase, "_post_teardown", _wrap_post_teardown),
)
