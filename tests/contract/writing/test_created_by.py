"""The author of an object is the user of the request or the context, on every way to create it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core import serializers
from django.forms import modelform_factory
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import AsyncClient, Client, override_settings
from django.urls import path

from dynamo_single import models, transactions
from dynamo_single.authorship import CurrentUserMiddleware, acting_as
from dynamo_single.exceptions import ConfigurationError, NotSupported
from dynamo_single.table import Request, Table
from dynamo_single.testing import assert_requests
from tests.catalog.chat import ChatMessage
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.usefixtures("table")


@pytest.fixture
def user(table: Table) -> Any:
    """Return a user."""
    return get_user_model()._default_manager.create_user("mike", "mike@example.com", "secret")


def say(text: str = "Hi") -> ChatMessage:
    """A new message."""
    return ChatMessage.objects.create(chat_id="1", text=text)


def authors() -> dict[str, Any]:
    """Return the stored author of each message."""
    return {message.text: message.created_by_id for message in ChatMessage.objects.filter(chat_id="1")}


# in a context


def test_the_context_says_who_it_is(user: Any) -> None:
    """The block accepts an object or its ``pk`` and does not read the user; outside, there is no author."""
    with assert_requests(["PutItem"]), acting_as(user):
        message = say("object")
    with acting_as(user.pk):
        say("pk")
        with acting_as(None):
            say("nobody")
    say("outside")
    assert message.created_by_id == user.pk
    assert authors() == {"object": user.pk, "pk": user.pk, "nobody": None, "outside": None}
    assert ChatMessage.objects.get(pk=message.pk).created_by == user


def test_it_is_stored_as_created_by(user: Any, table: Table) -> None:
    """The item holds the user's identifier, or nothing."""
    with acting_as(user):
        say()
    items = [item for item in table.send(Request("Scan"))["Items"] if item["itemType"]["S"] == "ChatMessage"]
    assert items[0]["createdBy"] == {"S": user.pk}


def test_a_function_can_be_decorated(user: Any) -> None:
    """The decorator works for functions such as management commands."""
    acting_as(user.pk)(say)()
    assert authors() == {"Hi": user.pk}


@pytest.mark.parametrize(
    "create",
    [
        lambda: ChatMessage(chat_id="1", text="Hi").save(),
        lambda: ChatMessage(chat_id="1", text="Hi").save(force_insert=True),
        lambda: ChatMessage.objects.get_or_create(chat_id="1", message_id="m", text="Hi"),
        lambda: in_a_block(),
        lambda: ChatMessage.objects.bulk_create([ChatMessage(chat_id="1", text="Hi")]),
        lambda: asyncio.run(ChatMessage.objects.acreate(chat_id="1", text="Hi")),
        lambda: modelform_factory(ChatMessage, fields=["chat_id", "text"])({"chat_id": "1", "text": "Hi"}).save(),
    ],
)
def test_every_creation_has_its_author(create: Callable[[], Any], user: Any) -> None:
    """Every way to create an object sets its author."""
    with acting_as(user):
        create()
    assert authors() == {"Hi": user.pk}


def in_a_block() -> None:
    """A creation in a transaction."""
    with transactions.atomic():
        say()


def test_it_never_changes(user: Any) -> None:
    """Another user's change keeps the author, and a new value raises an error, also through a queryset."""
    with acting_as(user):
        message = say()
    with acting_as("another"):
        message.text = "Ho"
        message.save()
    assert authors() == {"Ho": user.pk}
    message.created_by_id = "another"
    with pytest.raises(NotSupported, match="created_by_id gets its value at creation and cannot change"):
        message.save()
    with pytest.raises(NotSupported, match="created_by gets its value at creation and cannot change"):
        ChatMessage.objects.filter(pk=message.pk).update(created_by="another")
    assert authors() == {"Ho": user.pk}


def test_a_value_is_refused_on_creation(user: Any) -> None:
    """An author other than the context's raises an error."""
    with acting_as(user), pytest.raises(NotSupported, match="it is the user that makes the object"):
        ChatMessage.objects.create(chat_id="1", text="Hi", created_by_id="another")
    with pytest.raises(NotSupported):
        ChatMessage.objects.create(chat_id="1", text="Hi", created_by=user)
    assert authors() == {}
    with acting_as(user):
        ChatMessage.objects.create(chat_id="1", text="Hi", created_by=user)
    assert authors() == {"Hi": user.pk}


def test_forms_do_not_have_it() -> None:
    """Forms do not contain the attribute, whatever a request submits."""
    form = modelform_factory(ChatMessage, fields="__all__")
    assert "created_by" not in form.base_fields


def test_a_copy_of_an_object_is_made_by_who_copies_it(user: Any) -> None:
    """``pk = None`` and ``save()`` is a creation."""
    with acting_as(user):
        message = say()
    message.message_id = None
    message.text = "Copy"
    message._state.adding = True
    with acting_as("another"):
        message.save()
    assert authors() == {"Hi": user.pk, "Copy": "another"}


def test_fixtures_keep_it(user: Any) -> None:
    """Loading is no creation of somebody's."""
    with acting_as(user):
        message = say()
    data = serializers.serialize("json", [message])
    message.delete()
    with acting_as("another"):
        for found in serializers.deserialize("json", data):
            found.save()
    assert authors() == {"Hi": user.pk}


# in a request


def write(request: HttpRequest) -> HttpResponse:
    """Makes a message."""
    say(request.GET.get("text", "Hi"))
    return HttpResponse("written")


async def awrite(request: HttpRequest) -> HttpResponse:
    """Makes a message without a thread of its own."""
    await ChatMessage.objects.acreate(chat_id="1", text="async")
    return HttpResponse("written")


def read(request: HttpRequest) -> HttpResponse:
    """Makes nothing."""
    return HttpResponse("read")


def stream(request: HttpRequest) -> StreamingHttpResponse:
    """Create a message while the response is read."""

    def content() -> Iterator[str]:
        say("streamed")
        yield "done"

    return StreamingHttpResponse(content())


async def astream(request: HttpRequest) -> StreamingHttpResponse:
    """Create a message while the response is read asynchronously."""

    async def content() -> AsyncIterator[str]:
        await ChatMessage.objects.acreate(chat_id="1", text="astreamed")
        yield "done"

    return StreamingHttpResponse(content())


urlpatterns = [path(view.__name__, view) for view in (write, awrite, read, stream, astream)]

MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "dynamo_single.authorship.CurrentUserMiddleware",
]


@pytest.fixture
def site() -> Iterator[None]:
    """These views behind the middleware."""
    with override_settings(ROOT_URLCONF=__name__, MIDDLEWARE=MIDDLEWARE):
        yield


@pytest.mark.usefixtures("site")
def test_the_requests_user_is_the_author(user: Any) -> None:
    """The author is the logged-in user; an anonymous request has none."""
    client = Client()
    client.get("/write?text=anonymous")
    client.force_login(user)
    client.get("/write?text=known")
    assert authors() == {"anonymous": None, "known": user.pk}


@pytest.mark.usefixtures("site")
def test_a_request_that_makes_nothing_does_not_read_the_user(user: Any) -> None:
    """The request reads neither the session nor the user."""
    client = Client()
    client.force_login(user)
    with assert_requests(0):
        client.get("/read")
    with assert_requests(["GetItem", "GetItem", "PutItem"]):
        client.get("/write")


@pytest.mark.usefixtures("site")
def test_a_streamed_response_is_its_users_too(user: Any) -> None:
    """Objects created while a response is streamed have the user as their author."""
    client = Client()
    client.force_login(user)
    assert b"".join(client.get("/stream")) == b"done"
    assert authors() == {"streamed": user.pk}


@pytest.mark.usefixtures("site")
def test_asynchronous_views_have_their_user(user: Any) -> None:
    """This applies in the event loop, and while a response is streamed there."""
    client = AsyncClient()
    client.force_login(user)

    async def ask() -> bytes:
        await client.get("/awrite")
        response: Any = await client.get("/astream")
        return b"".join([chunk async for chunk in response])

    assert asyncio.run(ask()) == b"done"
    assert authors() == {"async": user.pk, "astreamed": user.pk}


@pytest.mark.usefixtures("site")
def test_two_requests_at_once_do_not_mix(user: Any) -> None:
    """Each is in a context of its own."""
    other = get_user_model()._default_manager.create_user("ann", "ann@example.com", "secret")

    async def ask() -> None:
        clients = [AsyncClient(), AsyncClient()]
        for client, who in zip(clients, (user, other), strict=True):
            await client.aforce_login(who)
        await asyncio.gather(*(client.get(f"/write?text={number}") for number, client in enumerate(clients)))

    asyncio.run(ask())
    assert authors() == {"0": user.pk, "1": other.pk}


def test_without_authentication_the_middleware_says_what_is_missing() -> None:
    """The error occurs only when an object is created."""

    def view(request: HttpRequest) -> HttpResponse:
        return write(request) if request.path == "/write" else read(request)

    answer = CurrentUserMiddleware(view)
    assert answer(_request("/read")).status_code == 200  # type: ignore[union-attr]
    with pytest.raises(ConfigurationError, match="AuthenticationMiddleware in front of it"):
        answer(_request("/write"))


def _request(where: str) -> HttpRequest:
    request = HttpRequest()
    request.path = where
    return request


# of any model


@pytest.fixture
def sold(table: Table) -> Iterator[tuple[Any, Any]]:
    """Return a seller, and the model of a seller's objects."""
    with forgotten():
        seller = declare("Vendor", ("VENDOR#{vendor_id}", "#METADATA"), vendor_id=models.IdAttribute())
        ware = declare(
            "Ware",
            ("WARE#{ware_id}", "#METADATA"),
            {"by_author": models.IndexKey("gs1", "WARE#{created_by_id}", "{ware_id}")},
            ware_id=models.IdAttribute(),
            created_by=models.AuthorAttribute(seller),
        )
        yield seller.objects.create(vendor_id="v1"), ware


def test_the_author_is_of_the_model_that_is_named(sold: tuple[Any, Any]) -> None:
    vendor, ware = sold
    with acting_as(vendor):
        found = ware.objects.create()
    assert ware.objects.get(created_by=vendor).pk == found.pk
    assert ware.objects.get(pk=found.pk).created_by == vendor


def test_somebody_of_another_model_makes_nothing(sold: tuple[Any, Any], user: Any) -> None:
    """An object of another model raises an error, because its ``pk`` is ambiguous; ``None`` and a ``pk`` are valid."""
    vendor, ware = sold
    message = "created_by refers to catalog.Vendor, but the author in this context is of accounts.User"
    with acting_as(user), assert_requests(0), pytest.raises(NotSupported, match=message):
        ware.objects.create()
    with (
        acting_as(vendor),
        assert_requests(0),
        pytest.raises(NotSupported, match=r"author .* is of catalog\.Vendor"),
    ):
        say()
    with acting_as(user), acting_as(None):
        assert ware.objects.create().created_by_id is None
    with acting_as("v2"):
        assert ware.objects.create().created_by_id == "v2"


def test_an_author_need_not_be_in_dynamodb(table: Table) -> None:
    with forgotten():
        ware = declare(
            "Ware",
            ("WARE#{ware_id}", "#METADATA"),
            ware_id=models.IdAttribute(),
            created_by=models.AuthorAttribute("auth.Group"),
        )
        with acting_as(Group(pk=7)):
            assert ware.objects.create().created_by_id == 7
