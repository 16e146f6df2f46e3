"""Attempts to log in, counted in the cache in the table."""

from tests.packages.case import start

PACKAGE = "django-axes"
RESULT = "with lines"
LINES = '`AXES_HANDLER = "axes.handlers.cache.AxesCacheHandler"`, and `CACHES` with `dynamo_single.cache.DynamoCache`'

start(
    "axes",
    middleware=("axes.middleware.AxesMiddleware",),
    AUTHENTICATION_BACKENDS=[
        "axes.backends.AxesStandaloneBackend",
        "dynamo_single.contrib.accounts.backends.EmailOrUsernameBackend",
    ],
    AXES_HANDLER="axes.handlers.cache.AxesCacheHandler",
    AXES_FAILURE_LIMIT=3,
    CACHES={"default": {"BACKEND": "dynamo_single.cache.DynamoCache", "LOCATION": "default"}},
)

from django.contrib.auth import get_user_model
from django.contrib.auth.views import LoginView
from django.http import HttpResponse
from django.test import Client
from django.urls import path

LoginView.get_template_names = lambda self: ["none.html"]
LoginView.render_to_response = lambda self, context: HttpResponse("again")
get_user_model().objects.create_user("ann", "ann@example.com", "plainly-fake-1")
from tests.packages.case import addresses

addresses(path("login/", LoginView.as_view()))
client = Client()
right = {"username": "ann", "password": "plainly-fake-1"}
assert client.post("/login/", {**right, "next": "/"}).status_code == 302
found = [client.post("/login/", {"username": "ann", "password": "wrong"}).status_code for _ in range(3)]
assert found == [200, 200, 429], found
assert client.post("/login/", right).status_code == 429
