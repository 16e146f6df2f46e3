"""The demo's public site over HTTP: what each page shows, and which requests it sends."""

from __future__ import annotations

import contextlib
import html
import os
import re
from collections.abc import Iterator
from contextvars import Context
from datetime import timedelta
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.test import Client, override_settings
from django.utils.http import urlencode

from dynamo_single import clock
from dynamo_single.table import Table, get_table
from dynamo_single.testing import assert_requests, frozen_time, intercept
from project.chat import demo as chat_demo
from project.chat.models import Member, Message, Profile, Server
from project.directory.models import Company, Office, Person
from project.records import demo as records_demo
from project.records.models import Book
from project.service import demo as service_demo
from project.service.models import Beneficiary, Email, User
from tests import children
from tests.contract.tables import assert_consistent, everything
from tests.deep import deep

pytestmark = [pytest.mark.usefixtures("table"), pytest.mark.urls("project.urls")]

SIGNED_IN = ["GetItem", "GetItem"]


def opened(client: Client, path: str, sends: list[str]) -> str:
    """Return a page after checking its requests, and their list in the footer."""
    with assert_requests(sends):
        response = client.get(path)
    assert response.status_code == 200, response
    body: str = response.content.decode()
    foot = re.sub(r"<[^>]+>|\s+", " ", body[body.index('<footer class="costs">') :])
    assert f" {len(sends)} request" in foot
    assert not re.search(r"<(script|style)|\s(style|on\w+)=", body)
    return body


def link(body: str, which: str) -> str:
    """Return the target of the link to the previous or next page."""
    (found,) = re.findall(rf'<a rel="{which}" href="([^"]*)"', body)
    return html.unescape(found)


def texts(body: str, pattern: str) -> list[str]:
    """Return the text of each element with a class."""
    return [html.unescape(each) for each in re.findall(pattern, body)]


@pytest.fixture
def signed_in(client: Client) -> Client:
    """Return a client with a login."""
    client.force_login(get_user_model()._default_manager.create_user("mike", "mike@example.com", "x"))
    return client


@pytest.fixture
def acme(table: Table) -> Company:
    """A company with two people and an office, and 19 others before it."""
    for number in range(19):
        Company.objects.create(name=f"Aa {number:02}")
    acme = Company.objects.create(name="Acme & <Sons>", stock="ACM")
    for name in ("Ann", "Ben"):
        Person.objects.create(company=acme, name=name)
    Office.objects.create(company=acme, city="Ghent")
    return acme


@pytest.fixture
def gaming(table: Table) -> Server:
    """Create a server with 50 members and 20 messages; its first member is on a second server too."""
    gaming = Server.objects.create(server_id="gaming", name="Gaming", topic="Play")
    profiles = [Profile(profile_id=f"p{number:02}", username=f"player {number:02}") for number in range(50)]
    Profile.objects.bulk_create(profiles)
    gaming.users.add(*profiles)
    Server.objects.create(server_id="chess", name="Chess").users.add(profiles[0])
    for number in range(20):
        moment = clock.now() - timedelta(minutes=number)
        Message.objects.create(server=gaming, sent_at=moment, author="Ann", text=f"no. {number}")
    gaming.refresh_from_db()
    return gaming


@pytest.fixture
def users(table: Table) -> list[User]:
    """Create 23 users in four shards, the last one with an address; the first three are from the last day."""
    for model in ("service.User", "service.Email"):
        call_command("dynamo_shards", model, 4, first=True, stdout=StringIO())
    for slug in ("school", "library"):
        Beneficiary.objects.create(beneficiary_id=slug, name=slug.title())
    users = [
        User(
            # The key determines a user's shard, and therefore the number of a page's requests.
            user_id=f"e{number:02}",
            beneficiary_id="school" if number % 2 else "library",
            first_name="Inés",
            last_name="Gómez-Juárez" if number == 22 else f"Li {number:02}",
            created=clock.now() - timedelta(hours=1 + 8 * number),
        )
        for number in range(23)
    ]
    User.objects.bulk_create(users)
    Email.objects.create(email="me@example.org", user=users[-1])
    return users


def test_the_front_page_sends_nothing(client: Client) -> None:
    assert "One DynamoDB table" in opened(client, "/", [])


def test_a_page_says_what_the_login_cost_too(signed_in: Client) -> None:
    assert "Log out" in opened(signed_in, "/", SIGNED_IN)


def test_page_of_service_user_shows_who_is_logged_in(signed_in: Client, users: list[User]) -> None:
    """Django's view adds the object as ``user``, too."""
    page = signed_in.get(f"/users/{users[0].pk}/").content.decode()
    assert "Log out" in page


def test_the_frame_of_the_account_pages_sends_nothing(client: Client) -> None:
    assert "Companies" in opened(client, "/accounts/login/", [])


def test_a_page_of_companies_is_one_query_both_ways(client: Client, acme: Company) -> None:
    cell = r"<tr><td><a [^>]*>([^<]*)</a>"
    first = opened(client, "/companies/", ["Query"])
    second = opened(client, "/companies/" + link(first, "next"), ["Query"])
    assert texts(first, cell) == [f"Aa {number:02}" for number in range(12)]
    assert texts(second, cell) == [*(f"Aa {number:02}" for number in range(12, 19)), "Acme & <Sons>"]
    assert texts(opened(client, "/companies/" + link(second, "prev"), ["Query"]), cell) == texts(first, cell)


def test_a_company_with_its_lists_is_one_query(client: Client, acme: Company) -> None:
    page = opened(client, f"/companies/{acme.pk}/", ["Query"])
    assert "Acme &amp; &lt;Sons&gt;" in page
    assert all(f"<td>{each}</td>" in page for each in ("Ann", "Ben", "Ghent"))


@pytest.fixture
def books(table: Table) -> list[Book]:
    """Create 14 books of two authors; a later book is cheaper."""
    return [
        Book.objects.create(
            data={
                "title": f"No. {number:02}",
                "author": {"lastname": "Example" if number % 2 else "Sample & Co"},
                "price": Decimal(2000 - number) / 100,
                "editions": [1990, 2001],
            }
        )
        for number in range(14)
    ]


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("", range(13, 1, -1)),
        ("?order=price", range(13, 1, -1)),
        ("?author=Example", [1, 3, 5, 7, 9, 11, 13]),
        ("?author=Nobody", []),
    ],
)
def test_a_page_of_books_is_one_query_in_each_order(
    client: Client, books: list[Book], question: str, found: Any
) -> None:
    page = opened(client, f"/books/{question}", ["Query"])
    titles = texts(page, r"<tr><td><a [^>]*>(No[^<]*)</a>")
    assert (titles if "author" not in question else sorted(titles)) == [f"No. {number:02}" for number in found]


def test_the_pages_of_books_go_on_in_their_order(client: Client, books: list[Book]) -> None:
    first = opened(client, "/books/?order=price", ["Query"])
    second = opened(client, "/books/" + link(first, "next"), ["Query"])
    assert texts(second, r'class="number">([\d.]+)<') == ["19.99", "20"]


def test_a_book_shows_each_place_of_its_map_by_one_read(client: Client, books: list[Book]) -> None:
    page = opened(client, f"/books/{books[0].pk}/", ["GetItem"])
    places = dict(re.findall(r"<tr><td><code>([^<]*)</code></td><td>([^<]*)</td>", page))
    assert places == {
        "title": "No. 00",
        "author.lastname": "Sample &amp; Co",
        "price": "20",
        "editions.0": "1990",
        "editions.1": "2001",
    }


def test_a_page_of_users_is_a_query_for_each_shard_and_one_for_the_beneficiaries(
    client: Client, users: list[User]
) -> None:
    cell = r"<tr><td><a [^>]*>([^<]*)</a>"
    first = opened(client, "/users/", ["Query"] * 5)
    second = client.get("/users/" + link(first, "next")).content.decode()
    assert texts(first, cell) + texts(second, cell) == [f"{user.last_name}, {user.first_name}" for user in users]
    assert texts(first, r'<td class="wide">\s*(\w+)</td>')[:2] == ["Library", "School"]


@pytest.mark.parametrize(
    ("question", "found"),
    [({"name": "GOMEZ J"}, [22]), ({"name": "li 2"}, [20, 21]), ({"beneficiary": "school"}, range(1, 22, 2))],
)
def test_users_are_found_by_a_key_of_each_question(
    client: Client, users: list[User], question: dict[str, str], found: Any
) -> None:
    page = opened(client, f"/users/?{urlencode(question)}", ["Query"] * 5)
    assert texts(page, r"<tr><td><a [^>]*>([^<,]*), ") == [users[number].last_name for number in found]


def test_users_since_yesterday_are_read_from_that_time_on(client: Client, users: list[User]) -> None:
    first = client.get("/users/").content.decode()
    (since,) = re.findall(r'href="(\?since=[^"]*)"', first)
    page = opened(client, "/users/" + html.unescape(since), ["Query"] * 5)
    assert texts(page, r"<tr><td><a [^>]*>([^<,]*), ") == ["Li 00", "Li 01", "Li 02"]


def test_a_user_is_found_by_id_and_its_addresses_by_one_query(client: Client, users: list[User]) -> None:
    page = opened(client, f"/users/{users[-1].pk}/", ["GetItem", "GetItem", "Query"])
    assert "Gómez-Juárez" in page
    assert "me@example.org" in page


@pytest.mark.usefixtures("gaming")
def test_servers_with_the_numbers_of_their_members_are_one_query(client: Client) -> None:
    page = opened(client, "/servers/", ["Query"])
    assert texts(page, r">(\d+ members?)<") == ["1 member", "50 members"]


@pytest.mark.usefixtures("gaming")
def test_a_page_of_members_is_one_query_besides_the_server(client: Client) -> None:
    first = opened(client, "/servers/gaming/members/", ["GetItem", "Query"])
    second = opened(client, "/servers/gaming/members/" + link(first, "next"), ["GetItem", "Query"])
    names = texts(first, r">(player \d+)<") + texts(second, r">(player \d+)<")
    assert names == [f"player {number:02}" for number in range(50)]


@pytest.mark.usefixtures("gaming")
def test_a_profile_with_the_names_of_its_servers_is_a_query_and_a_batch(client: Client) -> None:
    page = opened(client, "/servers/profiles/p00/", ["GetItem", "Query", "BatchGetItem"])
    assert texts(page, r'<li><a href="/servers/\w+/">(\w+)<') == ["Chess", "Gaming"]


@pytest.mark.usefixtures("gaming")
def test_a_chat_is_read_from_its_end(client: Client) -> None:
    first = opened(client, "/servers/gaming/", ["GetItem", "Query"])
    second = opened(client, "/servers/gaming/" + link(first, "next"), ["GetItem", "Query"])
    assert texts(first, r"no\. (\d+)") + texts(second, r"no\. (\d+)") == [str(number) for number in range(20)]
    assert "Log in</a> to write" in first


@pytest.mark.usefixtures("gaming")
def test_a_message_is_one_item_and_comes_first(signed_in: Client) -> None:
    with assert_requests([*SIGNED_IN, "GetItem", "PutItem"]):
        answer = signed_in.post("/servers/gaming/post/", {"text": "Hello\n<b>you</b>"})
    assert answer.url == "/servers/gaming/"
    page = opened(signed_in, answer.url, ["GetItem", "Query", *SIGNED_IN])
    assert texts(page, r"<strong>(.*?)</strong>(?s:.*?)<p>(?s:.*?)</p>")[0] == "mike"
    assert "&lt;b&gt;you&lt;/b&gt;" in page
    assert_consistent()


@pytest.mark.usefixtures("gaming")
def test_two_messages_of_one_moment_keep_their_order(signed_in: Client) -> None:
    with frozen_time(clock.now() + timedelta(minutes=1)):
        for text in ("first", "second", "third"):
            signed_in.post("/servers/gaming/post/", {"text": text})
    page = signed_in.get("/servers/gaming/").content.decode()
    assert texts(page, r"<p>(first|second|third)</p>") == ["third", "second", "first"]


@pytest.mark.usefixtures("gaming")
def test_an_empty_message_is_asked_for_again(signed_in: Client) -> None:
    answer = signed_in.post("/servers/gaming/post/", {"text": " "})
    assert "This field is required." in answer.content.decode()


@pytest.mark.usefixtures("gaming")
def test_writing_takes_an_account_a_token_and_a_server(signed_in: Client) -> None:
    message = {"text": "Hello"}
    assert Client().post("/servers/gaming/post/", message).url == "/accounts/login/?next=/servers/gaming/post/"
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = signed_in.cookies
    assert strict.post("/servers/gaming/post/", message).status_code == 403
    assert signed_in.post("/servers/none/post/", message).status_code == 404
    assert Message.objects.filter(server_id="gaming").count() == 20


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/companies/none/",
            "/books/none/",
            "/books/?page=x",
            "/users/none/",
            "/servers/none/",
            "/servers/none/members/",
            "/servers/profiles/none/",
        ),
        *("/companies/?page=x", "/users/?page=x", "/users/?since=x", "/users/?since=2026-13-01T00:00Z"),
    ],
)
def test_what_is_not_there_is_404(client: Client, path: str) -> None:
    assert client.get(path).status_code == 404


def test_renaming_a_profile_renames_the_member_on_each_server(client: Client, gaming: Server) -> None:
    profile = Profile.objects.get(pk="p00")
    profile.username = "a new name"
    profile.save()
    assert ">a new name<" in client.get("/servers/gaming/members/").content.decode()
    assert {member.username for member in Member.objects.filter(user=profile)} == {"a new name"}


def test_the_demos_data_are_written_once(table: Table, demo_data: str) -> None:
    """A second run finds the last object of each part, and does not write."""
    assert demo_data.count("Loading") == 4
    said = StringIO()
    assert 900 < len(everything(table)) < 1_500
    assert_consistent()
    with assert_requests(["Query", "GetItem", "GetItem", "Query"]):
        call_command("demo_data", stdout=said)
    assert "Loading" not in said.getvalue()


@contextlib.contextmanager
def ending(number: int) -> Iterator[None]:
    """End the process within the block after a number of writes, also within a batch."""
    sent = iter(range(number))

    def end(operation: str, params: Any) -> None:
        if operation in ("PutItem", "TransactWriteItems") and next(sent, None) is None:
            raise KeyboardInterrupt
        statements = params["Statements"] if operation == "BatchExecuteStatement" else []
        left = [statement for statement, _ in zip(statements, sent, strict=False)]
        if len(left) < len(statements):
            if left:
                Context().run(get_table().call, operation, {**params, "Statements": left})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), intercept(end):
        yield


@pytest.mark.parametrize(
    "numbers", [(20, 50, 400), pytest.param((39, 360, 50), marks=deep), pytest.param((0, 210, 200), marks=deep)]
)
def test_data_that_were_half_written_are_completed(table: Table, numbers: tuple[int, int, int]) -> None:
    """After whatever number of writes each part ended: the next run leaves what one alone leaves."""
    for part, number in zip((records_demo, service_demo, chat_demo), numbers, strict=True):
        with ending(number):
            part.load()
        part.load()
        assert part.is_loaded()
    assert (Book.objects.count(), User.objects.count(), Message.objects.count()) == (40, 180, 197)
    assert [server.member_count for server in Server.objects.order_by("name")] == [14, 30, 120, 8, 20, 4]
    assert_consistent()


def test_the_demos_data_are_for_a_local_engine_only() -> None:
    aws = override_settings(DYNAMO_SINGLE={"default": "dynamodb:///single-table?region=eu-west-1&indexes=gs1,gs2,gs3"})
    with aws, pytest.raises(CommandError, match="for a local engine only"):
        call_command("demo_data")


def test_the_demos_migrations_are_those_of_its_models() -> None:
    """``makemigrations`` finds no change; another process runs it, because the tests' settings omit migrations."""
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "project.settings"}
    ended = children.run(["manage.py", "makemigrations", "--check", "--dry-run"], env=environment)
    assert (ended.returncode, ended.stdout.strip()) == (0, "No changes detected")
