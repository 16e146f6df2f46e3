"""Both request paths meet a failing network, a refusing server and changing credentials alike."""

from __future__ import annotations

import asyncio
import datetime
import dis
import ipaddress
import json
import os
import re
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from email.utils import format_datetime
from itertools import pairwise
from pathlib import Path
from time import monotonic
from types import CodeType, FrameType
from typing import Any
from unittest import mock

import botocore.session
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotocoreCredentials
from botocore.exceptions import EndpointConnectionError
from botocore.retries.standard import ExponentialBackoff
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.test import override_settings

from dynamo_single.conf import TableSettings
from dynamo_single.exceptions import (
    AccessDenied,
    ConditionFailed,
    DynamoSingleError,
    EndpointUnreachable,
    OutcomeUnknown,
    TableUnavailable,
    Throttled,
    TransactionCancelled,
)
from dynamo_single.table import Request, flow, get_table
from dynamo_single.table.answers import OPERATIONS
from dynamo_single.table.deadlines import Deadline
from dynamo_single.table.http import credentials
from dynamo_single.table.http.connections import Endpoint, Pool
from dynamo_single.table.http.credentials import endpoint_of, new_client
from tests.contract.table.scripted import FOUND, ITEM, UNITS, Scripted, Step, refusal, reply, scripted

GET = Request("GetItem", {"Key": ITEM})
PUT = Request("PutItem", {"Item": ITEM})
WRITTEN = reply({"ConsumedCapacity": UNITS})


def now() -> datetime.datetime:
    """Return the current time."""
    return datetime.datetime.now(datetime.UTC)


@dataclass(frozen=True)
class Transport:
    """A request path, taken by a thread or, with a ``loop``, awaited in an event loop."""

    name: str
    loop: asyncio.Runner | None = None

    def send(self, request: Request) -> dict[str, Any]:
        """Return the default table's response to a request."""
        table = get_table()
        return table.send(request) if self.loop is None else self.loop.run(table.ask(request), context=copy_context())

    def of_child(self) -> Transport:
        """Run the request in a separate process, where asyncio needs its own loops."""
        return self if self.loop is None else Transport(self.name, asyncio.Runner())


def transports(*names: str) -> Any:
    """A fixture: each of some request paths, in a thread and in an event loop."""

    @pytest.fixture(params=[(name, awaited) for name in names for awaited in (False, True)], ids=_named)
    def transport(request: pytest.FixtureRequest) -> Iterator[Transport]:
        name, awaited = request.param
        if not awaited:
            yield Transport(name)
            return
        with asyncio.Runner() as loop:
            yield Transport(name, loop)

    return transport


def _named(path: tuple[str, bool]) -> str:
    name, awaited = path
    return f"{name}-awaited" if awaited else name


transport = transports("direct", "botocore")
direct = transports("direct")


@pytest.fixture(autouse=True)
def hardly_any_pause() -> Iterator[None]:
    """Attempts follow each other at once: the pauses are another test's."""
    # botocore took random.random at its import.
    with (
        mock.patch("random.random", return_value=0.0),
        mock.patch.object(ExponentialBackoff, "delay_amount", lambda *_: 0),
    ):
        yield


@contextmanager
def reaching(server: Scripted, transport: Transport, **options: Any) -> Iterator[None]:
    """Within the block the default table is at the server.

    The time limit is unique: a client of another test for the same port, with its credentials and clock, would be
    reused.
    """
    settings = {
        "TABLE_NAME": "single-table",
        "ENDPOINT_URL": f"http://127.0.0.1:{server.port}",
        "REGION": "us-east-1",
        "TRANSPORT": transport.name,
        "READ_TIMEOUT": 10 + server.number / 1000,
        **options,
    }
    with override_settings(DYNAMO_SINGLE={"default": settings}):
        yield


def outcome(
    server: Scripted, transport: Transport, request: Request, **options: Any
) -> dict[str, Any] | DynamoSingleError:
    """Return the response to a request, or its error."""
    with reaching(server, transport, **options):
        try:
            return transport.send(request)
        except DynamoSingleError as error:
            return error


def test_a_connection_serves_one_request_after_another(transport: Transport) -> None:
    """The connection stays open between requests."""
    with scripted() as server:
        with reaching(server, transport):
            for _ in range(5):
                assert transport.send(GET) == FOUND
        assert server.connections == 1


def test_what_is_sent_is_whole(transport: Transport) -> None:
    """The operation, the parameters and the length, by a client that names itself."""
    with scripted() as server:
        outcome(server, transport, GET)
    ((headers, body),) = server.requests
    assert headers["x-amz-target"] == "DynamoDB_20120810.GetItem"
    assert json.loads(body) == {"TableName": "single-table", "Key": ITEM, "ReturnConsumedCapacity": "TOTAL"}
    assert headers["user-agent"].startswith("Botocore/")


@pytest.mark.parametrize("request_", [GET, PUT], ids=["read", "write"])
@pytest.mark.parametrize(
    "step",
    [
        Step(refusal("ThrottlingException")),
        Step(refusal("ProvisionedThroughputExceededException")),
        Step(refusal("InternalServerError", 500)),
        Step(reply(b"<html></html>", 502)),
        Step(reply(b"", 503)),
        Step(end="close"),
        Step(end="reset"),
        Step(reply()[:30], end="close"),
        Step(reply(x_amz_crc32="1")),
    ],
    ids=[
        "throttled",
        "capacity",
        "internal",
        "502",
        "503",
        "closed",
        "reset",
        "half",
        "checksum",
    ],
)
def test_what_may_pass_is_sent_again(transport: Transport, step: Step, request_: Request) -> None:
    """The retries stop at the number of attempts, and the response is normal."""
    good = Step(reply() if request_ is GET else WRITTEN)
    if transport.name == "botocore" and step.given[:30] == step.given and step.given:
        pytest.skip("botocore takes a cut head for a whole one, and does not ask again")
    with scripted(step, step, good) as server:
        answer = outcome(server, transport, request_)
        assert isinstance(answer, dict), answer
        assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (refusal("ThrottlingException"), Throttled),
        (refusal("InternalServerError", 500), TableUnavailable),
        (reply(b"", 503), EndpointUnreachable),
    ],
    ids=["throttled", "internal", "proxy"],
)
def test_attempts_are_bounded(transport: Transport, given: bytes, error: type[Exception]) -> None:
    """The last attempt raises its error."""
    with scripted(*[Step(given)] * 9) as server:
        assert type(outcome(server, transport, GET, MAX_ATTEMPTS=4)) is error
        assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (refusal("ValidationException"), DynamoSingleError),
        (refusal("ConditionalCheckFailedException", Item=ITEM), ConditionFailed),
        (refusal("AccessDeniedException"), AccessDenied),
        (refusal("TransactionCanceledException", CancellationReasons=[{"Code": "None"}]), TransactionCancelled),
    ],
    ids=["validation", "condition", "access", "cancelled"],
)
def test_what_will_not_pass_is_sent_once(transport: Transport, given: bytes, error: type[Exception]) -> None:
    """A refusal that a second attempt cannot change."""
    with scripted(Step(given)) as server:
        assert isinstance(outcome(server, transport, GET), error)
        assert len(server.requests) == 1


def test_a_failed_condition_has_the_item_with_its_bytes(transport: Transport) -> None:
    """Binary values arrive as bytes in refusals too."""
    item = {**ITEM, "blob": {"B": "AAE="}, "more": {"L": [{"BS": ["AAE="]}]}}
    with scripted(Step(refusal("ConditionalCheckFailedException", Item=item))) as server:
        error = outcome(server, transport, PUT)
    assert isinstance(error, ConditionFailed)
    assert error.item == {**ITEM, "blob": {"B": b"\x00\x01"}, "more": {"L": [{"BS": [b"\x00\x01"]}]}}


def test_a_cancelled_transaction_has_its_reasons(transport: Transport) -> None:
    """With the items that were in the way, and their bytes."""
    reasons = [
        {"Code": "None"},
        {"Code": "ConditionalCheckFailed", "Message": "no", "Item": {**ITEM, "blob": {"B": "AAE="}}},
    ]
    with scripted(Step(refusal("TransactionCanceledException", CancellationReasons=reasons))) as server:
        error = outcome(server, transport, Request("TransactWriteItems", {"TransactItems": [{}, {}]}))
    assert isinstance(error, TransactionCancelled)
    assert error.reasons[0] is None
    assert error.reasons[1]["Item"]["blob"] == {"B": b"\x00\x01"}


def test_a_condition_that_fails_on_a_later_attempt_says_so(transport: Transport) -> None:
    """The first attempt may have been the write that is in the way."""
    with scripted(Step(end="reset"), Step(refusal("ConditionalCheckFailedException", Item=ITEM))) as server:
        error = outcome(server, transport, PUT)
    assert isinstance(error, ConditionFailed)
    assert error.retried


@pytest.mark.parametrize("size", range(0, len(reply()), 23))
@pytest.mark.parametrize("end", ["close", "reset"])
@pytest.mark.parametrize("request_", [GET, PUT], ids=["read", "write"])
def test_a_connection_that_breaks_at_any_byte_is_an_error(
    size: int, end: str, request_: Request, direct: Transport
) -> None:
    """Half a response is an error, and a write may have been executed."""
    with scripted(Step((reply() if request_ is GET else WRITTEN)[:size], end=end)) as server:
        error = outcome(server, direct, request_, MAX_ATTEMPTS=1)
    if size >= len(WRITTEN) and request_ is PUT:
        assert isinstance(error, dict)
    else:
        assert isinstance(error, EndpointUnreachable)
        assert isinstance(error, OutcomeUnknown) == (request_ is PUT)


def test_a_slow_answer_is_waited_for_and_no_longer(transport: Transport) -> None:
    """The read timeout limits it, and the request may have been executed."""
    with scripted(Step(WRITTEN, delay=60)) as server:
        error = outcome(server, transport, PUT, MAX_ATTEMPTS=1, READ_TIMEOUT=0.2)
    assert isinstance(error, OutcomeUnknown)


def test_where_nobody_listens_nothing_was_sent(transport: Transport) -> None:
    """The error says this, also for a write."""
    with scripted() as server:
        pass
    error = outcome(server, transport, PUT, MAX_ATTEMPTS=1)
    assert isinstance(error, EndpointUnreachable)
    assert not isinstance(error, OutcomeUnknown)
    assert "was not sent" in str(error)


def test_a_connection_that_was_closed_while_it_waited_is_not_used(transport: Transport) -> None:
    """A new connection is opened without a failed attempt."""
    with scripted(Step(reply(connection="keep-alive"), end="close")) as server, reaching(server, transport):
        transport.send(GET)
        while server.at_once:
            threading.Event().wait(0.01)
        assert transport.send(GET) == FOUND
        assert (server.connections, len(server.requests)) == (2, 2)


def test_a_server_that_closes_is_left(transport: Transport) -> None:
    """``Connection: close`` in a response ends the connection after the request."""
    with scripted(Step(reply(connection="close"), end="close")) as server, reaching(server, transport):
        assert transport.send(GET) == FOUND
        assert transport.send(GET) == FOUND
        assert server.connections == 2


def test_bytes_after_an_answer_are_no_other_answer(direct: Transport) -> None:
    """The next request must not read them."""
    with scripted(Step(reply() + reply())) as server:
        error = outcome(server, direct, GET, MAX_ATTEMPTS=1)
    assert isinstance(error, EndpointUnreachable)


def test_an_answer_in_pieces_is_put_together(transport: Transport) -> None:
    """With a chunked body too."""
    body = json.dumps(FOUND).encode()
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:9], body[9:])) + b"0\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-amz-json-1.0\r\ntransfer-encoding: chunked\r\n\r\n"
    with scripted(Step(head + chunks)) as server:
        assert outcome(server, transport, GET) == FOUND


def test_threads_share_a_bounded_pool() -> None:
    """64 threads use at most 20 connections, and each gets its own response."""
    with scripted() as server, reaching(server, Transport("direct"), MAX_POOL_CONNECTIONS=20):
        server.pause = 0.002
        with ThreadPoolExecutor(64) as threads:
            answers = list(threads.map(lambda _: get_table().send(GET), range(256)))
        assert answers == [FOUND] * 256
        assert server.most_at_once <= 20


def test_a_full_pool_is_waited_for_and_no_longer() -> None:
    """The error names the setting."""
    pool = Pool(Endpoint("127.0.0.1", 1, "http://127.0.0.1:1", None, connect_timeout=0.1, read_timeout=0.1), 1)
    place = pool._places.get()
    with pytest.raises(EndpointConnectionError, match="raise MAX_POOL_CONNECTIONS"):
        flow.run(pool.exchange(b"", Deadline(monotonic() + 60, "")))
    pool._places.put(place)


class Interruption(BaseException):
    """The exception of a signal handler, raised at any point of a thread."""


def after_calls(code: CodeType) -> set[int]:
    """Return the positions where Python checks for signals: after each call."""
    instructions = [*dis.get_instructions(code)]
    return {after.offset for call, after in pairwise(instructions) if call.opname.startswith("CALL")}


def interrupted_at(number: int, send: Callable[[], Any]) -> bool:
    """Send, interrupted at the ``number``-th chance in taking a connection and returning it; whether there was one."""
    left = number

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        if frame.f_code is not Pool.exchange.__code__ and not frame.f_code.co_filename.endswith("threading.py"):
            return None
        frame.f_trace_opcodes = True
        left -= event == "opcode" and frame.f_lasti in after_calls(frame.f_code)
        if not left:
            left = -1
            raise Interruption
        return trace

    sys._getframe().f_trace_opcodes = True  # Python 3.12 traces them only if it is set at the start
    sys.settrace(trace)
    try:
        send()
    except Interruption:
        return True
    finally:
        sys.settrace(None)
    return False


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the garbage collector closes the lost connection
@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")  # the request that was interrupted before its start
def test_an_interrupted_request_leaves_the_pool_as_it_was() -> None:
    """Wherever a signal interrupts it, the next request does not wait for a lost connection."""
    tried: list[int] = []

    def interrupt_each() -> None:
        tracing = sys.gettrace()
        while interrupted_at(len(tried) + 1, lambda: get_table().send(GET)):
            tried.append(len(tried))
            assert get_table().send(GET) == FOUND
        sys.settrace(tracing)

    with scripted() as server, reaching(server, Transport("direct"), MAX_POOL_CONNECTIONS=1):
        thread = threading.Thread(target=interrupt_each, daemon=True)
        thread.start()
        thread.join(timeout=60)
        assert not thread.is_alive(), f"a request waits since one was interrupted at chance {len(tried)}"
    assert len(tried) > 3


def test_a_child_process_has_connections_of_its_own(transport: Transport) -> None:
    """Two processes on one connection would read each other's responses."""
    with scripted() as server, reaching(server, transport):
        transport.send(GET)
        child = os.fork()
        if not child:
            try:
                transport.of_child().send(GET)
            finally:
                os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert transport.send(GET) == FOUND
        assert server.connections == 2


def test_other_operations_are_botocores(direct: Transport) -> None:
    """A project may send them, by PynamoDB or by ``send()``; botocore knows all of their types."""
    contributors: dict[str, Any] = {"TableName": "single-table", "IndexName": "gs1", "ContributorInsightsSummaries": []}
    with scripted(Step(reply(contributors))) as server:
        assert outcome(server, direct, Request("DescribeContributorInsights")) == contributors
    assert "amz-sdk-invocation-id" in server.requests[0][0]


def signature_of(headers: dict[str, str], body: bytes, secret: str, token: str | None) -> str:
    """Return the authorization that the server computes from the request and the secret."""
    signed = re.findall("SignedHeaders=([^,]+)", headers["authorization"])[0].split(";")
    key = re.findall("Credential=([^/]+)/", headers["authorization"])[0]
    told = {name: headers[name] for name in signed if name != "x-amz-security-token"}
    request: Any = AWSRequest("POST", f"http://{headers['host']}/", headers=told, data=body)
    # Like add_auth(), which would use the current time: the server's thread must not move the clock of all threads.
    request.context["timestamp"] = headers["x-amz-date"]
    auth: Any = SigV4Auth(BotocoreCredentials(key, secret, token), "dynamodb", "us-east-1")
    auth._modify_request_before_signing(request)
    text = auth.string_to_sign(request, auth.canonical_request(request))
    auth._inject_signature_to_request(request, auth.signature(text, request))
    return str(request.headers["Authorization"])


@pytest.mark.parametrize("token", [None, "a/temporary+token=="])
def test_a_server_that_checks_signatures_takes_ours(token: str | None, direct: Transport) -> None:
    """This includes every operation on items, with non-ASCII bytes."""
    environment = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "not/a+secret"}
    if token:
        environment["AWS_SESSION_TOKEN"] = token
    sent, expected = [], []

    def check(headers: dict[str, str], body: bytes) -> None:
        sent.append(headers["authorization"])
        expected.append(signature_of(headers, body, "not/a+secret", token))

    with mock.patch.dict(os.environ, environment), scripted() as server:
        server.check = check
        for operation in sorted(OPERATIONS):
            outcome(server, direct, Request(operation, {"Key": {"pk": {"S": "\u00e4\u20ac\U0001f642"}}}))
        assert len(server.requests) == len(OPERATIONS)
    assert sent == expected


def test_credentials_that_expire_are_renewed(transport: Transport, tmp_path: Path) -> None:
    """A profile's process returns new ones each time, and the latest sign the request."""
    process = tmp_path / "process.py"
    process.write_text(
        "import datetime, json, pathlib\n"
        f"count = pathlib.Path({str(tmp_path)!r}) / 'count'\n"
        "number = int(count.read_text()) + 1 if count.exists() else 1\n"
        "count.write_text(str(number))\n"
        # In their last ten minutes, botocore renews credentials before it uses them.
        "ends = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=5)\n"
        "print(json.dumps({'Version': 1, 'AccessKeyId': f'KEY{number}', 'SecretAccessKey': 's', 'SessionToken': 't',"
        " 'Expiration': ends.isoformat()}))\n"
    )
    config = tmp_path / "config"
    config.write_text(f"[default]\ncredential_process = {sys.executable} {process}\n")
    environment = {"AWS_CONFIG_FILE": str(config), "AWS_PROFILE": "default"}
    with mock.patch.dict(os.environ, environment), scripted() as server, reaching(server, transport):
        transport.send(GET)
        transport.send(GET)
    first, second = (re.findall("Credential=KEY([0-9]+)/", each["authorization"]) for each, _ in server.requests)
    assert int(first[0]) < int(second[0])


def test_a_signature_that_is_refused_for_its_time_is_made_by_the_servers_clock(direct: Transport) -> None:
    """botocore gives up there."""
    server_time = (now() + datetime.timedelta(hours=2)).replace(minute=30)
    refused = reply(
        {"__type": "InvalidSignatureException", "message": "Signature expired"}, 400, date=format_datetime(server_time)
    )
    with scripted(Step(refused)) as server, reaching(server, direct):
        assert direct.send(GET) == FOUND
        assert direct.send(GET) == FOUND
    dates = [headers["x-amz-date"] for headers, _ in server.requests]
    assert dates[1].startswith(server_time.strftime("%Y%m%dT%H"))
    assert dates[2].startswith(server_time.strftime("%Y%m%dT%H"))


def test_a_signature_that_is_refused_twice_is_an_error(direct: Transport) -> None:
    """A wrong secret is no matter of clocks."""
    refused = reply({"__type": "InvalidSignatureException", "message": "no"}, 400, date=format_datetime(now()))
    with scripted(*[Step(refused)] * 4) as server:
        assert isinstance(outcome(server, direct, GET), AccessDenied)
        assert len(server.requests) == 1


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    """Return a self-signed certificate for this machine, and a server's TLS context with it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a local engine")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now() - datetime.timedelta(days=1))
        .not_valid_after(now() + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("tls")
    bundle, secret = folder / "bundle.pem", folder / "key.pem"
    bundle.write_bytes(certificate.public_bytes(Encoding.PEM))
    secret.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(bundle, secret)
    return bundle, context


@pytest.mark.parametrize("variable", ["AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"])
def test_a_bundle_of_certificates_is_trusted(
    transport: Transport, authority: tuple[Path, ssl.SSLContext], variable: str
) -> None:
    """By the variables that botocore reads."""
    bundle, context = authority
    others = {name: value for name, value in os.environ.items() if not name.endswith("_CA_BUNDLE")}
    with mock.patch.dict(os.environ, {**others, variable: str(bundle)}, clear=True), scripted(tls=context) as server:
        assert outcome(server, transport, GET, ENDPOINT_URL=f"https://127.0.0.1:{server.port}") == FOUND


def test_a_certificate_that_nobody_trusts_is_refused(
    transport: Transport, authority: tuple[Path, ssl.SSLContext]
) -> None:
    """The request was not sent."""
    with scripted(tls=authority[1]) as server:
        error = outcome(server, transport, PUT, ENDPOINT_URL=f"https://127.0.0.1:{server.port}", MAX_ATTEMPTS=1)
        assert isinstance(error, EndpointUnreachable)
        assert not isinstance(error, OutcomeUnknown)
        assert not server.requests


def test_a_proxy_is_used(transport: Transport) -> None:
    """The direct request path does not support proxies, and uses botocore."""
    with scripted() as server:
        environment = {
            "HTTP_PROXY": f"http://127.0.0.1:{server.port}",
            "NO_PROXY": "",
            "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "not/a+secret",
        }
        # A client of its own for each: it keeps its proxy.
        host = f"dynamodb-{len(transport.name)}-{int(transport.loop is not None)}.invalid:8000"
        with mock.patch.dict(os.environ, environment):
            assert outcome(server, transport, GET, ENDPOINT_URL=f"http://{host}") == FOUND
    assert server.requests[0][0]["host"] == host


REGIONS = ("eu-west-1", "us-east-1", "ap-southeast-7", "mx-central-1", "us-gov-west-1", "cn-north-1", "eusc-de-east-1")


@pytest.fixture
def no_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the certificates, which take longer to read than everything else: no request is sent."""
    monkeypatch.setattr(credentials, "_tls", lambda session: None)


@pytest.mark.usefixtures("no_certificates")
@pytest.mark.parametrize("region", REGIONS)
def test_a_regions_endpoint_is_botocores(region: str) -> None:
    """This includes every partition; the direct request path asks botocore for unknown forms."""
    session = botocore.session.get_session()
    endpoint = endpoint_of(TableSettings("default", "single-table", region=region), session)
    assert endpoint is not None
    assert endpoint.url == new_client(session, region_name=region).meta.endpoint_url


@pytest.mark.usefixtures("no_certificates")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AWS_USE_FIPS_ENDPOINT", "true"),
        ("AWS_USE_DUALSTACK_ENDPOINT", "true"),
        ("AWS_ENDPOINT_URL", "https://other.example"),
        ("AWS_ENDPOINT_URL_DYNAMODB", "https://another.example:8443"),
    ],
)
def test_an_endpoint_that_the_environment_names_is_used(name: str, value: str) -> None:
    """botocore uses the same one."""
    with mock.patch.dict(os.environ, {name: value}):
        session = botocore.session.Session()
        endpoint = endpoint_of(TableSettings("default", "single-table", region="eu-west-1"), session)
        assert endpoint is not None
        assert endpoint.url == new_client(session, region_name="eu-west-1").meta.endpoint_url
