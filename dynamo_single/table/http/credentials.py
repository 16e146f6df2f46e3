"""Find the endpoint, certificates, and credentials of a table's requests, as botocore does.

``endpoint_of()`` returns ``None`` for endpoints that only botocore supports, such as one behind a proxy. The module
does not send requests to DynamoDB. botocore may request credentials from the machine's metadata service, and renews
them before they expire. All sessions of botocore share what is expensive to create.
"""

from __future__ import annotations

import copy
import os
import re
import ssl
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import ParseResult, quote, unquote, urlparse, urlunparse

from botocore.exceptions import NoCredentialsError
from botocore.handlers import BUILTIN_HANDLERS
from botocore.hooks import HierarchicalEmitter
from botocore.httpsession import get_cert_path
from botocore.loaders import create_loader
from botocore.session import Session
from botocore.utils import get_environ_proxies, is_valid_uri

from dynamo_single.conf import TableSettings
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.table.http.connections import Endpoint

if TYPE_CHECKING:
    from botocore.client import BaseClient
    from botocore.loaders import Loader

#: With any of these a local endpoint gets the caller's credentials too, because it may check them.
ENVIRONMENT_CREDENTIALS = {"AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"}

#: Regions of the commercial partition, whose endpoints follow one pattern:
#: https://docs.aws.amazon.com/general/latest/gr/ddb.html
_REGION = re.compile(r"(?:af|ap|ca|eu|il|me|mx|sa|us)-[a-z]+-\d")
#: Characters that an HTTP header cannot contain: control characters, such as line breaks, and others beyond Latin-1.
_UNSENDABLE = re.compile("[^\x20-\x7e\xa0-\xff]")
#: The ports that the header ``Host`` omits.
_PORTS = {"http": 80, "https": 443}
_PERCENT = re.compile("%[0-9A-Fa-f]{2}")
#: Options of the environment or a profile that replace the endpoint of the region.
_OTHER_ENDPOINTS = ("use_fips_endpoint", "use_dualstack_endpoint")


def endpoint_of(settings: TableSettings, session: Session) -> Endpoint | None:
    """Return the endpoint, or ``None`` if only botocore supports it: behind a proxy, or for one AWS account."""
    url = settings.endpoint_url or _regional(settings, session)
    if url is None:
        return None
    parts = _parts(url)
    shown = shown_url(url)
    if get_environ_proxies(shown):
        return None
    tls = parts.scheme == "https"
    return Endpoint(
        host=unquote(parts.hostname or ""),
        port=parts.port or _PORTS[parts.scheme],
        url=shown,
        tls=_tls(session) if tls else None,
        connect_timeout=settings.connect_timeout,
        read_timeout=settings.read_timeout,
        authority=_authority(parts),
        target=_target(parts),
    )


def _parts(url: str) -> ParseResult:
    """Return the parts of a URL; raise ``ConfigurationError``, without the URL, if it is not one of an HTTP server."""
    try:
        parts = urlparse(url)
        _ = parts.port
    except ValueError:
        parts = urlparse("")
    if parts.scheme not in _PORTS or not parts.hostname or not is_valid_uri(url):
        raise ConfigurationError(
            "The endpoint that AWS_ENDPOINT_URL_DYNAMODB, AWS_ENDPOINT_URL or the AWS profile names is no address of "
            "an HTTP server. Write it as http://host:port or https://host."
        )
    return parts


def shown_url(url: str) -> str:
    """Return a URL without user, password and query, which may be secret."""
    parts = urlparse(url)
    return urlunparse((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "", ""))


def _authority(parts: ParseResult) -> str:
    """Return the header ``Host``, which is signed: the host, and the port unless it is the default of the scheme."""
    host = (parts.hostname or "").rstrip(".")
    if ":" in host:
        host = f"[{host.partition('%')[0]}]"
    return host if parts.port in {None, _PORTS[parts.scheme]} else f"{host}:{parts.port}"


def _target(parts: ParseResult) -> str:
    """Return the path and the query, percent-encoded by the rules of urllib3.

    As in botocore, parameters after a ``;`` in the last part of the path are omitted.
    """
    query = f"?{_quoted(parts.query, '?')}" if parts.query else ""
    return (_quoted(parts.path, "") or "/") + query


def _quoted(text: str, also: str) -> str:
    upper, number = _PERCENT.subn(lambda found: found[0].upper(), text)
    percent = "%" if number == text.count("%") else ""
    return quote(upper, safe=f"!$&'()*+,;=:@/{also}{percent}")


def _regional(settings: TableSettings, session: Session) -> str | None:
    if _is_plain(session) and _REGION.fullmatch(settings.region):
        return f"https://dynamodb.{settings.region}.amazonaws.com"
    if session.get_config_variable("account_id_endpoint_mode") == "required":
        return None
    url: str = botocore_client(settings, session).meta.endpoint_url
    return url


def botocore_client(settings: TableSettings, session: Session, **options: Any) -> BaseClient:
    """Return a client of botocore for the endpoint, whose URL does not contain a user.

    Raise ``ConfigurationError`` if the environment or the profile contains an invalid endpoint or invalid certificates.
    """
    options["region_name"] = settings.region
    try:
        client = new_client(session, endpoint_url=settings.endpoint_url, **options)
        url = client.meta.endpoint_url
    except ValueError:
        url = ""
    parts = _parts(url)
    if parts.scheme == "https":
        bundle_of(session)
    if "@" not in parts.netloc:
        return client
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2])
    return new_client(session, endpoint_url=urlunparse(bare), **options)


def _is_plain(session: Session) -> bool:
    """Return whether neither the environment nor the profile replaces the endpoint of the region."""
    if any(session.get_config_variable(name) for name in _OTHER_ENDPOINTS):
        return False
    if any(name.startswith("AWS_ENDPOINT_URL") for name in os.environ):
        return False
    if session.get_config_variable("account_id_endpoint_mode") == "required":
        return False
    return not session.get_scoped_config().keys() & {"endpoint_url", "services"}


def _tls(session: Session) -> ssl.SSLContext:
    """Return a context that trusts botocore's certificates and requires TLS 1.2."""
    context = ssl.create_default_context(cafile=bundle_of(session) or get_cert_path(True))
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def bundle_of(session: Session) -> str | None:
    """Return the file of certificates that the environment or the profile sets, in botocore's order.

    Raise ``ConfigurationError`` if the file is missing or does not contain certificates.
    """
    bundle = session.get_config_variable("ca_bundle") or os.environ.get("REQUESTS_CA_BUNDLE")
    if not bundle:
        return None
    try:
        ssl.create_default_context(cafile=bundle)
    except OSError as error:  # also an SSLError
        raise ConfigurationError(
            f"The certificates {bundle!r} cannot be read: {error.strerror or error}. Correct the path in "
            "AWS_CA_BUNDLE, in ca_bundle of the AWS profile, or in REQUESTS_CA_BUNDLE."
        ) from error
    return str(bundle)


class Credentials(NamedTuple):
    """An access key; temporary credentials have a ``token``."""

    access_key: str
    secret_key: str
    token: str | None = None


class CredentialSource(Protocol):
    """The source of the current credentials."""

    #: Let botocore renew credentials that are due, and return an object that changes with them. ``None`` if the
    #: credentials never change.
    renewed: Callable[[], object] | None

    def current(self) -> Credentials | None:
        """Return the credentials, or ``None`` if there are none."""

    def may_wait(self) -> bool:
        """Return whether ``current()`` may send a request or start a process first."""


class UnsendableCredentials(NoCredentialsError):
    """Credentials contain a character that a header cannot contain; the error names them and their source."""

    fmt = "The {names} from {source} has a line break, another control character, or a letter beyond Latin-1"


class _Unchanging:
    """Invented credentials for a local engine."""

    renewed: Callable[[], object] | None = None

    def current(self) -> Credentials:
        return Credentials("local", "local")

    def may_wait(self) -> bool:
        return False


class _Found:
    """The credentials that botocore's chain has found, or ``None``."""

    def __init__(self, found: Any) -> None:
        self._found = found
        # Credentials of a role, a process or a login expire; botocore renews them when they are read.
        self._due: Callable[[], bool] | None = getattr(found, "refresh_needed", None)
        self.renewed: Callable[[], object] | None = None if self._due is None else found.get_frozen_credentials

    def current(self) -> Credentials | None:
        if self._found is None:
            return None
        frozen = self._found.get_frozen_credentials()
        found = Credentials(frozen.access_key or "", frozen.secret_key or "", frozen.token)
        if _UNSENDABLE.search("".join([part or "" for part in found])):
            raise unsendable(found, str(getattr(self._found, "method", "")))
        return found

    def may_wait(self) -> bool:
        return self._due is not None and self._due()


def unsendable(found: Credentials, method: str) -> UnsendableCredentials:
    """Return the error of credentials that a header cannot contain, with their names and source."""
    names = ("access key", "secret access key", "session token")
    wrong = [name for name, part in zip(names, found, strict=True) if part and _UNSENDABLE.search(part)]
    variables = [f"AWS_{name.upper().replace(' ', '_')}" for name in wrong]
    variables = [f"{name}_ID" if name == "AWS_ACCESS_KEY" else name for name in variables]
    source = f"the environment ({', '.join(variables)})" if method == "env" else f"botocore's source {method!r}"
    return UnsendableCredentials(names=" and the ".join(wrong), source=source)


def credentials_of(settings: TableSettings, session: Session) -> CredentialSource:
    """Return the source of the credentials: botocore's chain, with the environment, a profile, or a role.

    A local engine gets invented credentials if the environment does not set any.
    """
    if settings.is_local and not ENVIRONMENT_CREDENTIALS & os.environ.keys():
        return _Unchanging()
    return _Found(session.get_credentials())


def user_agent_of(session: Session) -> str:
    """Return botocore's user agent, without characters of the environment that a header cannot contain."""
    return _UNSENDABLE.sub("-", session.user_agent())


def new_session() -> Session:
    """Return a new session with botocore's event handlers.

    Each session has a copy of one set of handlers, because registering them takes longer than everything else.
    """
    return Session(event_hooks=copy.copy(_handlers(len(BUILTIN_HANDLERS))), include_builtin_handlers=False)


def new_client(session: Session, **options: Any) -> BaseClient:
    """Return a botocore client for DynamoDB; a process reads the description of the service once."""
    session.register_component("data_loader", _loader(session.get_config_variable("data_path")))
    return session.create_client("dynamodb", **options)


@lru_cache(maxsize=1)
def _handlers(number: int) -> HierarchicalEmitter:
    """Return botocore's handlers; a library that replaces AWS in tests changes their ``number`` when it is imported."""
    handlers = HierarchicalEmitter()
    Session(event_hooks=handlers)
    return handlers


@lru_cache(maxsize=8)
def _loader(data_path: str | None) -> Loader:
    """Return the loader of service descriptions, with the additional folders in ``AWS_DATA_PATH``."""
    return create_loader(data_path)
