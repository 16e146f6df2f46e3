"""Sessions of botocore, which finds out endpoints and credentials and makes clients: what all need is made once."""

from __future__ import annotations

import copy
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from botocore.handlers import BUILTIN_HANDLERS
from botocore.hooks import HierarchicalEmitter
from botocore.loaders import create_loader
from botocore.session import Session

if TYPE_CHECKING:
    from botocore.client import BaseClient
    from botocore.loaders import Loader


def new_session() -> Session:
    """A session that has found nothing out yet, with botocore's handlers of its events.

    To register them takes far longer than the rest, so that every session has a copy of those of the first one.
    """
    return Session(event_hooks=copy.copy(_handlers(len(BUILTIN_HANDLERS))), include_builtin_handlers=False)


def new_client(session: Session, **options: Any) -> BaseClient:
    """A botocore client for DynamoDB; what describes the service is read from its files once in a process."""
    session.register_component("data_loader", _loader(session.get_config_variable("data_path")))
    return session.create_client("dynamodb", **options)


@lru_cache(maxsize=1)
def _handlers(number: int) -> HierarchicalEmitter:
    """All that there are: a library that stands in for AWS in tests adds one when it is imported."""
    handlers = HierarchicalEmitter()
    Session(event_hooks=handlers)
    return handlers


@lru_cache(maxsize=8)
def _loader(data_path: str | None) -> Loader:
    """What reads the files that describe services, and remembers them; ``AWS_DATA_PATH`` can name further folders."""
    return create_loader(data_path)
