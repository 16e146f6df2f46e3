"""Test tables that replace the tables of the settings, the guard of each request in tests, and its listeners.

Test tables and guard belong to the process rather than to a thread, so that nothing in a test bypasses them. Child
processes inherit both by an environment variable. Listeners, captures, and interceptors belong to a block. The module
does not depend on Django's tests, botocore, or tables.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from dynamo_single.conf import TableSettings
from dynamo_single.conf.shapes import OWN, Shape
from dynamo_single.exceptions import AccessOutsideTest, ConfigurationError
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.table.request import Parameters, Response

if TYPE_CHECKING:
    from dynamo_single import engines
else:
    engines = LazyModule("dynamo_single.engines")

#: The test tables and engines of the parent process as JSON, or ``UNGUARDED``.
VARIABLE: Final = "DYNAMO_SINGLE_TEST_TABLES"
#: The value with which a process of a test run reaches the tables of its settings.
UNGUARDED: Final = "unguarded"
#: pytest sets the first one for a whole run since version 8.2, and the second one during each test.
_OF_PYTEST: Final = ("PYTEST_VERSION", "PYTEST_CURRENT_TEST")

#: Called before a request is sent, with its operation and parameters; raises if a test must not send it.
Guard = Callable[[TableSettings, str, Parameters], None]


class Place(Struct, frozen=True):
    """The location, name, and shape of a table."""

    endpoint_url: str | None
    region: str
    name: str
    shape: Shape = OWN

    @classmethod
    def of(cls, settings: TableSettings) -> Place:
        """Return the place of a table."""
        return cls(settings.endpoint_url, settings.region, settings.table_name, settings.shape)

    def settings(self, like: TableSettings) -> TableSettings:
        """Return the settings ``like``, for the table at this place, with on-demand billing."""
        return replace(
            like,
            endpoint_url=self.endpoint_url,
            region=self.region,
            table_name=self.name,
            shape=self.shape,
            billing_mode="PAY_PER_REQUEST",
            read_capacity=None,
            write_capacity=None,
        )


class _Inherited(Struct):
    """What ``VARIABLE`` contains as JSON."""

    tables: list[tuple[Place, Place]]
    engines: list[str]


class _State(Struct):
    stand_ins: Mapping[Place, Place] = field(default_factory=dict)
    guard: Guard | None = None
    #: Addresses of the engines that tests run themselves, each with the number of blocks that run it.
    engines: Counter[str] = field(default_factory=Counter)
    #: Whether tests run in this process, so that its children are guarded even if there are no test tables.
    in_tests: bool = False
    #: The listeners of the whole process, in every thread, each with the function that says whether it listens now.
    observers: tuple[tuple[Listener, Callable[[], bool]], ...] = ()
    #: Whether a test run started this process. The variable is not enough, because this process may have set it since.
    is_child: bool = False


state: Final = _State()


def inherit() -> None:
    """Use the test tables, the engines and the guard of the parent process.

    Raise ``ConfigurationError`` if a table or an engine is not on this machine.
    """
    state.stand_ins, state.engines, state.guard = {}, Counter(), None
    text = os.environ.get(VARIABLE)
    state.is_child = bool(text) and text != UNGUARDED
    if text and state.is_child:
        _read(text)
    state.guard = default_guard()


def _read(text: str) -> None:
    try:
        inherited = msgspec.json.decode(text, type=_Inherited)
        tables, own = dict(inherited.tables), Counter(inherited.engines)
        named = [*tables.values(), *(Place(url, "", "") for url in own)]
        local = all(each.settings(TableSettings("", "")).is_local for each in named)
    except (msgspec.MsgspecError, ValueError) as error:
        raise ConfigurationError(f"The environment variable {VARIABLE} cannot be read; remove it.") from error
    if not local:
        raise ConfigurationError(f"The environment variable {VARIABLE} names a table that is not on this machine.")
    state.stand_ins, state.engines = tables, own


def default_guard() -> Guard | None:
    """Return the guard of pytest without the plugin, and of a process that tests have started.

    Return ``None`` outside of test runs, and if the variable is ``UNGUARDED``.
    """
    if os.environ.get(VARIABLE) == UNGUARDED:
        return None
    return refuse_others if state.is_child or any(name in os.environ for name in _OF_PYTEST) else None


def watch() -> None:
    """Guard this process from now on if it turns out to be one of tests; called when a table is first used."""
    if state.guard is None:
        state.guard = default_guard()


def refuse_others(settings: TableSettings, operation: str, params: Parameters) -> None:
    """Raise ``AccessOutsideTest`` unless the table is a test table or on an engine that the tests run."""
    if is_stand_in(settings) or is_test_engine(settings) or settings.endpoint_url in engines.running:
        return
    started = "this process was started by a test run" if state.is_child else "pytest runs without the plugin"
    raise AccessOutsideTest(
        f"Cannot send {operation} to the table {settings.table_name!r} at {settings.place}: {started}, and "
        "there is no test table in its place. Nothing was sent. Run pytest with `-p "
        "dynamo_single.pytest_plugin`, use a test with a database, or run an engine with "
        "dynamo_single.testing.local_engine(). To reach the table on purpose, set the environment variable "
        f"{VARIABLE}={UNGUARDED}."
    )


def stand_in_for(settings: TableSettings) -> TableSettings:
    """Return the settings of the test table that replaces a table, or the same settings if there is none."""
    found = state.stand_ins.get(Place.of(settings)) if state.stand_ins else None
    return settings if found is None else found.settings(settings)


def is_stand_in(settings: TableSettings) -> bool:
    """Return whether the settings belong to a test table in use."""
    return Place.of(settings) in state.stand_ins.values()


def is_test_engine(settings: TableSettings) -> bool:
    """Return whether the table is on an engine that a test runs itself."""
    return settings.endpoint_url is not None and state.engines[settings.endpoint_url] > 0


def set_test_tables(stand_ins: Mapping[TableSettings, TableSettings]) -> None:
    """Replace the first table of each pair by the second one, here and in child processes."""
    state.stand_ins = {Place.of(declared): Place.of(found) for declared, found in stand_ins.items()}
    publish()


def publish() -> None:
    """Let processes that are started from here inherit the test tables and engines, and the guard while tests run."""
    if os.environ.get(VARIABLE) == UNGUARDED:
        return
    own = sorted(url for url, blocks in state.engines.items() if blocks)
    if not (state.stand_ins or own or state.in_tests):
        os.environ.pop(VARIABLE, None)
        return
    os.environ[VARIABLE] = msgspec.json.encode(_Inherited([*state.stand_ins.items()], own)).decode()


inherit()


Interceptor = Callable[[str, Parameters], Response | None]


class SentRequest(Struct, frozen=True):
    """One request as it was sent.

    If it failed, ``response`` is ``None`` and ``error`` is DynamoDB's error code. ``retries`` counts the further
    attempts of a successful request.
    """

    operation: str
    params: Parameters
    response: Mapping[str, Any] | None
    seconds: float
    consumed: float
    error: str = ""
    retries: int = 0


Listener = Callable[[SentRequest], object]

#: The listeners and the interceptors of the current context.
LISTENERS: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())
INTERCEPTORS: ContextVar[tuple[Interceptor, ...]] = ContextVar("interceptors", default=())


@contextmanager
def capture_requests() -> Iterator[list[SentRequest]]:
    """Collect the requests that the block sends, in the order of their responses; blocks may be nested.

    Requests of other threads are not collected, except in threads that reads in the block and ``sync_to_async`` use.
    """
    sent: list[SentRequest] = []
    with listening(sent.append):
        yield sent


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call ``listener`` with each request of the block after its response; several threads may call it in parallel."""
    token = LISTENERS.set((*LISTENERS.get(), listener))
    try:
        yield
    finally:
        LISTENERS.reset(token)


def listen(listener: Listener) -> None:
    """Call ``listener`` with each request of this context, until ``unlisten()``."""
    unlisten(listener)
    LISTENERS.set((*LISTENERS.get(), listener))


def unlisten(listener: Listener) -> None:
    """Remove a listener of ``listen()``, if it is there."""
    LISTENERS.set(tuple(each for each in LISTENERS.get() if each != listener))


def observe(listener: Listener, is_wanted: Callable[[], bool] = lambda: True) -> None:
    """Call ``listener`` with each request of this process, in whatever thread, until ``unobserve()``.

    A request is measured only if ``is_wanted()`` returns ``True`` before it is sent.
    """
    unobserve(listener)
    state.observers = (*state.observers, (listener, is_wanted))


def is_observed() -> bool:
    """Return whether a listener of ``observe()`` wants the next request."""
    for _, is_wanted in state.observers:  # noqa: SIM110 - a generator would cost each request a microsecond
        if is_wanted():
            return True
    return False


def unobserve(listener: Listener) -> None:
    """Remove a listener of ``observe()``, if it is there."""
    state.observers = tuple(each for each in state.observers if each[0] != listener)


@contextmanager
def intercept(interceptor: Interceptor) -> Iterator[None]:
    """Call ``interceptor(operation, params)`` before each request of the block: it may raise, or return a response.

    The innermost interceptor is called first. If it returns ``None``, the next one is called, or the request is sent.
    """
    token = INTERCEPTORS.set((*INTERCEPTORS.get(), interceptor))
    try:
        yield
    finally:
        INTERCEPTORS.reset(token)


def notify_listeners(
    operation: str,
    params: Parameters,
    response: Mapping[str, object] | None,
    seconds: float,
    error: str,
    retries: int = 0,
) -> None:
    """Call each listener with a request that has a response or failed."""
    sent = SentRequest(operation, params, response, seconds, _consumed(response), error, retries)
    for listener in (*LISTENERS.get(), *(listener for listener, is_wanted in state.observers if is_wanted())):
        listener(sent)


def intercepted(operation: str, params: Parameters) -> dict[str, object] | None:
    """Return the response of an interceptor, the innermost first; ``None`` if the request has to be sent."""
    for interceptor in reversed(INTERCEPTORS.get()):
        if (answer := interceptor(operation, params)) is not None:
            return answer
    return None


def _consumed(response: Mapping[str, Any] | None) -> float:
    consumed = (response or {}).get("ConsumedCapacity") or ()
    parts = [consumed] if isinstance(consumed, Mapping) else consumed
    return float(sum(part.get("CapacityUnits", 0.0) for part in parts))
