"""The middleware that logs what an HTTP request costs, in synchronous and asynchronous projects."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import AsyncClient, Client, RequestFactory, override_settings
from msgspec.structs import replace

from dynamo_single.conf.shapes import BY_ID
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.middleware import RequestCostMiddleware
from dynamo_single.sessions import SessionStore, key_hash
from dynamo_single.table import Table, get_table
from dynamo_single.table.table import table_at, translator_of
from project.directory.models import Company, Person
from tests.contract.sessions.former import as_former

LOGGER = "dynamo_single.requests"
SETTINGS = {
    "ROOT_URLCONF": "tests.contract.table.costs_urls",
    "MIDDLEWARE": ["dynamo_single.middleware.RequestCostMiddleware"],
}


@pytest.fixture(autouse=True)
def pages(table: Table, caplog: pytest.LogCaptureFixture) -> Any:
    """Twelve companies with a person each, and pages that show them."""
    for number in range(1, 13):
        Company.objects.create(company_id=f"c{number}", name=f"Company {number}")
        Person.objects.create(company_id=f"c{number}", person_id=f"p{number}", name=f"Person {number:02d}")
    caplog.set_level(logging.INFO, LOGGER)
    with override_settings(**SETTINGS):
        yield


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the log's lines with levels and without times."""
    return [
        f"{record.levelname} {re.sub(r'[0-9.]+ ms', '… ms', record.getMessage())}"
        for record in caplog.records
        if record.name == LOGGER
    ]


def test_each_http_request_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """The line has method, path without query string, status and cost; the record has the values."""
    Client().get("/people/2/?name=secret")
    Client().post("/nothing/")
    Client().get("/nowhere/")
    assert lines(caplog) == [
        "INFO GET /people/2/ (200): 3 requests (1 Query, 2 GetItem), 4 items read, 4 returned, 1.5 read units, … ms",
        "INFO POST /nothing/ (200): no requests",
        "INFO GET /nowhere/ (404): no requests",
    ]
    record: Any = caplog.records[0]
    assert record.status_code == 200
    assert record.costs.operations == {"Query": 1, "GetItem": 2}


def test_a_view_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Its requests were sent, and the response is Django's 500."""
    Client(raise_request_exception=False).get("/failing/")
    assert lines(caplog) == [
        "INFO GET /failing/ (500): 1 request (1 GetItem), 1 item read, 1 returned, 0.5 read units, … ms"
    ]


def test_the_same_getitem_twice_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """The log names the key of an item that is read again without a write in between, and the count."""
    Client().get("/again/")
    assert lines(caplog)[1:] == [
        "WARNING GET /again/ (200): the same GetItem was sent more than once: Company (pk='COMPANY#c1', "
        "sk='#METADATA') 2 times: keep the object, or read it along with select_related() or prefetch_related()"
    ]


def test_reading_what_was_written_is_no_waste(caplog: pytest.LogCaptureFixture) -> None:
    """A read after a write of the same item is not reported."""
    Client().get("/saved/")
    assert [line.split()[0] for line in lines(caplog)] == ["INFO"]


@pytest.mark.parametrize(("limit", "told"), [(9, 0), (10, 1)])
def test_many_single_reads_of_one_kind_are_told(caplog: pytest.LogCaptureFixture, limit: int, told: int) -> None:
    """Ten reads of different items of one type log a suggestion for one request."""
    Client().get(f"/people/{limit}/")
    assert lines(caplog)[1:] == told * [
        f"WARNING GET /people/{limit}/ (200): items were read one by one: Company 10 times: in_bulk(), "
        "select_related() or prefetch_related() read a hundred with one BatchGetItem"
    ]


@pytest.mark.parametrize(
    ("settings", "level"),
    [
        ({"WARN_REQUESTS": 3}, "WARNING"),
        ({"WARN_REQUESTS": 4}, "INFO"),
        ({"WARN_REQUESTS": None}, "INFO"),
        ({"WARN_UNITS": 1.5}, "WARNING"),
        ({"WARN_UNITS": 2}, "INFO"),
        ({"WARN_MILLISECONDS": 0.001}, "WARNING"),
        ({"WARN_MILLISECONDS": 100_000}, "INFO"),
    ],
)
def test_thresholds_make_the_line_a_warning(
    caplog: pytest.LogCaptureFixture, settings: dict[str, Any], level: str
) -> None:
    """The limits of the settings apply to requests, units and milliseconds."""
    with override_settings(DYNAMO_SINGLE_COSTS=settings):
        Client().get("/people/2/")
    (line,) = lines(caplog)
    assert line.startswith(f"{level} GET /people/2/ (200): 3 requests")


def test_warnings_can_be_turned_off(caplog: pytest.LogCaptureFixture) -> None:
    """``None`` is never."""
    with override_settings(DYNAMO_SINGLE_COSTS={"WARN_REPEATED": None, "WARN_SINGLE_READS": None}):
        Client().get("/again/")
        Client().get("/people/12/")
    assert [line.split()[0] for line in lines(caplog)] == ["INFO", "INFO"]


def test_keys_can_be_hidden(caplog: pytest.LogCaptureFixture) -> None:
    """Without ``SHOW_KEYS``, only the type is named, and a missing item's key is not."""
    Client().get("/missing/")
    assert "more than once: COMPANY (pk='COMPANY#nowhere', sk='#METADATA') 3 times:" in lines(caplog)[1]
    caplog.clear()
    with override_settings(DYNAMO_SINGLE_COSTS={"SHOW_KEYS": False}):
        Client().get("/missing/")
        Client().get("/again/")
    assert "more than once: not stored 3 times:" in lines(caplog)[1]
    assert "more than once: Company 2 times:" in lines(caplog)[3]
    assert "pk=" not in caplog.text


def test_a_sessions_key_is_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    """A reader of the log cannot take over a session."""
    session = SessionStore()
    session.save()
    request = RequestFactory().get("/")

    def view(request: HttpRequest) -> HttpResponse:
        return HttpResponse(str([SessionStore().exists(session.session_key) for _ in range(2)]))

    RequestCostMiddleware(view)(request)
    assert "Session 2 times" in lines(caplog)[-1]
    assert str(session.session_key) not in caplog.text
    assert key_hash(str(session.session_key)) not in caplog.text


def test_former_sessions_key_is_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    session = SessionStore()
    session.save()
    key = as_former(session.session_key)
    RequestCostMiddleware(lambda request: HttpResponse(str([SessionStore().exists(key) for _ in range(2)])))(
        RequestFactory().get("/")
    )
    assert "Session 2 times: keep the object" in lines(caplog)[-1]
    assert key not in caplog.text


def test_a_path_cannot_forge_a_line(caplog: pytest.LogCaptureFixture) -> None:
    """The client's input is escaped."""
    Client().get("/nowhere%0AINFO%20forged/")
    assert lines(caplog) == ["INFO GET /nowhere%0AINFO%20forged/ (404): no requests"]


def test_a_streamed_page_has_a_line_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    """Requests during the response are counted separately, with the same warnings."""
    response = Client().get("/stream/")
    assert lines(caplog) == ["INFO GET /stream/ (200): no requests"]
    assert b"".join(response) == b"Company 1Company 1"
    told = lines(caplog)[1:]
    assert told[0].startswith("INFO GET /stream/ (200, while streaming): 2 requests (2 GetItem)")
    assert told[1].startswith("WARNING GET /stream/ (200, while streaming): the same GetItem was sent more than once")


def test_a_stream_that_is_left_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """If a client disconnects, the line contains the requests sent."""
    response = Client().get("/stream/")
    next(iter(response))
    response.close()
    assert lines(caplog)[1].startswith("INFO GET /stream/ (200, while streaming): 1 request (1 GetItem)")


@pytest.mark.parametrize("path", ["/apeople/", "/people/1/"])
def test_asynchronous_projects_are_counted(caplog: pytest.LogCaptureFixture, path: str) -> None:
    """The same middleware counts asynchronous views, and synchronous ones in a thread."""
    response = asyncio.run(AsyncClient().get(path))
    assert response.status_code == 200
    (line,) = lines(caplog)
    assert line.startswith(f"INFO GET {path} (200): ")
    assert "1 Query" in line


def test_asynchronous_streams_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    """An asynchronous stream has its line when it ends."""

    async def ask() -> bytes:
        response = await AsyncClient().get("/astream/")
        return b"".join([part async for part in response.streaming_content])

    assert asyncio.run(ask()) == b"Company 1Company 1"
    assert lines(caplog)[0] == "INFO GET /astream/ (200): no requests"
    assert lines(caplog)[1].startswith("INFO GET /astream/ (200, while streaming): 2 requests (2 GetItem)")


def test_http_requests_at_once_are_counted_apart(caplog: pytest.LogCaptureFixture) -> None:
    """Two that interleave in one event loop do not see each other's requests."""

    async def ask() -> None:
        await asyncio.gather(*(AsyncClient().get(path) for path in ("/apeople/", "/nothing/", "/apeople/")))

    asyncio.run(ask())
    found = sorted(line.split(",")[0] for line in lines(caplog))
    assert found == [
        "INFO GET /apeople/ (200): 1 request (1 Query)",
        "INFO GET /apeople/ (200): 1 request (1 Query)",
        "INFO GET /nothing/ (200): no requests",
    ]


def test_an_aborted_request_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A request without a response is reported as aborted."""

    def leave(request: HttpRequest) -> HttpResponse:
        Company.objects.get(pk="c1")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        RequestCostMiddleware(leave)(RequestFactory().get("/x/"))
    assert lines(caplog)[0].startswith("INFO GET /x/ (no response): 1 request (1 GetItem)")


def test_writes_in_batches_and_transactions_count_as_writes(caplog: pytest.LogCaptureFixture) -> None:
    """Every way to write an item makes a second reading of it right."""
    key = {"pk": {"S": "COMPANY#c1"}, "sk": {"S": "#METADATA"}}
    name = get_table().name
    item = dict(Company.objects.get(pk="c1")._stored)
    writes: list[tuple[str, dict[str, Any]]] = [
        ("PutItem", {"TableName": name, "Item": item}),
        ("BatchWriteItem", {"RequestItems": {name: [{"PutRequest": {"Item": item}}]}}),
        ("TransactWriteItems", {"TransactItems": [{"Put": {"TableName": name, "Item": item}}]}),
        ("BatchExecuteStatement", {"Statements": [get_table().insert_statement(item)]}),
        ("UpdateItem", {"TableName": name, "Key": key, "UpdateExpression": "REMOVE nothing"}),
        ("DeleteItem", {"TableName": name, "Key": key}),
        ("BatchWriteItem", {"RequestItems": {name: [{"DeleteRequest": {"Key": key}}]}}),
    ]

    def view(request: HttpRequest) -> HttpResponse:
        for operation, params in writes:
            Company.objects.filter(pk="c1").exists()
            get_table().call(operation, params)
        return HttpResponse("")

    RequestCostMiddleware(view)(RequestFactory().get("/x/"))
    assert [line.split()[0] for line in lines(caplog)] == ["INFO"]


def test_wrong_settings_are_refused_at_once() -> None:
    """Invalid settings raise an error when the middleware is created."""
    with override_settings(DYNAMO_SINGLE_COSTS={"WARN_REQUESTS": 0}), pytest.raises(ConfigurationError):
        RequestCostMiddleware(lambda request: HttpResponse(""))


def test_key_is_read_by_the_table_in_use_and_not_by_a_former_one_of_its_name(table: Table) -> None:
    """Former settings, or another region, may have had other keys."""
    table_at(replace(table.settings, shape=BY_ID))
    assert translator_of(table.name) is None
