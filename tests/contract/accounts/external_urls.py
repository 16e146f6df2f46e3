"""A project's own pages for external accounts: Authlib talks to the provider, ``external.log_in()`` finds the user."""

from __future__ import annotations

from typing import Any

from authlib.integrations.django_client import OAuth
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse

from dynamo_single.contrib.accounts import external
from project.urls import urlpatterns as pages
from tests.contract.accounts.provider import CLIENT_ID

oauth: Any = OAuth()


def register(issuer: str) -> None:
    """Register the provider's URL, as a project does at start-up."""
    oauth._clients.clear()
    oauth._registry.clear()
    oauth.register(
        "work",
        client_id=CLIENT_ID,
        client_secret="secret",
        server_metadata_url=f"{issuer}/.well-known/openid-configuration",
        client_kwargs={"scope": "openid email"},
    )


def begin(request: HttpRequest) -> Any:
    """Send the visitor to the provider."""
    return oauth.work.authorize_redirect(request, request.build_absolute_uri(reverse("work_done")))


def done(request: HttpRequest) -> HttpResponse:
    """The visitor comes back from the provider."""
    token = oauth.work.authorize_access_token(request)
    try:
        external.log_in(request, "work", token["userinfo"])
    except external.NotLinked:
        return HttpResponse("Log in first, and link the account then.", status=403)
    return redirect("account")


urlpatterns = [path("work/", begin, name="work"), path("work/done/", done, name="work_done"), *pages]
