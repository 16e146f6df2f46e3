"""What do spans and metrics add to the CPU of a request?

``python -m benchmarks.telemetry.run [--rounds N]`` measures a get, a page of 20 objects and a save, with a report of
each DynamoDB request to OpenTelemetry and without, and the demo's page of a company by Django's test client. The calls
alternate, and the clock is the CPU of the thread. Responses to single requests are replayed, as in
``client_cpu.shapes``. The first rows are of the API without an SDK, which is a project's state until it configures one.
The others are of the SDK, with a reader of metrics and without an exporter of spans. Install ``opentelemetry-sdk``
first. The goal for the API is a ratio of at most 1.05.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import nullcontext
from statistics import median
from typing import Any

import django
from django.conf import settings
from django.test import Client, override_settings
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider

from benchmarks.client_cpu.shapes import cases_of, fastest, model_of, replayed
from benchmarks.harness.rounds import is_quiet, median_difference, median_ratio, settle, single_calls
from dynamo_single.contrib.observability import telemetry
from dynamo_single.table import redirects
from dynamo_single.testing import capture_requests, local_engine
from project.directory.models import Company, Office, Person

OFF, ON, AGAIN = "without", "with reports", "without, again"
#: The operations whose responses are not replayed, with a divisor of the number of rounds.
PAGE, SHARE = "HTTP page", 10


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


def operations() -> dict[str, Callable[[], Any]]:
    """Create objects, and return the operations on them."""
    model = model_of("default")
    found = cases_of(model)
    get, save, _ = found
    return {
        "get": found[get],
        "page of 20": lambda: list(model.objects.filter(owner="o")[:20]),
        "save": found[save],
        PAGE: page(),
    }


def reported(request: Callable[[], object]) -> Callable[[], None]:
    """Return a function that also reports each DynamoDB request."""
    redirects.observe(telemetry.report, telemetry.is_wanted)
    observers = redirects.state.observers
    redirects.unobserve(telemetry.report)

    def with_reports() -> None:
        redirects.state.observers = observers
        try:
            request()
        finally:
            redirects.state.observers = ()

    return with_reports


def row(side: str, name: str, taken: dict[str, list[float]]) -> str:
    """Return one line: the CPU without reports, what they add in the median and at best, and the ratios."""
    control, ratio = median_ratio(taken[AGAIN], taken[OFF]), median_ratio(taken[ON], taken[OFF])
    more, least = median_difference(taken[ON], taken[OFF]) * 1e6, (fastest(taken[ON]) - fastest(taken[OFF])) * 1e6
    doubt = "" if is_quiet(control) else "  inconclusive"
    times = f"{median(taken[OFF]) * 1e6:>12.1f}{more:>10.1f}{least:>13.1f}"
    return f"{side:<6}{name:<12}{times}{ratio:>8.3f}{control:>9.3f}{doubt}"


def print_rows(side: str, cases: dict[str, Callable[[], Any]], count: int) -> None:
    """Measure and print all operations."""
    for name, case in cases.items():
        called = {OFF: case, ON: reported(case), AGAIN: case}
        with nullcontext(called) if name == PAGE else replayed(called) as measured:
            for each in measured.values():
                each()
            settle()
            print(row(side, name, single_calls(measured, count=count // SHARE if name == PAGE else count)))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3000, help="how many")
    options = parser.parse_args()
    with local_engine() as table:
        place = {"REGION": table.settings.region, "ENDPOINT_URL": table.settings.endpoint_url}
        default = {**place, "TABLE_NAME": table.name, "MIGRATIONS": "trust"}
        declared = {**settings.DYNAMO_SINGLE, "default": default}
        with override_settings(ALLOWED_HOSTS=["localhost"], DEBUG=False, DYNAMO_SINGLE=declared):
            measure(options.rounds)


def measure(count: int) -> None:
    """Measure all operations with the API alone, and then with the SDK."""
    cases = operations()
    with capture_requests() as sent:
        cases[PAGE]()
    print(f"Django {django.__version__}; the HTTP page sends {len(sent)} DynamoDB requests\n")
    print(f"{'':<18}{'without, µs':>12}{'more, µs':>10}{'fastest 5 %':>13}{'ratio':>8}{'control':>9}")
    print_rows("API", cases, count)
    trace.set_tracer_provider(TracerProvider())
    metrics.set_meter_provider(MeterProvider([InMemoryMetricReader()]))
    print_rows("SDK", cases, count)


if __name__ == "__main__":
    main()
