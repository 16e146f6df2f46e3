"""The request path on a real engine: requests, captures and errors."""

from __future__ import annotations

import http.server
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings
from msgspec.structs import replace
from pynamodb.attributes import NumberAttribute, UnicodeAttribute
from pynamodb.connection import TableConnection
from pynamodb.exceptions import PutError
from pynamodb.models import Model
from pynamodb.transactions import TransactWrite

from dynamo_single import exceptions
from dynamo_single.engines import free_port
from dynamo_single.table import Request, transport
from dynamo_single.table.http.faults import refusal, unreachable
from dynamo_single.table.redirects import SentRequest, capture_requests, intercept, observe, unobserve
from dynamo_single.table.table import Table, get_table

KEY = {"pk": {"S": "COMPANY#1"}, "sk": {"S": "#METADATA"}}
FORK_SECONDS = 20
LARGE = {"S": "x" * 410_000}


def plain_model(table: Table) -> Any:
    """Return a plain PynamoDB model with our connection."""

    class Person(Model):
        class Meta:
            table_name = table.name

        pk = UnicodeAttribute(hash_key=True)
        sk = UnicodeAttribute(range_key=True)
        age = NumberAttribute(null=True)

        @classmethod
        def _get_connection(cls) -> TableConnection:
            return table.pynamodb

    return Person


def test_an_item_comes_back_as_it_was_put(table: Table) -> None:
    """GetItem returns the item of PutItem, with binary values as bytes."""
    item = {**KEY, "data": {"B": b"\x00\xff"}}
    table.send(Request("PutItem", {"Item": item}))
    assert table.send(Request("GetItem", {"Key": KEY}))["Item"] == item


def test_every_request_is_captured_with_what_it_consumed(table: Table) -> None:
    """A capture lists the requests in order, with the table's name, the response and the capacity."""
    with capture_requests() as outer:
        table.send(Request("PutItem", {"Item": KEY}))
        with capture_requests() as inner:
            table.send(Request("GetItem", {"Key": KEY}))
    table.send(Request("GetItem", {"Key": KEY}))
    assert [request.operation for request in outer] == ["PutItem", "GetItem"]
    assert [request.operation for request in inner] == ["GetItem"]
    assert outer[0].params == {"Item": KEY, "TableName": "single-table", "ReturnConsumedCapacity": "TOTAL"}
    assert (outer[0].consumed, outer[1].consumed) == (1.0, 0.5)
    assert outer[1].response is not None
    assert outer[1].response["Item"] == KEY


def test_a_failed_request_is_captured_too(table: Table, sent: list[SentRequest]) -> None:
    """A refused request counts, with its error code and without a response."""
    with pytest.raises(exceptions.ConditionFailed):
        table.send(Request("DeleteItem", {"Key": KEY, "ConditionExpression": "attribute_exists(pk)"}))
    assert [(request.error, request.response) for request in sent] == [("ConditionalCheckFailedException", None)]


def test_operations_on_several_tables_get_no_table_name(table: Table, sent: list[SentRequest]) -> None:
    """A transaction names its tables inside; the seam adds only the wish for the capacity."""
    request = Request("TransactWriteItems", {"TransactItems": [{"Put": {"TableName": table.name, "Item": KEY}}]})
    table.send(request)
    assert sent[0].params == {**request.params, "ReturnConsumedCapacity": "TOTAL"}
    assert sent[0].consumed == 2.0


def test_plain_pynamodb_passes_the_seam(table: Table, sent: list[SentRequest]) -> None:
    """Save, get, query, batch and transaction of a PynamoDB model use our client, and describe nothing first."""
    person = plain_model(table)
    person("COMPANY#1", "PEOPLE#1", age=41).save()
    assert person.get("COMPANY#1", "PEOPLE#1").age == 41
    assert [each.sk for each in person.query("COMPANY#1", person.sk.startswith("PEOPLE#"))] == ["PEOPLE#1"]
    with person.batch_write() as batch:
        batch.save(person("COMPANY#1", "PEOPLE#2"))
    assert len(list(person.batch_get([("COMPANY#1", "PEOPLE#1"), ("COMPANY#1", "PEOPLE#2")]))) == 2
    with TransactWrite(connection=table.pynamodb.connection) as transaction:
        transaction.save(person("COMPANY#1", "PEOPLE#3"))
    assert len(list(person.scan())) == 3
    assert [request.operation for request in sent] == [
        "PutItem",
        "GetItem",
        "Query",
        "BatchWriteItem",
        "BatchGetItem",
        "TransactWriteItems",
        "Scan",
    ]
    assert all(request.consumed for request in sent if request.operation not in {"BatchWriteItem", "BatchGetItem"})


def test_plain_pynamodb_keeps_its_own_errors(table: Table) -> None:
    """On PynamoDB's own path a failed condition is PynamoDB's PutError, with the code that it always had."""
    person = plain_model(table)
    person("a", "b").save()
    with pytest.raises(PutError) as caught:
        person("a", "b").save(person.pk.does_not_exist())
    assert caught.value.cause_response_code == "ConditionalCheckFailedException"


def refused(table: Table, operation: str, **params: object) -> exceptions.DynamoSingleError:
    with pytest.raises(exceptions.DynamoSingleError) as caught:
        table.send(Request(operation, params))
    assert caught.value.__cause__ is not None
    return caught.value


def test_a_failed_condition_brings_the_stored_item(table: Table) -> None:
    """ConditionFailed names the item, and contains the stored one on request."""
    table.send(Request("PutItem", {"Item": KEY}))
    error = refused(
        table,
        "PutItem",
        Item=KEY,
        ConditionExpression="attribute_not_exists(pk)",
        ReturnValuesOnConditionCheckFailure="ALL_OLD",
    )
    assert isinstance(error, exceptions.ConditionFailed)
    assert error.item == KEY
    assert str(error) == "The condition on the item 'COMPANY#1' / '#METADATA' does not hold. Nothing was written."


def test_a_cancelled_transaction_has_a_reason_for_each_action(table: Table) -> None:
    """TransactionCancelled lists a reason per action, None for successful ones, and nothing is written."""
    table.send(Request("PutItem", {"Item": KEY}))
    other = {**KEY, "sk": {"S": "other"}}
    error = refused(
        table,
        "TransactWriteItems",
        TransactItems=[
            {"Put": {"TableName": table.name, "Item": other}},
            {"Put": {"TableName": table.name, "Item": KEY, "ConditionExpression": "attribute_not_exists(pk)"}},
        ],
    )
    assert isinstance(error, exceptions.TransactionCancelled)
    assert error.reasons[0] is None
    assert error.reasons[1] is not None
    assert error.reasons[1]["Code"] == "ConditionalCheckFailed"
    assert "action 1 on the item 'COMPANY#1' / '#METADATA': ConditionalCheckFailed" in str(error)
    assert table.send(Request("Scan"))["Count"] == 1


@pytest.mark.parametrize(
    ("operation", "params"),
    [
        ("PutItem", {"Item": {**KEY, "data": LARGE}}),
        (
            "UpdateItem",
            {"Key": KEY, "UpdateExpression": "SET x = :x", "ExpressionAttributeValues": {":x": LARGE}},
        ),
        (
            "TransactWriteItems",
            {"TransactItems": [{"Put": {"TableName": "single-table", "Item": {**KEY, "data": LARGE}}}]},
        ),
    ],
)
def test_an_item_over_400_kb_is_one_clear_error(table: Table, operation: str, params: dict[str, object]) -> None:
    """Every write of a too large item raises ItemTooLarge, and the table does not change."""
    error = refused(table, operation, **params)
    assert isinstance(error, exceptions.ItemTooLarge)
    assert str(error).startswith(
        "The item 'COMPANY#1' / '#METADATA' is larger than the 400 KB that DynamoDB stores in one item. Nothing "
        "was written."
    )
    assert table.send(Request("Scan"))["Count"] == 0


def test_a_missing_table_names_the_command(table: Table) -> None:
    """The error names the table, its place and the fix."""
    table.send(Request("DeleteTable"))
    error = refused(table, "GetItem", Key=KEY)
    assert isinstance(error, exceptions.TableNotFound)
    assert str(error) == (
        f"The table 'single-table' does not exist at {table.settings.place}. Run `manage.py dynamo_setup`, or correct "
        "the table's name in DYNAMO_SINGLE['default']."
    )


def test_a_missing_index_names_the_command(table: Table) -> None:
    """A query on an index that the table lacks is TableMismatch, which names the index."""
    error = refused(
        table,
        "Query",
        IndexName="gs9",
        KeyConditionExpression="gs9pk = :a",
        ExpressionAttributeValues={":a": {"S": "1"}},
    )
    assert isinstance(error, exceptions.TableMismatch)
    assert "has no index 'gs9'" in str(error)
    assert "manage.py dynamo_setup" in str(error)


@pytest.mark.parametrize(
    ("operation", "params"),
    [
        ("GetItem", {"Key": KEY}),
        ("PutItem", {"Item": KEY}),
        ("Query", {"KeyConditionExpression": "pk = :a", "ExpressionAttributeValues": {":a": {"S": "1"}}}),
        ("BatchGetItem", {"RequestItems": {"single-table": {"Keys": [KEY]}}}),
        ("BatchWriteItem", {"RequestItems": {"single-table": [{"PutRequest": {"Item": KEY}}]}}),
        ("TransactWriteItems", {"TransactItems": [{"Put": {"TableName": "single-table", "Item": KEY}}]}),
    ],
)
def test_a_table_with_other_keys_is_named(table: Table, operation: str, params: dict[str, object]) -> None:
    """Every operation raises TableMismatch with the expected keys."""
    table.send(Request("DeleteTable"))
    table.send(
        Request(
            "CreateTable",
            {
                "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )
    )
    error = refused(table, operation, **params)
    assert isinstance(error, exceptions.TableMismatch)
    assert "has other keys than 'pk' and 'sk'" in str(error)
    assert "DYNAMO_SINGLE['default']['KEY']" in str(error)


def test_another_refusal_keeps_dynamodbs_words(table: Table) -> None:
    """Other errors raise RequestFailed with DynamoDB's code and message."""
    error = refused(table, "Query", KeyConditionExpression="pk = ")
    assert type(error) is exceptions.RequestFailed
    assert error.code == "ValidationException"
    assert str(error).startswith("DynamoDB refused Query on 'single-table': ")


def test_nothing_listening_names_the_endpoint_and_the_command(engine: object) -> None:
    """Without an engine, the error names the endpoint and the command that starts one."""
    port = free_port()
    with override_settings(DYNAMO_SINGLE={"default": f"dynamodb://127.0.0.1:{port}/single-table?max_attempts=1"}):
        error = refused(get_table(), "GetItem", Key=KEY)
    assert isinstance(error, exceptions.EndpointUnreachable)
    assert str(error).startswith(
        f"No server responds at http://127.0.0.1:{port}, so GetItem was not sent. Start the local engine with "
        "`manage.py dynamo_local`, or correct the endpoint in DYNAMO_SINGLE['default']."
    )


@pytest.fixture
def web_server() -> Iterator[int]:
    """A server that is not DynamoDB."""
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def test_another_kind_of_server_is_recognised(web_server: int, capfd: pytest.CaptureFixture[str]) -> None:
    """A web server at the endpoint raises EndpointUnreachable instead of a parser's error."""
    url = f"dynamodb://127.0.0.1:{web_server}/single-table?max_attempts=1"
    with override_settings(DYNAMO_SINGLE={"default": url}):
        error = refused(get_table(), "GetItem", Key=KEY)
    assert isinstance(error, exceptions.EndpointUnreachable)
    assert f"The server at http://127.0.0.1:{web_server} is not DynamoDB" in str(error)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("ProvisionedThroughputExceededException", exceptions.Throttled),
        ("ThrottlingException", exceptions.Throttled),
        ("RequestLimitExceeded", exceptions.Throttled),
        ("AccessDeniedException", exceptions.AccessDenied),
        ("UnrecognizedClientException", exceptions.AccessDenied),
        ("InternalServerError", exceptions.OutcomeUnknown),
    ],
)
def test_what_no_engine_does_can_be_injected(
    table: Table, sent: list[SentRequest], code: str, expected: type[Exception]
) -> None:
    """An interceptor can replace DynamoDB: its error is translated and captured, and no request is sent."""

    def refuse(operation: str, params: object) -> None:
        raise refusal(operation, code)

    with intercept(refuse):
        error = refused(table, "PutItem", Item=KEY)
    assert type(error) is expected
    assert [request.error for request in sent] == [code]
    assert table.send(Request("Scan"))["Count"] == 0


def test_an_interceptor_may_answer_or_stand_aside(table: Table) -> None:
    """The innermost interceptor runs first; None lets the request continue."""
    with intercept(lambda operation, params: {"Item": {"from": {"S": "outer"}}}):
        with intercept(lambda operation, params: None):
            assert table.send(Request("GetItem", {"Key": KEY}))["Item"] == {"from": {"S": "outer"}}
        with intercept(lambda operation, params: {"Item": {"from": {"S": "inner"}}}):
            assert table.send(Request("GetItem", {"Key": KEY}))["Item"] == {"from": {"S": "inner"}}
    assert "Item" not in table.send(Request("GetItem", {"Key": KEY}))


def test_an_unreachable_endpoint_can_be_injected(table: Table) -> None:
    """A test need not stop the engine to see what happens without one."""

    def cut(operation: str, params: object) -> None:
        raise unreachable(table.settings)

    with intercept(cut):
        assert isinstance(refused(table, "GetItem", Key=KEY), exceptions.EndpointUnreachable)


def test_the_table_is_one_object_for_all_threads(table: Table) -> None:
    """Threads get the same table, and their parallel requests succeed."""
    found: list[Table] = []

    def work() -> None:
        get_table().send(Request("GetItem", {"Key": KEY}))
        found.append(get_table())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [table] * 8


@pytest.mark.parametrize("is_wanted", [True, False])
def test_observer_hears_of_a_request_that_it_wants(table: Table, *, is_wanted: bool) -> None:
    heard: list[SentRequest] = []
    observe(heard.append, lambda: is_wanted)
    try:
        table.send(Request("GetItem", {"Key": KEY}))
    finally:
        unobserve(heard.append)
    assert [each.operation for each in heard] == ["GetItem"] * is_wanted


def test_tables_at_one_endpoint_share_a_client_and_forget_it_together(table: Table) -> None:
    """``NoCredentialsError`` makes a table forget its client, which another table would otherwise still use."""
    one, clients = replace(table.settings, endpoint_url="http://127.0.0.1:1"), transport._clients
    other, before = replace(one, table_name="other"), clients.get(one)
    assert clients.get(other) is before
    clients.forget(one)
    assert clients.get(other) is clients.get(one) is not before


def test_a_forked_process_makes_a_client_of_its_own(table: Table) -> None:
    """A child shares no client with its parent and waits for no lock that the parent held; both can send."""
    table.send(Request("PutItem", {"Item": KEY}))
    with transport._clients._lock:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                signal.alarm(FORK_SECONDS)  # a lock that no thread releases
                shared = bool(transport._clients._clients)
                status = 3 if shared else 0 if table.send(Request("GetItem", {"Key": KEY})).get("Item") == KEY else 2
            finally:
                os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert transport._clients._clients
    assert table.send(Request("GetItem", {"Key": KEY}))["Item"] == KEY
