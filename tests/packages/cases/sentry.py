"""Breadcrumbs of requests."""

from tests.packages.case import start

PACKAGE = "sentry-sdk"
RESULT = "with lines"
LINES = "`dynamo_single.contrib.observability` in `INSTALLED_APPS`"

start("dynamo_single.contrib.observability")

import sentry_sdk

from project.directory.models import Company

events = []
sentry_sdk.init(dsn="http://fake@127.0.0.1:1/1", before_send=lambda event, hint: events.append(event))
Company.objects.create(name="Acme")
sentry_sdk.capture_message("test")
assert "PutItem directory.Company" in {each["message"] for each in events[0]["breadcrumbs"]["values"]}
