"""A superuser works as another user, and returns."""

from tests.packages.case import addresses, start

PACKAGE = "django-hijack"
RESULT = "with lines"
LINES = "`del hijack.views.LockUserTableMixin.dispatch`, which locks the row of the user in SQL"

start("hijack", middleware=("hijack.middleware.HijackUserMiddleware",))

from django.contrib.auth import get_user_model
from django.http import HttpResponse
from django.test import Client
from django.urls import include, path
from hijack import views

User = get_user_model()

del views.LockUserTableMixin.dispatch
addresses(
    path("hijack/", include("hijack.urls")), path("me/", lambda request: HttpResponse(request.user.get_username()))
)
boss = User.objects.create_superuser("boss", "boss@example.com", "plainly-fake-1")
ann = User.objects.create_user("ann", "ann@example.com", "plainly-fake-1")
client = Client()
client.force_login(boss, "dynamo_single.contrib.accounts.backends.EmailOrUsernameBackend")
taken = client.post("/hijack/acquire/", {"user_pk": ann.pk, "next": "/me/"})
assert taken.status_code == 302, taken.content
assert client.get("/me/").content == b"ann"
assert client.post("/hijack/release/", {"next": "/me/"}).status_code == 302
assert client.get("/me/").content == b"boss"
