"""Signature Version 4 for DynamoDB: headers from a request's body, its moment and the caller's credentials.

Pure but for the key that is kept for a day: deriving it costs four of the five HMACs. The method is AWS's:
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

from __future__ import annotations

import copy
import hashlib
import hmac
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from botocore.handlers import BUILTIN_HANDLERS
from botocore.hooks import HierarchicalEmitter
from botocore.loaders import create_loader
from botocore.session import Session
from botocore.utils import normalize_url_path
from msgspec import Struct

if TYPE_CHECKING:
    from botocore.client import BaseClient
    from botocore.loaders import Loader


_ALGORITHM = "AWS4-HMAC-SHA256"


class Credentials(NamedTuple):
    """Whose request it is. A ``token`` belongs to temporary credentials."""

    access_key: str
    secret_key: str
    token: str | None = None


class _Day(Struct, frozen=True):
    """What one day's signatures share; a text of another day, key or region has a key of its own."""

    date: str
    secret_key: str
    scope: str
    key: bytes


class Signer:
    """Signs requests to one host in one region, posted to one target. Several threads may use it at once."""

    def __init__(self, host: str, region: str, service: str = "dynamodb", *, target: str = "/") -> None:
        self._host = host
        self._resource = _canonical(target)
        self._region = region
        self._service = service
        self._day = _Day("", "", "", b"")
        self._moment = (0, "")

    def signed(self, body: bytes, headers: dict[str, str], credentials: Credentials, seconds: float) -> dict[str, str]:
        """The headers to send with a POST of ``body``: those given, with their signature.

        The given names are lower case, their values have no spaces at their ends, and all of them are signed, with the
        host. ``seconds`` is the time since 1970.
        """
        stamp = self._stamp(int(seconds))
        day = self._key_of(stamp[:8], credentials.secret_key)
        told = {**headers, "host": self._host, "x-amz-date": stamp}
        if credentials.token:
            told["x-amz-security-token"] = " ".join(credentials.token.split())
        names = sorted(told)
        listed = ";".join(names)
        lines = "".join([f"{name}:{told[name]}\n" for name in names])
        request = f"POST\n{self._resource}\n{lines}\n{listed}\n{hashlib.sha256(body).hexdigest()}"
        digest = hashlib.sha256(request.encode()).hexdigest()
        text = f"{_ALGORITHM}\n{stamp}\n{day.scope}\n{digest}"
        signature = hmac.digest(day.key, text.encode(), "sha256").hex()
        told["authorization"] = (
            f"{_ALGORITHM} Credential={credentials.access_key}/{day.scope}, "
            f"SignedHeaders={listed}, Signature={signature}"
        )
        return told

    def _stamp(self, seconds: int) -> str:
        known = self._moment
        if known[0] != seconds:
            known = self._moment = (seconds, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(seconds)))
        return known[1]

    def _key_of(self, date: str, secret_key: str) -> _Day:
        day = self._day
        if day.date != date or day.secret_key != secret_key:
            key = f"AWS4{secret_key}".encode()
            for part in (date, self._region, self._service, "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            scope = f"{date}/{self._region}/{self._service}/aws4_request"
            # One assignment: another thread sees the old day or the new one, and both are whole.
            day = self._day = _Day(date, secret_key, scope, key)
        return day


def _canonical(target: str) -> str:
    """The path and the query of a target, as they are signed: on a line each."""
    if target == "/":
        return "/\n"
    path, _, query = target.partition("?")
    # As botocore signs it: the path is quoted once more, and the query's pairs are in order.
    pairs = sorted(tuple(pair.partition("=")[::2]) for pair in query.split("&")) if query else []
    return f"{quote(normalize_url_path(path), safe='/~')}\n{'&'.join(map('='.join, pairs))}"


# Sessions of botocore, which finds out endpoints and credentials and makes clients: what all need is made once.


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
