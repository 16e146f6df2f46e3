"""While moto replaces AWS, it responds to the app's requests; wrappers of botocore do not change anything."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterator
from typing import Any, NoReturn
from unittest import mock

import pytest
from botocore.client import BaseClient
from botocore.exceptions import EndpointConnectionError
from django.test import override_settings
from moto import mock_aws

from dynamo_single.exceptions import AccessOutsideTest, AlreadyExists, EndpointUnreachable
from dynamo_single.table import Request, get_table, redirects, schema
from dynamo_single.table import transport as table_transport
from dynamo_single.table.http.connections import Pool
from project.directory.models import Company, Person
from tests.contract.table.scripted import FOUND, Step, refusal, scripted
from tests.contract.table.test_strict import requests
from tests.contract.table.test_transports import GET, PUT, Transport, reaching, transport

__all__ = ["transport"]

AWS = {"TABLE_NAME": "single-table", "REGION": "eu-west-1", "INDEXES": ["gs1", "gs2", "gs3"], "MAX_ATTEMPTS": 1}


@pytest.fixture
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every connection from this process fail."""

    def connect(*_: object) -> NoReturn:
        raise OSError("a request leaves this process")

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket.socket, "connect_ex", connect)
    monkeypatch.setattr(socket, "getaddrinfo", connect)


@pytest.fixture
def aws(_no_network: None) -> Iterator[None]:
    """AWS as moto has it, with the table of the settings, which name no endpoint."""
    with mock_aws(), override_settings(DYNAMO_SINGLE={"default": AWS}):
        schema.apply(get_table())
        yield


@pytest.mark.usefixtures("aws")
@pytest.mark.parametrize("awaited", [False, True])
def test_moto_answers_each_operation(awaited: bool) -> None:
    """In a thread and in an event loop, though the setting is our own request path."""
    table = get_table()
    # moto's PartiQL raises TypeError for every parameter, so the app does not send it any.
    for request in (each for each in requests(table) if each.operation != "BatchExecuteStatement"):
        answer = asyncio.run(table.ask(request)) if awaited else table.send(request)
        assert isinstance(answer, dict)


@pytest.mark.usefixtures("aws")
def test_models_work_on_moto() -> None:
    """Written, listed by an index, changed, refused and deleted."""
    acme = Company.objects.create(company_id="c1", name="Acme")
    Person.objects.create(company=acme, person_id="p1", name="Ann")
    with pytest.raises(AlreadyExists):
        Company.objects.create(company_id="c1", name="Acme")
    acme.name = "Beta"
    acme.save()
    assert [company.name for company in Company.objects.order_by("name")] == ["Beta"]
    assert acme.person_set.get().name == "Ann"
    acme.hard_delete()
    assert not Company.objects.filter(pk="c1").exists()


@pytest.mark.usefixtures("aws")
def test_pynamodbs_own_calls_reach_moto() -> None:
    """They pass the same seam."""
    Company.objects.create(company_id="c1", name="Acme")
    assert Company.count("COMPANY#c1") == 1


@pytest.mark.usefixtures("aws")
def test_endpoint_of_environment_is_not_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """moto would let it pass."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with override_settings(DYNAMO_SINGLE={"default": {**AWS, "READ_TIMEOUT": 4321}}):
        get_table().send(PUT)


@pytest.mark.usefixtures("_no_network")
def test_after_the_block_requests_are_direct_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client from before the block is unchanged, and the block's client is not used."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not/a+secret")
    used = mock.Mock(side_effect=EndpointConnectionError(endpoint_url="none"))
    monkeypatch.setattr(Pool, "exchange", used)
    with override_settings(DYNAMO_SINGLE={"default": {**AWS, "READ_TIMEOUT": 4322}}):
        for number in (1, 2):
            with pytest.raises(EndpointUnreachable):
                get_table().send(GET)
            assert used.call_count == number
            with mock_aws():
                assert table_transport.is_aws_replaced()
                schema.apply(get_table())
                get_table().send(PUT)
            assert not table_transport.is_aws_replaced()


@pytest.mark.usefixtures("aws")
def test_guard_of_tests_lets_moto_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """And keeps tests from a table with an endpoint, which moto would let pass."""

    def refuse(*_: object) -> NoReturn:
        raise AccessOutsideTest

    monkeypatch.setattr(redirects.state, "guard", refuse)
    get_table().send(PUT)
    with (
        override_settings(DYNAMO_SINGLE={"default": {**AWS, "ENDPOINT_URL": "http://127.0.0.1:1"}}),
        pytest.raises(AccessOutsideTest),
    ):
        get_table().send(PUT)


@pytest.fixture
def wrapped(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Return the calls of ``BaseClient._make_api_call``, which tracing packages wrap, with their responses."""
    passed: list[tuple[str, Any]] = []
    make: Callable[..., Any] = BaseClient._make_api_call  # type: ignore[attr-defined]

    def traced(self: Any, operation: str, params: Any) -> Any:
        answer = make(self, operation, params)
        passed.append((operation, answer))
        return answer

    monkeypatch.setattr(BaseClient, "_make_api_call", traced)
    return passed


def test_wrapper_of_botocore_changes_no_path(transport: Transport, wrapped: list[tuple[str, Any]]) -> None:
    """It sees botocore's requests with complete responses, and none of the direct path."""
    with scripted() as server, reaching(server, transport):
        assert transport.send(GET) == FOUND
    assert [operation for operation, _ in wrapped] == ([] if transport.name == "direct" else ["GetItem"])
    for _, answer in wrapped:
        assert {"RequestId", "HTTPStatusCode", "HTTPHeaders", "RetryAttempts"} <= answer["ResponseMetadata"].keys()


def test_wrapper_changes_no_refusal(transport: Transport, wrapped: list[tuple[str, Any]]) -> None:
    """It does not change the attempts before an error either."""
    with scripted(Step(end="reset"), Step(refusal("ValidationException"))) as server, reaching(server, transport):
        with pytest.raises(Exception, match="as the script says"):
            transport.send(Request("GetItem", {"Key": {}}))
        assert len(server.requests) == 2
    assert wrapped == []


@pytest.mark.usefixtures("aws")
def test_wrapper_sees_what_moto_answers(wrapped: list[tuple[str, Any]]) -> None:
    """botocore sends there."""
    get_table().send(PUT)
    assert [operation for operation, _ in wrapped] == ["PutItem"]


def test_handler_that_only_listens_is_no_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event handler of botocore that does not return a response is not a mock."""
    from botocore import handlers

    monkeypatch.setattr(handlers, "BUILTIN_HANDLERS", [*handlers.BUILTIN_HANDLERS, ("before-send", lambda **_: None)])
    monkeypatch.setattr(table_transport, "BUILTIN_HANDLERS", handlers.BUILTIN_HANDLERS)
    assert not table_transport.is_aws_replaced()
    assert os.environ.get("AWS_ACCESS_KEY_ID") != "FOOBARKEY"


def test_stand_in_of_later_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library may be imported after the first request of a process."""
    from botocore import handlers

    known: list[Any] = [each for each in handlers.BUILTIN_HANDLERS if not hasattr(each[1], "enabled")]
    monkeypatch.setattr(table_transport, "BUILTIN_HANDLERS", known)
    # The result is not cached after the test.
    monkeypatch.setattr(table_transport, "_handlers", table_transport._Handlers())
    with override_settings(DYNAMO_SINGLE={"default": {**AWS, "READ_TIMEOUT": 4323}}):
        settings = get_table().settings
        assert not table_transport._clients.get(settings).is_stand_in
        known.append(("before-send", mock.Mock(enabled=True)))
        assert table_transport._clients.get(settings).is_stand_in
