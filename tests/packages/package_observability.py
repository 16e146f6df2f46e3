"""Spans, metrics, breadcrumbs and the panel of the toolbar, by the packages themselves."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import sentry_sdk
from django.test import Client
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from dynamo_single.contrib.observability import telemetry
from dynamo_single.exceptions import TableUnavailable
from dynamo_single.table import get_table
from dynamo_single.testing import fault
from dynamo_single.transactions import atomic
from project.directory.models import Company, Person
from tests.catalog.models import Order

pytestmark = pytest.mark.usefixtures("table")

#: A partition that contains items of several models.
PARTITION = {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "COMPANY#c"}}}
_EXPORTER, _READER = InMemorySpanExporter(), InMemoryMetricReader()


@pytest.fixture(scope="module", autouse=True)
def _providers() -> None:
    """The SDK, which a process configures once."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(_EXPORTER))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([_READER]))
    time.sleep(telemetry.LOOK_EVERY)  # requests before may have found none


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """The spans of the test."""
    _EXPORTER.clear()
    yield _EXPORTER
    _EXPORTER.clear()


def attributes(spans: InMemorySpanExporter) -> list[dict[str, Any]]:
    return [dict(span.attributes or {}) for span in spans.get_finished_spans()]


def test_span_has_operation_table_index_model_and_cost(spans: InMemorySpanExporter) -> None:
    list(Company.objects.filter(name="Acme"))
    assert attributes(spans) == [
        {
            "db.system.name": "aws.dynamodb",
            "db.operation.name": "Query",
            "db.collection.name": "single-table",
            "aws.dynamodb.index_name": "gs1",
            "dynamo_single.model": "directory.Company",
            "aws.dynamodb.scanned_count": 0,
            "aws.dynamodb.count": 0,
            "dynamo_single.read_units": 0.5,
            "dynamo_single.write_units": 0.0,
            "dynamo_single.retries": 0,
        }
    ]


@pytest.mark.parametrize(
    ("send", "model"),
    [
        (lambda: Order.objects.filter(customer="a", number=1).first(), "catalog.Order"),
        (lambda: Order.objects.create(customer="a", number=1), "catalog.Order"),
        (lambda: Order.objects.bulk_create([Order(customer="a", number=1)]), "catalog.Order"),
        (lambda: Order.objects.in_bulk(["a~~1", "a~~2"]), "catalog.Order"),
        (lambda: Order.objects.filter(customer="a", number=1).delete(), "catalog.Order"),
        (lambda: _in_block(), "catalog.Order"),
        (lambda: list(Person.objects.filter(company_id="c")), "directory.Person"),
        (lambda: get_table().call("Query", {"TableName": "single-table", **PARTITION}), ""),
    ],
    ids=["get", "create", "bulk_create", "in_bulk", "delete", "transaction", "children", "several models"],
)
def test_span_names_model(spans: InMemorySpanExporter, send: Any, model: str) -> None:
    send()
    assert {each.get("dynamo_single.model", "") for each in attributes(spans)} == {model}


def _in_block() -> None:
    with atomic():
        Order.objects.create(customer="a", number=1)
        Order.objects.create(customer="a", number=2)


def test_spans_contain_no_values(spans: InMemorySpanExporter) -> None:
    Company.objects.create(company_id="a-key-of-somebody", name="A name of somebody")
    list(Company.objects.filter(name="A name of somebody"))
    assert "somebody" not in str(attributes(spans)) + str([span.name for span in spans.get_finished_spans()])


def test_request_is_not_described_without_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    described: list[Any] = []
    monkeypatch.setattr("dynamo_single.contrib.observability.telemetry.describe", described.append)
    monkeypatch.setattr(trace, "get_tracer_provider", trace.NoOpTracerProvider)
    monkeypatch.setattr(metrics, "get_meter_provider", metrics.NoOpMeterProvider)
    Company.objects.filter(pk="c").first()
    assert described == []


def test_first_provider_is_found_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "_wanted", telemetry._Wanted())
    with monkeypatch.context() as patch:
        patch.setattr(trace, "get_tracer_provider", trace.NoOpTracerProvider)
        patch.setattr(metrics, "get_meter_provider", metrics.NoOpMeterProvider)
        assert not telemetry.is_wanted()
    assert not telemetry.is_wanted()
    time.sleep(telemetry.LOOK_EVERY)
    assert telemetry.is_wanted()


def test_span_is_child_of_current_span(spans: InMemorySpanExporter) -> None:
    with trace.get_tracer("test").start_as_current_span("view") as view:
        Company.objects.filter(pk="c").first()
    request = spans.get_finished_spans()[0]
    assert request.parent is not None
    assert request.parent.span_id == view.get_span_context().span_id


def test_span_lasts_as_long_as_request(spans: InMemorySpanExporter) -> None:
    begun = time.time_ns()
    Company.objects.filter(pk="c").first()
    (span,) = spans.get_finished_spans()
    assert begun <= (span.start_time or 0) < (span.end_time or 0) <= time.time_ns()


def test_failed_request_is_an_error(spans: InMemorySpanExporter) -> None:
    with fault("denied"), pytest.raises(TableUnavailable):
        Company.objects.filter(pk="c").first()
    (span,) = spans.get_finished_spans()
    assert (span.status.is_ok, (span.attributes or {})["error.type"]) == (False, "AccessDeniedException")


def test_requests_of_other_threads_are_reported(spans: InMemorySpanExporter) -> None:
    thread = threading.Thread(target=lambda: Company.objects.filter(pk="c").first())
    thread.start()
    thread.join()
    assert len(spans.get_finished_spans()) == 1


def test_metrics_add_up(spans: InMemorySpanExporter) -> None:
    Order.objects.create(customer="metrics", number=1)
    data = _READER.get_metrics_data()
    assert data is not None
    found = {
        metric.name: metric.data.data_points
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert {"db.client.operation.duration", "dynamo_single.consumed_capacity"} <= found.keys()
    assert any(
        (point.attributes or {}).get("dynamo_single.capacity") == "write"
        for point in found["dynamo_single.consumed_capacity"]
    )


def test_request_is_not_described_without_sentry(monkeypatch: pytest.MonkeyPatch) -> None:
    described: list[Any] = []
    monkeypatch.setattr("dynamo_single.contrib.observability.breadcrumbs.describe", described.append)
    monkeypatch.setattr(sentry_sdk, "is_initialized", lambda: False)
    Company.objects.filter(pk="c").first()
    assert described == []


def test_sentry_has_breadcrumbs_without_values() -> None:
    events: list[Any] = []
    sentry_sdk.init(dsn="http://fake@127.0.0.1:1/1", before_send=lambda event, hint: events.append(event))
    try:
        Company.objects.filter(pk="somebody").first()
        sentry_sdk.capture_message("test")
    finally:
        sentry_sdk.init()
    crumbs = [each for each in events[0]["breadcrumbs"]["values"] if each["category"] == "dynamodb"]
    assert [(each["message"], each["data"]["units"]) for each in crumbs] == [("GetItem directory.Company", 0.5)]
    assert "somebody" not in str(crumbs)


def test_toolbar_lists_requests_and_repeats() -> None:
    Company.objects.create(name="Acme of somebody")
    page = Client().get("/companies/").content.decode()
    assert "2 requests (2 Query)" in page
    assert "1 request repeats an earlier request." in page
    assert "directory.Company" in page
