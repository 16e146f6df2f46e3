"""Tokens: the views that they open, their lifetime, and their contents in the table."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from rest_framework.test import APIClient

from dynamo_single.contrib.rest_framework.models import Token
from dynamo_single.test_tables import contents
from dynamo_single.testing import assert_requests, fault, moved_time

pytestmark = [pytest.mark.usefixtures("table"), pytest.mark.urls("tests.packages.token_urls")]


@pytest.fixture
def client(settings: Any) -> APIClient:
    """A client of the API; errors are responses, as in production."""
    settings.REST_FRAMEWORK = {
        "EXCEPTION_HANDLER": "dynamo_single.contrib.rest_framework.errors.exception_handler",
    }
    made = APIClient(raise_request_exception=False)
    made.default_format = "json"
    return made


@pytest.fixture
def user(table: Any) -> Any:
    """Return a user with a password."""
    return get_user_model().objects.create_user(username="ann", email="ann@example.com", password="plainly-fake-1")


@pytest.fixture
def text(client: APIClient, user: Any) -> str:
    """The text of a token, as the API issues it."""
    response = client.post("/token/", {"username": "ann", "password": "plainly-fake-1"})
    assert response.status_code == 201, response.content
    found: str = response.json()["token"]
    return found


def me(client: APIClient, text: str) -> Any:
    return client.get("/me/", headers={"Authorization": f"Token {text}"})


def test_token_authenticates_its_user(client: APIClient, user: Any, text: str) -> None:
    assert me(client, text).json() == {"user": user.pk}


def test_authentication_is_two_requests(client: APIClient, user: Any, text: str) -> None:
    with assert_requests(["GetItem", "GetItem"]):
        me(client, text)


def test_wrong_password_issues_no_token(client: APIClient, user: Any) -> None:
    assert client.post("/token/", {"username": "ann", "password": "wrong"}).status_code == 400
    assert not Token.objects.filter(user=user).exists()


def test_table_contains_no_secret(client: APIClient, table: Any, text: str) -> None:
    assert text.partition(".")[2] not in str(contents.read(table))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[:-1] + ("a" if text[-1] != "a" else "b"),
        lambda text: text.partition(".")[0],
        lambda text: text.partition(".")[0] + ".",
        lambda text: "." + text.partition(".")[2],
        lambda text: "x" + text,
        lambda text: "ä" * 40,
        lambda text: "a" * 5000 + ".b",
        lambda text: "",
    ],
)
def test_any_other_text_is_refused(client: APIClient, text: str, change: Any) -> None:
    assert me(client, change(text)).status_code == 401


def test_expired_token_is_refused(client: APIClient, text: str) -> None:
    with moved_time(timedelta(days=89)):
        assert me(client, text).status_code == 200
    with moved_time(timedelta(days=91)):
        assert me(client, text).status_code == 401


def test_inactive_user_is_refused(client: APIClient, user: Any, text: str) -> None:
    user.is_active = False
    user.save()
    assert me(client, text).status_code == 401


def test_deleted_token_is_refused(client: APIClient, text: str) -> None:
    headers = {"Authorization": f"Token {text}"}
    assert client.delete("/logout/", headers=headers).status_code == 204
    assert me(client, text).status_code == 401


def test_tokens_go_with_their_user(client: APIClient, user: Any, text: str) -> None:
    pk = user.pk
    assert Token.objects.filter(user_id=pk).exists()
    user.delete()
    assert me(client, text).status_code == 401
    assert not Token.objects.filter(user_id=pk).exists()


def test_tokens_of_a_user_are_one_query(user: Any) -> None:
    for name in ("laptop", "phone"):
        Token.objects.issue(user, name=name)
    with assert_requests(["Query"]):
        assert {token.name for token in user.api_tokens.all()} == {"laptop", "phone"}


def test_unavailable_table_is_503_not_401(client: APIClient, text: str) -> None:
    with fault("throttled"):
        assert me(client, text).status_code == 503
