"""The Django app, which connects installed packages."""

from importlib.util import find_spec

from django.apps import AppConfig

from dynamo_single.table.redirects import observe


class ObservabilityConfig(AppConfig):
    """Reports each request of the process."""

    name = "dynamo_single.contrib.observability"
    label = "dynamo_observability"

    def ready(self) -> None:
        """Report to the packages that are installed."""
        if find_spec("opentelemetry") is not None:
            from dynamo_single.contrib.observability import telemetry

            observe(telemetry.report, telemetry.is_wanted)
        if find_spec("sentry_sdk") is not None:
            from dynamo_single.contrib.observability import breadcrumbs

            observe(breadcrumbs.report, breadcrumbs.is_wanted)
