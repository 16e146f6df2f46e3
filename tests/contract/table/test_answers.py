"""An HTTP 200 without a DynamoDB response raises an error for every operation, ambiguous for writes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.sessions.backends.base import SessionBase
from pynamodb.exceptions import GetError, PutError

import dynamo_single
from dynamo_single.exceptions import DynamoSingleError, EndpointUnreachable, OutcomeUnknown
from dynamo_single.sessions import SessionStore
from dynamo_single.table import Request, Table, get_table
from dynamo_single.table.answers import OPERATIONS
from project.directory.models import Company
from tests.contract.answering import Server, answer, answering, framed, serving

KEY = {"pk": {"S": "a"}, "sk": {"S": "b"}}
UNITS = {"TableName": "single-table", "CapacityUnits": 1.0}
TABLE = {"TableName": "single-table", "TableStatus": "ACTIVE"}

#: Each operation with parameters and a response.
ANSWERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "BatchExecuteStatement": (
        {"Statements": [{"Statement": "INSERT INTO \"single-table\" VALUE {'pk': ?, 'sk': ?}"}]},
        {"Responses": [{"TableName": "single-table"}]},
    ),
    "BatchGetItem": (
        {"RequestItems": {"single-table": {"Keys": [KEY]}}},
        {"Responses": {"single-table": [KEY]}, "UnprocessedKeys": {}, "ConsumedCapacity": [UNITS]},
    ),
    "BatchWriteItem": (
        {"RequestItems": {"single-table": [{"PutRequest": {"Item": KEY}}]}},
        {"UnprocessedItems": {}, "ConsumedCapacity": [UNITS]},
    ),
    "CreateTable": ({}, {"TableDescription": TABLE}),
    "DeleteItem": ({"Key": KEY}, {"ConsumedCapacity": UNITS}),
    "DeleteTable": ({}, {"TableDescription": TABLE}),
    "DescribeTable": ({}, {"Table": TABLE}),
    "DescribeTimeToLive": ({}, {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}}),
    "GetItem": ({"Key": KEY}, {"ConsumedCapacity": UNITS}),
    "ListTables": ({}, {"TableNames": ["single-table"]}),
    "PutItem": ({"Item": KEY}, {"ConsumedCapacity": UNITS}),
    "Query": (
        {"KeyConditionExpression": "pk = a"},
        {"Items": [KEY], "Count": 1, "ScannedCount": 1, "ConsumedCapacity": UNITS},
    ),
    "Scan": ({}, {"Items": [KEY], "Count": 1, "ScannedCount": 1, "ConsumedCapacity": UNITS}),
    "TransactGetItems": (
        {"TransactItems": [{"Get": {"TableName": "single-table", "Key": KEY}}]},
        {"Responses": [{"Item": KEY}], "ConsumedCapacity": [UNITS]},
    ),
    "TransactWriteItems": (
        {"TransactItems": [{"Put": {"TableName": "single-table", "Item": KEY}}]},
        {"ConsumedCapacity": [UNITS]},
    ),
    "UpdateItem": ({"Key": KEY, "ReturnValues": "ALL_NEW"}, {"Attributes": KEY, "ConsumedCapacity": UNITS}),
    "UpdateTable": ({}, {"TableDescription": TABLE}),
    "UpdateTimeToLive": (
        {"TimeToLiveSpecification": {"AttributeName": "expiresAt", "Enabled": True}},
        {"TimeToLiveSpecification": {"AttributeName": "expiresAt", "Enabled": True}},
    ),
}
READS = {
    "BatchGetItem",
    "DescribeTable",
    "DescribeTimeToLive",
    "GetItem",
    "ListTables",
    "Query",
    "Scan",
    "TransactGetItems",
}

#: Invalid responses to any operation, and the words of the error.
FAULTS: dict[str, tuple[bytes, str | tuple[str, ...]]] = {
    "a cut status line": (b"HTTP/1.1 20", "did not respond"),
    # botocore accepts truncated headers, and the direct request path rejects half a response.
    "a cut head": (b"HTTP/1.1 200 OK\r\nServer: Server\r\nConte", ("content type", "did not respond")),
    "a cut head before the checksum": (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.0\r\nContent-L",
        ("an empty body is not complete JSON", "did not respond"),
    ),
    "no bytes": (b"", "did not respond"),
    "an empty body": (framed(b""), "an empty body is not complete JSON"),
    "an empty object": (framed(b"{}"), "'{}' does not"),
    "a list": (framed(b"[]"), "is not a JSON object"),
    "no object": (framed(b"null"), "is not a JSON object"),
    "half a JSON": (framed(b'{"Item": {"pk": {"S"'), "is not complete JSON"),
    "half a body": (framed(b'{"ConsumedCapacity": {}', length=500), ("23 of its 500 bytes arrived", "did not respond")),
    "no UTF-8": (framed(b'{"a": "\xff"}'), "is not complete JSON"),
    "a page of a proxy": (framed(b"<html>Please log in</html>", kind="text/html; charset=utf-8"), "content type"),
    "a page under DynamoDB's head": (framed(b"<html>Please log in</html>"), "is not complete JSON"),
    "another service's object": (framed(b'{"status": "ok"}'), "does not"),
}


@pytest.fixture(scope="module", params=["direct", "botocore"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server in DynamoDB's place, reached by either request path."""
    with serving() as running:
        running.transport = request.param
        yield running


def send(server: Server, operation: str, given: bytes, **options: Any) -> dict[str, Any]:
    """Return the request path's result for the bytes of a response."""
    with answering(server, given, **options):
        return get_table().send(Request(operation, ANSWERS[operation][0]))


def error_of(server: Server, operation: str, given: bytes, **options: Any) -> DynamoSingleError:
    """Return the request path's error for the bytes of a response."""
    with pytest.raises(DynamoSingleError) as raised:
        send(server, operation, given, **options)
    return raised.value


def test_every_operation_that_is_sent_is_known() -> None:
    """The descriptions of responses match the operations that the app sends."""
    folder = Path(dynamo_single.__file__).parent
    sources = "\n".join(path.read_text() for path in folder.rglob("*.py") if path.name != "answers.py")
    sent = set(re.findall(r'Request\(\s*"(\w+)"', sources)) | set(
        re.findall(r'"(Update(?:Table|TimeToLive))"', sources)
    )
    assert sent == set(OPERATIONS) == set(ANSWERS)


@pytest.mark.parametrize("operation", ANSWERS)
def test_a_whole_answer_is_taken(server: Server, operation: str) -> None:
    """The request returns DynamoDB's response unchanged."""
    assert send(server, operation, answer(ANSWERS[operation][1])) == ANSWERS[operation][1]


@pytest.mark.parametrize("operation", ANSWERS)
def test_what_is_no_answer_is_an_error(server: Server, operation: str) -> None:
    """Any other response with status 200 raises an error, and the outcome of a write is unknown."""
    for fault, (given, signs) in FAULTS.items():
        error = error_of(server, operation, given)
        assert type(error) is (EndpointUnreachable if operation in READS else OutcomeUnknown), (fault, error)
        assert any(sign in str(error) for sign in ([signs] if isinstance(signs, str) else signs)), (fault, error)


@pytest.mark.parametrize("operation", ANSWERS)
def test_a_checksum_has_to_fit(server: Server, operation: str) -> None:
    """A response with a wrong checksum was damaged on the way."""
    content = answer(ANSWERS[operation][1]).partition(b"\r\n\r\n")[2]
    assert "its checksum does not match" in str(error_of(server, operation, framed(content, checksum=1)))


@pytest.mark.parametrize("operation", ANSWERS)
def test_a_content_type_has_to_fit(server: Server, operation: str) -> None:
    """A response with another content type is from another server."""
    content = answer(ANSWERS[operation][1]).partition(b"\r\n\r\n")[2]
    for kind in (None, "text/html", "application/json", "application/x-amz-cbor-1.1"):
        assert f"its content type is {kind!r}" in str(error_of(server, operation, framed(content, kind=kind)))


@pytest.mark.parametrize("operation", ANSWERS)
def test_no_member_may_be_missing(server: Server, operation: str) -> None:
    """A response must have every required member."""
    whole = ANSWERS[operation][1]
    for member in whole:
        content = {name: value for name, value in whole.items() if name != member}
        assert f"a response to {operation} contains {member}" in str(error_of(server, operation, answer(content)))


@pytest.mark.parametrize("operation", ANSWERS)
def test_a_member_has_its_type(server: Server, operation: str) -> None:
    """A member with a wrong type raises this app's error instead of a parser's."""
    for member in ANSWERS[operation][1]:
        for wrong in (None, "a text", 7, [7], {"a": 7}):
            if wrong == 7 and member in {"Count", "ScannedCount"}:
                continue
            if wrong == {"a": 7} and member in {"Attributes", "TimeToLiveSpecification"}:
                continue
            error = error_of(server, operation, answer({**ANSWERS[operation][1], member: wrong}))
            assert f"{member} in a response to {operation} cannot be" in str(error), wrong


def test_the_number_of_items_is_their_count(server: Server) -> None:
    """A page that names another number of items than it has is not whole."""
    content = {**ANSWERS["Query"][1], "Count": 2, "ScannedCount": 2}
    assert "a response to Query contains Items, as many as Count" in str(error_of(server, "Query", answer(content)))


def test_a_transaction_answers_each_read(server: Server) -> None:
    """A response with fewer results than reads is incomplete."""
    content = {**ANSWERS["TransactGetItems"][1], "Responses": []}
    assert "a response to each action" in str(error_of(server, "TransactGetItems", answer(content)))


def test_a_batch_answers_for_its_table(server: Server) -> None:
    """A response without the requested table does not mean that its items are missing."""
    content = {**ANSWERS["BatchGetItem"][1], "Responses": {}}
    assert "responses of each table" in str(error_of(server, "BatchGetItem", answer(content)))


@pytest.mark.parametrize("operation", [name for name in ANSWERS if "ConsumedCapacity" in ANSWERS[name][1]])
def test_an_endpoint_that_never_names_capacity_can_be_used(server: Server, operation: str) -> None:
    """``CONSUMED_CAPACITY`` makes only the consumed capacity optional."""
    content = {name: value for name, value in ANSWERS[operation][1].items() if name != "ConsumedCapacity"}
    assert send(server, operation, answer(content), CONSUMED_CAPACITY=False) == content


def test_binary_values_arrive_as_bytes(server: Server) -> None:
    """This applies to any depth of an item."""
    item = {
        **KEY,
        "B": {"S": "B"},
        "b": {"B": "AP8="},
        "bs": {"BS": ["AA==", "/w=="]},
        "deep": {"M": {"B": {"L": [{"B": "AP8="}, {"N": "1"}]}}},
    }
    found = send(server, "Query", answer({**ANSWERS["Query"][1], "Items": [item]}))["Items"]
    assert found == [
        {
            **KEY,
            "B": {"S": "B"},
            "b": {"B": b"\x00\xff"},
            "bs": {"BS": [b"\x00", b"\xff"]},
            "deep": {"M": {"B": {"L": [{"B": b"\x00\xff"}, {"N": "1"}]}}},
        }
    ]


@pytest.mark.parametrize("value", [{"B": "?"}, {"B": 7}, {"BS": "AA=="}, {"BS": [7]}, {"B": "AA==", "S": "a"}, 7])
def test_a_binary_value_that_is_none_is_no_answer(server: Server, value: Any) -> None:
    """One undecodable value makes the whole response invalid."""
    item = {**KEY, "b": value, "c": {"B": "AA=="}}
    error = error_of(server, "Query", answer({**ANSWERS["Query"][1], "Items": [item]}))
    assert "Items in its response to Query contains a binary value that is not base64" in str(error)


@pytest.mark.parametrize(
    ("operation", "member", "step"),
    [
        ("GetItem", "Item", lambda: Company.objects.get(pk="c1")),
        ("Query", "Items", lambda: list(Company.objects.all())),
    ],
)
def test_an_invalid_item_of_an_object_is_no_answer(server: Server, operation: str, member: str, step: Any) -> None:
    """The app decodes a whole response only after an unusual item, here one without a type."""
    item = {**KEY, "b": {"B": "?"}}
    body = {**ANSWERS[operation][1], member: [item] if member == "Items" else item}
    with answering(server, answer(body)), pytest.raises(EndpointUnreachable, match="contains a binary value that is"):
        step()


@pytest.mark.parametrize(
    "step",
    [
        lambda: Company.objects.get(pk="c1"),
        lambda: Company.objects.filter(pk="c1").exists(),
        lambda: Company.objects.filter(pk="c1").first(),
        lambda: Company.objects.in_bulk(["c1", "c2"]),
        lambda: list(Company.objects.all()),
        lambda: Company.objects.count(),
        lambda: SessionStore("a" * 32).load(),
        lambda: SessionStore("a" * 32).get("anything"),
        lambda: SessionStore().exists("a" * 32),
        lambda: Company.get("COMPANY#c1", "COMPANY"),
    ],
    ids=[
        "get",
        "exists",
        "first",
        "in_bulk",
        "list",
        "count",
        "session",
        "value of a session",
        "key",
        "PynamoDB's get",
    ],
)
@pytest.mark.parametrize("fault", ["a cut head", "an empty body", "an empty object", "a page of a proxy"])
def test_no_read_takes_it_for_nothing_there(server: Server, step: Any, fault: str) -> None:
    """Reads do not treat it as a missing item."""
    with answering(server, FAULTS[fault][0]), pytest.raises((EndpointUnreachable, GetError)):
        step()


def session() -> SessionBase:
    """A session with something in it."""
    store = SessionStore()
    store["a"] = 1
    return store


@pytest.mark.parametrize(
    "step",
    [
        lambda: Company.objects.create(company_id="c1", name="Acme"),
        lambda: Company(company_id="c1", name="Acme").save(),
        lambda: session().save(),
        lambda: Company._get_connection().put_item("COMPANY#c1", "COMPANY"),
    ],
    ids=["create", "save", "session", "PynamoDB's put"],
)
@pytest.mark.parametrize("fault", ["a cut head", "an empty body", "an empty object", "a page of a proxy"])
def test_no_write_takes_it_for_done(server: Server, step: Any, fault: str) -> None:
    """Writes treat it neither as success nor as failure."""
    with (
        answering(server, FAULTS[fault][0]),
        pytest.raises((OutcomeUnknown, PutError), match=r"may have been executed|Connection was closed before"),
    ):
        step()


def test_an_object_whose_creation_has_no_outcome_is_not_taken_for_stored(server: Server) -> None:
    """You can save it again, which detects the existing item."""
    company = Company(company_id="c1", name="Acme")
    with answering(server, FAULTS["an empty object"][0]), pytest.raises(OutcomeUnknown):
        company.save()
    assert company._state.adding


def test_both_engines_answers_fit(table: Table) -> None:
    """The engine's responses to a write and a read are valid."""
    company = Company.objects.create(company_id="c1", name="Acme")
    assert Company.objects.get(pk="c1") == company
