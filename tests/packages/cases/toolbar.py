"""The panel of this app, and the toolbar's own panels."""

from tests.packages.case import addresses, start

PACKAGE = "django-debug-toolbar"
RESULT = "with lines"
LINES = "`DEBUG_TOOLBAR_PANELS` with `dynamo_single.contrib.observability.panels.DynamoPanel` instead of the SQL panel"

start(
    "debug_toolbar",
    middleware=("debug_toolbar.middleware.DebugToolbarMiddleware",),
    DEBUG_TOOLBAR_CONFIG={"SHOW_TOOLBAR_CALLBACK": lambda request: True, "RENDER_PANELS": True},
    DEBUG_TOOLBAR_PANELS=[
        "debug_toolbar.panels.timer.TimerPanel",
        "debug_toolbar.panels.templates.TemplatesPanel",
        "dynamo_single.contrib.observability.panels.DynamoPanel",
    ],
)

from django.http import HttpResponse
from django.test import Client
from django.urls import include, path

from project.directory.models import Company

addresses(
    path("__debug__/", include("debug_toolbar.urls")),
    path("", lambda request: HttpResponse(f"<body>{Company.objects.count()}</body>")),
)
page = Client().get("/").content.decode()
assert "1 request (1 Query)" in page, page[:2000]
