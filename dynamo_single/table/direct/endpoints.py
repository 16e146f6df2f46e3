"""Where a table's requests go and whose they are, as botocore finds it out: endpoint, certificates and credentials.

What this request path does not know how to do is botocore's: ``endpoint_of()`` then gives ``None``. Nothing here sends
a request to DynamoDB; credentials may be asked of the machine's metadata service, and are renewed before they expire.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from botocore.httpsession import get_cert_path
from botocore.session import Session
from botocore.utils import get_environ_proxies

from dynamo_single.conf import TableSettings
from dynamo_single.table.direct.client import CredentialSource, DirectClient
from dynamo_single.table.direct.connections import Endpoint
from dynamo_single.table.direct.sessions import new_client
from dynamo_single.table.direct.signing import Credentials

#: With any of these a local endpoint gets the caller's credentials too, because it may check them.
ENVIRONMENT_CREDENTIALS = {"AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"}

#: Regions of the commercial partition, whose endpoints have one form: https://docs.aws.amazon.com/general/latest/gr/ddb.html
_REGION = re.compile(r"(?:af|ap|ca|eu|il|me|mx|sa|us)-[a-z]+-\d")
#: Set in the environment or a profile, these make the endpoint another one than the region's own.
_OTHER_ENDPOINTS = ("use_fips_endpoint", "use_dualstack_endpoint")


def endpoint_of(settings: TableSettings, session: Session) -> Endpoint | None:
    """The endpoint, or ``None`` where only botocore knows the way: a proxy, or an endpoint of its account's own."""
    url = settings.endpoint_url or _regional(settings, session)
    if url is None or get_environ_proxies(url):
        return None
    parts = urlsplit(url)
    tls = parts.scheme == "https"
    return Endpoint(
        host=parts.hostname or "",
        port=parts.port or (443 if tls else 80),
        url=url,
        tls=_tls(session) if tls else None,
        connect_timeout=settings.connect_timeout,
        read_timeout=settings.read_timeout,
    )


def _regional(settings: TableSettings, session: Session) -> str | None:
    if _is_plain(session) and _REGION.fullmatch(settings.region):
        return f"https://dynamodb.{settings.region}.amazonaws.com"
    if session.get_config_variable("account_id_endpoint_mode") == "required":
        return None
    url: str = new_client(session, region_name=settings.region).meta.endpoint_url
    return url


def _is_plain(session: Session) -> bool:
    """Whether nothing in the environment or the profile names another endpoint than the region's own."""
    if any(session.get_config_variable(name) for name in _OTHER_ENDPOINTS):
        return False
    if any(name.startswith("AWS_ENDPOINT_URL") for name in os.environ):
        return False
    if session.get_config_variable("account_id_endpoint_mode") == "required":
        return False
    return not session.get_scoped_config().keys() & {"endpoint_url", "services"}


def _tls(session: Session) -> ssl.SSLContext:
    """A context with the certificates that botocore would trust, and none older than TLS 1.2."""
    bundle = session.get_config_variable("ca_bundle") or os.environ.get("REQUESTS_CA_BUNDLE")
    context = ssl.create_default_context(cafile=bundle or get_cert_path(True))
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


class _Unchanging:
    """Credentials that mean nothing."""

    def current(self) -> Credentials:
        return Credentials("local", "local")

    def may_wait(self) -> bool:
        return False


class _Found:
    """Credentials as botocore's chain has found them; ``None`` if it found none."""

    def __init__(self, found: Any) -> None:
        self._found = found
        # Those of a role, a process or a login expire; botocore renews them as they are asked for.
        self._due: Callable[[], bool] | None = getattr(found, "refresh_needed", None)

    def current(self) -> Credentials | None:
        if self._found is None:
            return None
        frozen = self._found.get_frozen_credentials()
        return Credentials(frozen.access_key or "", frozen.secret_key or "", frozen.token)

    def may_wait(self) -> bool:
        return self._due is not None and self._due()


def credentials_of(settings: TableSettings, session: Session) -> CredentialSource:
    """What gives the credentials of the moment: the environment's, a profile's or a role's, by botocore's chain.

    A local engine without any in the environment gets ones that mean nothing.
    """
    if settings.is_local and not ENVIRONMENT_CREDENTIALS & os.environ.keys():
        return _Unchanging()
    return _Found(session.get_credentials())


def direct_client(settings: TableSettings, session: Session) -> DirectClient | None:
    """A client for the settings' endpoint, or ``None`` where only botocore knows the way."""
    endpoint = endpoint_of(settings, session)
    if endpoint is None:
        return None
    return DirectClient(
        endpoint,
        settings.region,
        credentials_of(settings, session),
        max_attempts=settings.max_attempts,
        pool_size=settings.max_pool_connections,
        user_agent=session.user_agent(),
    )
