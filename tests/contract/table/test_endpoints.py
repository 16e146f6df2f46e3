"""A request has botocore's address for any source of the endpoint, and an invalid one raises this app's error."""

from __future__ import annotations

import logging
import os
import socket
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from botocore.auth import _host_from_url
from botocore.config import Config
from botocore.session import Session
from django.test import override_settings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynamo_single.conf import TableSettings
from dynamo_single.exceptions import ConfigurationError, DynamoSingleError, InvalidCredentials
from dynamo_single.table import Request, Table, get_table
from dynamo_single.table.http import credentials
from dynamo_single.table.http.credentials import endpoint_of, new_client
from tests.contract.table.scripted import reply
from tests.contract.table.test_transports import Transport, transport
from tests.deep import examples
from tests.strict import IS_STRICT, Received, Refused, in_front_of, read_request

__all__ = ["transport"]

KEYS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "not/a+secret"}
KEY = {"pk": {"S": "a"}, "sk": {"S": "b"}}
GET = Request("GetItem", {"Key": KEY})
#: Clients are cached by their settings, and no other test uses these timeouts.
LIMITS = count(2000)


class Anywhere:
    """A server that receives every connection in the block; it records the data and the intended host."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.came: list[Received] = []
        self.hosts: list[tuple[str, int]] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                try:
                    self.came.append(read_request(connection))
                except Refused as refused:
                    self.came.append(Received("", str(refused), "", (), b""))
                connection.sendall(reply(connection="close"))

    def addresses(self, host: str, port: int, *_: object, **__: object) -> list[Any]:
        """Replace ``socket.getaddrinfo``: every name leads to this server."""
        self.hosts.append((host, port))
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", self.port))]


@pytest.fixture(scope="module")
def anywhere() -> Iterator[Anywhere]:
    """The server, for the module."""
    server = Anywhere()
    yield server
    server.listener.close()


HOSTS = st.sampled_from(
    ["127.0.0.1", "localhost", "db.example", "DB.Example.COM", "[::1]", "[2001:DB8::A]", "db-1.example", "x.example."]
)
USERS = st.sampled_from(["", "", "user@", "user:hidden-word@", ":hidden-word@", "a%40b:hidden-word@"])
PORTS = st.sampled_from(["", ":", ":80", ":443", ":8000", ":08000"])
SEGMENTS = st.text(st.sampled_from("aZ09-._~!$&'()*+,;=:@%2f /"), max_size=12)
PATHS = st.just("") | st.just("/") | SEGMENTS.map("/{}".format)
QUERIES = st.just("") | st.text(st.sampled_from("ab=&%2f~+,:/?"), max_size=10).map("?{}".format)
ENDS = st.sampled_from(["", "", "#end"])
SCHEMES = st.sampled_from(["http", "HTTP"])
URLS = st.builds("{}://{}{}{}{}{}{}".format, SCHEMES, USERS, HOSTS, PORTS, PATHS, QUERIES, ENDS)


@contextmanager
def environment(**variables: str) -> Iterator[None]:
    """An environment with credentials, without proxies, and with these variables."""
    with mock.patch.dict(os.environ, {**KEYS, "NO_PROXY": "*", **variables}):
        yield


def elsewhere(**options: Any) -> Any:
    """Settings of a table at no endpoint of their own, for which no other test has made a client."""
    declared = {"TABLE_NAME": "single-table", "REGION": "us-east-1", "MAX_ATTEMPTS": 1, "READ_TIMEOUT": next(LIMITS)}
    return override_settings(DYNAMO_SINGLE={"default": declared | options})


def sent_by_botocore(server: Anywhere, url: str) -> tuple[Received, tuple[str, int]]:
    """Return botocore's request to an endpoint, and the host that it connects to."""
    config = Config(retries={"total_max_attempts": 1})
    client: Any = new_client(Session(), region_name="us-east-1", endpoint_url=url, config=config)
    client.get_item(TableName="single-table", Key={"pk": {"S": "a"}})
    return server.came[-1], server.hosts[-1]


def sent_by_us(server: Anywhere, transport: str, **variables: str) -> tuple[Received, tuple[str, int]]:
    """Return the request of one of the app's paths in an environment, and the host that it connects to."""
    with environment(**variables), elsewhere(TRANSPORT=transport):
        get_table().send(GET)
    return server.came[-1], server.hosts[-1]


def address(received: Received) -> tuple[str, str, list[str]]:
    """Return the address in a request."""
    return received.method, received.target, [value for name, value in received.headers if name == "host"]


@pytest.mark.parametrize("path", ["direct", "botocore"])
@settings(max_examples=examples(10, 1000), suppress_health_check=list(HealthCheck))
@given(url=URLS, variable=st.sampled_from(["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB"]))
def test_address_from_environment_is_sent_as_botocore_sends_it(
    anywhere: Anywhere, path: str, url: str, variable: str
) -> None:
    """The connection, the request line, and one header Host; no user in any of the bytes."""
    with mock.patch("socket.getaddrinfo", anywhere.addresses):
        with environment():
            theirs, to = sent_by_botocore(anywhere, url)
        ours, at = sent_by_us(anywhere, path, **{variable: url})
    assert address(ours) == address(theirs)
    assert (at[0].rstrip("."), at[1]) == (to[0].rstrip("."), to[1])
    assert "hidden-word" not in repr(ours)


@given(url=URLS)
def test_host_over_tls_is_botocores(url: str) -> None:
    """Without the port that is its own; the dot that ends a name is not in the header, which http.client leaves out."""
    address = url.replace("http", "https", 1).replace("HTTP", "HTTPS", 1).replace("x.example.", "x.example")
    with mock.patch.object(credentials, "_tls", lambda session: None), environment():
        found = endpoint_of(TableSettings("default", "single-table", endpoint_url=address), Session())
    assert found is not None
    assert found.authority == _host_from_url(address)


in_front = pytest.mark.skipif(IS_STRICT, reason="the engine has a strict server in front of it")


@in_front
@pytest.mark.parametrize("path", ["/", "/engine", "/engine/", "/a%20b/c~d"])
@pytest.mark.parametrize("source", ["setting", "variable"])
def test_path_of_endpoint_is_kept_and_signed(transport: Transport, table: Table, path: str, source: str) -> None:
    """The server has AWS's rules, and ``Host`` contains only the host and the port."""
    with in_front_of(table, path=path, secrets={"AKIDEXAMPLE": "not/a+secret"}) as server:
        url = f"{server.url}{path}"
        options = {"ENDPOINT_URL": url} if source == "setting" else {}
        variables = {"AWS_ENDPOINT_URL": url} if source == "variable" else {}
        with environment(**variables), elsewhere(TRANSPORT=transport.name, **options):
            transport.send(GET)
    assert [received.target for received in server.taken] == [path]
    assert server.refused == []


def test_user_of_endpoint_is_in_no_message(transport: Transport, caplog: pytest.LogCaptureFixture) -> None:
    """Logs do not contain it either: if no server listens, the error omits it."""
    caplog.set_level(logging.INFO)
    variables = {"AWS_ENDPOINT_URL": "http://someone:hidden-word@127.0.0.1:1/x"}
    with environment(**variables), elsewhere(TRANSPORT=transport.name), pytest.raises(DynamoSingleError) as raised:
        transport.send(GET)
    told = "".join(traceback.format_exception(raised.value))
    assert "http://127.0.0.1:1/x" in told
    assert "hidden-word" not in told + caplog.text


@pytest.mark.parametrize(
    "url", ["db.example:8000", "ftp://db.example", "http://db.example:99999", "http://db_x.example", "http://db.\u00e4"]
)
def test_endpoint_of_no_http_server_is_configuration_error(transport: Transport, url: str) -> None:
    """The message names the variables instead of the address, which may contain a secret."""
    with environment(AWS_ENDPOINT_URL=url), elsewhere(TRANSPORT=transport.name):
        with pytest.raises(ConfigurationError, match="AWS_ENDPOINT_URL") as raised:
            transport.send(GET)
        assert url not in str(raised.value)


@pytest.mark.parametrize("variable", ["AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"])
@pytest.mark.parametrize("holds", [None, "", "no certificate"])
def test_unreadable_certificates_are_configuration_error(
    transport: Transport, tmp_path: Path, variable: str, holds: str | None
) -> None:
    """The message names the file and the variables."""
    bundle = tmp_path / "bundle.pem"
    if holds is not None:
        bundle.write_text(holds)
    others = {name: value for name, value in os.environ.items() if not name.endswith("_CA_BUNDLE")}
    with (
        mock.patch.dict(os.environ, {**others, **KEYS, variable: str(bundle)}, clear=True),
        elsewhere(TRANSPORT=transport.name, ENDPOINT_URL="https://127.0.0.1:1"),
        pytest.raises(ConfigurationError, match=f"bundle.pem.*{variable}"),
    ):
        transport.send(GET)


@in_front
@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("AWS_ACCESS_KEY_ID", "access key"),
        ("AWS_SECRET_ACCESS_KEY", "secret access key"),
        ("AWS_SESSION_TOKEN", "session token"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\nX-Forged: 1", "\u20ac"])
def test_credentials_that_no_header_holds_are_refused(
    transport: Transport, table: Table, name: str, what: str, end: str
) -> None:
    """The error names the value and its source without its content, and no request is sent."""
    with environment(**{name: f"hidden-word{end}"}), in_front_of(table) as server:
        options = {"ENDPOINT_URL": server.url, "TRANSPORT": transport.name}
        with elsewhere(**options), pytest.raises(InvalidCredentials) as raised:
            transport.send(GET)
    told = "".join(traceback.format_exception(raised.value))
    assert f"The {what} from the environment ({name}) has a line break" in told
    assert "hidden-word" not in told
    assert server.taken == server.refused == []


@in_front
def test_place_where_code_runs_forges_no_header(transport: Transport, table: Table) -> None:
    """botocore sends ``AWS_EXECUTION_ENV`` to AWS in a header."""
    variables = {"AWS_EXECUTION_ENV": "lambda\r\nX-Forged: 1"}
    with (
        environment(**variables),
        in_front_of(table, secrets={"AKIDEXAMPLE": "not/a+secret"}) as server,
        elsewhere(ENDPOINT_URL=server.url, TRANSPORT=transport.name),
    ):
        transport.send(GET)
    assert "x-forged" not in dict(server.taken[0].headers)
