"""What do spans and metrics add to the CPU of an HTTP request?

``python -m benchmarks.telemetry.run [--rounds N]`` requests the demo's page of a company by Django's test client, first
without reports, and then with a report of each DynamoDB request to OpenTelemetry. The first row is of the API, which
discards spans. The second is of the SDK, with a reader of metrics and without an exporter of spans. Install
``opentelemetry-sdk`` first. The goal for the API is a ratio of at most 1.05.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import django
from django.test import Client, override_settings
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider

from benchmarks.harness.rounds import is_quiet, median_ratio, rounds, settle
from dynamo_single.contrib.observability import telemetry
from dynamo_single.table import redirects
from dynamo_single.testing import capture_requests, local_engine
from project.directory.models import Company, Office, Person

OFF, ON, AGAIN = "without", "with reports", "without, again"
#: The number of requests of a page in one measurement.
REPEAT = 40


def page() -> Callable[[], None]:
    """Create a company with people and offices; return a function that requests its page."""
    company = Company.objects.create(name="Acme")
    Person.objects.bulk_create(Person(company=company, name=f"Person {number}") for number in range(20))
    Office.objects.bulk_create(Office(company=company, city=f"City {number}") for number in range(3))
    client, address = Client(headers={"host": "localhost"}), f"/companies/{company.pk}/"

    def request() -> None:
        response = client.get(address)
        if response.status_code != 200:
            raise AssertionError(f"{address} returned {response.status_code}.")

    return request


def reported(request: Callable[[], None]) -> Callable[[], None]:
    """Return a function that also reports each DynamoDB request."""

    def with_reports() -> None:
        redirects.observe(telemetry.report)
        try:
            request()
        finally:
            redirects.unobserve(telemetry.report)

    return with_reports


def row(name: str, taken: dict[str, list[float]]) -> str:
    """Return one line: the least CPU of a page, and the ratios of the reports and of the control."""
    control = median_ratio(taken[AGAIN], taken[OFF])
    ratio = median_ratio(taken[ON], taken[OFF])
    least = min(taken[ON]) / min(taken[OFF])
    doubt = "" if is_quiet(control) else "  inconclusive"
    return f"{name:<6} {min(taken[OFF]) * 1000:>8.2f} {ratio:>8.3f} {least:>8.3f} {control:>8.3f}{doubt}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21, help="how many")
    options = parser.parse_args()
    with local_engine(), override_settings(ALLOWED_HOSTS=["localhost"], DEBUG=False):
        request = page()
        request()
        with capture_requests() as sent:
            request()
        print(f"Django {django.__version__}; a page of {len(sent)} DynamoDB requests; {options.rounds} rounds\n")
        print(f"{'':<6} {'CPU, ms':>8} {'median':>8} {'minima':>8} {'control':>8}")
        settle()
        cases = {OFF: request, ON: reported(request), AGAIN: request}
        print(row("API", rounds(cases, count=options.rounds, repeat=REPEAT)))
        trace.set_tracer_provider(TracerProvider())
        metrics.set_meter_provider(MeterProvider([InMemoryMetricReader()]))
        print(row("SDK", rounds(cases, count=options.rounds, repeat=REPEAT)))


if __name__ == "__main__":
    main()
