"""Spans and metrics of requests."""

import time

from tests.packages.case import start

PACKAGE = "opentelemetry-sdk"
RESULT = "with lines"
LINES = "`dynamo_single.contrib.observability` in `INSTALLED_APPS`"

start("dynamo_single.contrib.observability")

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from dynamo_single.contrib.observability.telemetry import LOOK_EVERY
from project.directory.models import Company

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
time.sleep(LOOK_EVERY)
Company.objects.create(name="Acme")
assert "PutItem" in {(span.attributes or {})["db.operation.name"] for span in exporter.get_finished_spans()}
