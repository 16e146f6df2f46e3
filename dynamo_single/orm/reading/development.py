"""The limit of items read for nothing where a project is developed and tested, and does not set one.

There a query that lists a whole model is found before production has the items that make it expensive. This module
reads settings and Python's stack, and sends nothing.
"""

from __future__ import annotations

import sys
import threading
from types import FrameType
from typing import Final

from django.conf import settings
from django.core.management.base import BaseCommand

#: The most items that one query may read for nothing.
MOST: Final = 5000
#: Where pages and jobs look through more on purpose.
_ADMINS: Final = ("django.contrib.admin.", "dynamo_single.admin.")

#: How the modules of commands begin that serve pages.
_SERVERS: Final = ("runserver", "testserver")


def limit() -> int | None:
    """Return ``MOST`` under ``DEBUG`` and in tests, and ``None`` in production, in the admin and in commands.

    Of a command its main thread counts too, which waits for the others. Commands that serve or test are none.
    """
    return MOST if (settings.DEBUG or _is_tested()) and not _is_exempt() else None


def _is_tested() -> bool:
    # ``setup_test_environment()``, which every runner calls, puts it there and takes it away.
    return hasattr(sys.modules.get("django.core.mail"), "outbox")


def _is_exempt() -> bool:
    main = sys._current_frames().get(threading.main_thread().ident or 0)
    own = _asked_by(sys._getframe())
    return (own or _asked_by(main)) == "exempt"


def _asked_by(frame: FrameType | None) -> str | None:
    """Return the nearest of what asks: ``exempt`` for the admin and a command, ``served`` for a server or a runner."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith(_ADMINS):
            return "exempt"
        if frame.f_code is BaseCommand.execute.__code__:
            name = type(frame.f_locals["self"]).__module__.rpartition(".")[2]
            return "served" if name == "test" or name.startswith(_SERVERS) else "exempt"
        frame = frame.f_back
    return None
