"""Count statements of the ORM, as upstream's ``assertNumQueries`` expects; the app's own counts requests.

A statement is one read or write by a test's code, with any number of requests. All requests of a statement share a
frame of the app: the outermost frame that runs only this statement. Related objects of ``select_related()`` belong to
the previous statement, because SQL joins them to it.

Both numbers are kept: ``asserted`` has, for each assertion, the expected number, the statements and the requests.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar
from types import FrameType
from typing import Any

from django.test import testcases

from dynamo_single.table import flow
from dynamo_single.table.redirects import SentRequest
from dynamo_single.test_tables import contents

#: The app's modules whose functions send statements.
STATEMENTS = "dynamo_single.orm."
#: Modules whose functions run several statements sequentially, each with its exceptions.
CONTAINERS = {
    f"{STATEMENTS}query.many_to_many": {"get_prefetch_querysets", "_prefetch"},
    f"{STATEMENTS}results.prefetch": set[str](),
    f"{STATEMENTS}query.write_methods": {"_removed", "_updated", "_created", "_bulk_updated", "delete", "update"},
    f"{STATEMENTS}query.async_methods": set[str](),
    f"{STATEMENTS}query.iterate": set[str](),
}
#: The function that reads related objects, which SQL would join.
JOINED = f"{STATEMENTS}results.prefetch", "fetch_related"

#: ``(expected, statements, requests)`` of the current test's assertions.
asserted: list[tuple[int, int, int]] = []
#: The statement that a thread of the app reads for.
_reading: ContextVar[FrameType | None] = ContextVar("reading", default=None)


def install() -> None:
    """Count statements in this process from now on."""
    submit = flow._pool.submit

    def submit_for(work: Any, argument: Any) -> Any:
        token = _reading.set(_statement())
        try:
            return submit(work, argument)
        finally:
            _reading.reset(token)

    flow._pool.submit = submit_for  # type: ignore[method-assign]
    contents._Log.__call__ = _note  # type: ignore[method-assign]
    context: Any = testcases._AssertNumQueriesContext  # type: ignore[attr-defined]  # private
    leave = context.__exit__

    def exit_context(self: Any, kind: Any, error: Any, traceback: Any) -> None:
        if kind is None:
            found = list(self.connection.queries_log)[self.initial_queries :]
            asserted.append((self.num, len(found), sum(len(each.get("requests", ())) for each in found)))
        leave(self, kind, error, traceback)

    context.__exit__ = exit_context


def _note(self: Any, sent: SentRequest) -> None:
    logging = [connection for connection in self._connections if connection.queries_logged]
    if not logging:
        return
    line, frame = contents.request_line(sent), _statement()
    for connection in logging:
        log = connection.queries_log
        same = next((each for each in reversed(log) if each.get("frame") is frame), None)
        if same is None and frame is None and log:
            # A thread that reads for the last statement, or related objects, which SQL would join.
            same = log[-1]
        if same is None:
            log.append({"sql": line, "time": f"{sent.seconds:.3f}", "frame": frame, "requests": [line]})
        else:
            same["requests"].append(line)


def _statement() -> FrameType | None:
    """Return the frame that all requests of a statement share; ``None`` for the previous statement."""
    if flow._pool.is_own_thread():
        return _reading.get()
    frames = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    found = None
    for frame in reversed(frames):
        module, name = frame.f_globals.get("__name__", ""), frame.f_code.co_name
        if (module, name) == JOINED:
            return None
        if name not in CONTAINERS.get(module, {name}):
            found = None
        elif found is None and module.startswith(STATEMENTS):
            found = frame
    return found
