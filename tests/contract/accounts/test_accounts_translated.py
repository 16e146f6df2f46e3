"""Every string of this app on account pages and in mails can be translated, and ``makemessages`` finds it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from django.test import Client, override_settings

from accounts.models import User
from dynamo_single.table import Table
from dynamo_single.test_tables import contents
from tests.contract.accounts.account_pages import PASSWORD, log_in, sign_up
from tests.contract.pseudo import names, pseudo, unlisted, untranslated
from tests.ready import table_ready

pytestmark = pytest.mark.urls("project.urls")
ROOT = Path(__file__).resolve().parents[3]
#: Typed, sent and stored strings, and the demo's names around the pages.
DATA = re.compile(r"[\w.+-]+@[\w.]+|\bJohn\b|\+1555\d+|https?://\S+|testserver|^Demo$|^X$|^secret$")


def send(number: str, text: str) -> None:
    """A project's own function, which does not send anything."""


ACCOUNTS = {
    "LOGIN_WITH": ["email", "username", "phone"],
    "PHONE_SENDER": f"{__name__}.send",
    "SECRETS": {"phone": 6},
}


def logged_in() -> Client:
    """Return the browser of a logged-in user."""
    user: Any = User.objects.create_user("John", "john@example.com", PASSWORD, user_id="1")
    user.logins.add("phone", "+15550100")
    client = Client()
    log_in(client, "John")
    return client


def opens(path: str) -> Callable[[Client], Any]:
    """Return a page of a logged-in user."""
    return lambda client: client.get(f"/accounts/{path}", follow=True)


def visits(path: str) -> Callable[[Client], Any]:
    """Return a page of an anonymous visitor."""
    return lambda client: Client().get(f"/accounts/{path}", follow=True)


def sends(path: str, **form: str) -> Callable[[Client], Any]:
    """Return the response to a logged-in user's form."""
    return lambda client: client.post(f"/accounts/{path}", form, follow=True)


PAGES: Mapping[str, Callable[[Client], Any]] = {
    **{
        f"in: {path}": opens(path)
        for path in (
            *("", "password_change/", "password_change/done/", "email_change/", "email_change/done/", "email_add/"),
            *("email_primary/", "phone/", "phone/code/", "secret/phone/", "remove/username/", "remove/phone/"),
        )
    },
    **{
        f"out: {path}": visits(path)
        for path in (
            *("login/", "sign_up/", "sign_up/done/", "sign_up/again/", "confirm/x/", "confirm/done/"),
            *("password_reset/", "password_reset/done/", "reset/x/x/", "reset/done/"),
        )
    },
    "logged out": sends("logout/"),
    "wrong login": lambda client: log_in(Client(), "John", "wrong"),
    "nothing to log in with": lambda client: log_in(Client(), "", ""),
    "wrong sign-up": lambda client: sign_up(Client(), "John", "x", password2="x"),
    "sign-up": lambda client: sign_up(Client(), "Mike", "mike@example.com"),
    "wrong password": sends("password_change/", old_password="x", new_password1="x", new_password2="y"),
    "wrong address": sends("email_change/", email="x", password="x"),
    "wrong further address": sends("email_add/", email="x", password="x"),
    "wrong number": sends("phone/", phone="x", password="x"),
    "wrong code": sends("phone/code/", code="x"),
    "mail again": lambda client: Client().post("/accounts/sign_up/again/", {"email": "x"}, follow=True),
}


def literals(text: str) -> set[str]:
    """Return the strings that are neither translated nor data."""
    known = names()
    left = {DATA.sub("", each).strip(" :|*.,;()/-\u203a") for each in untranslated(text) - known}
    return {each for each in left - known if re.search("[A-Za-z]{2}", each)}


@pytest.fixture(scope="module")
def opened(engine: Table) -> tuple[dict[str, set[str]], set[str]]:
    """Open each page once; return its untranslated strings, and all requested translations."""
    table = table_ready()
    with override_settings(ACCOUNTS=ACCOUNTS, ROOT_URLCONF="project.urls"):
        cookies, made = logged_in().cookies, contents.read(table)
        left: dict[str, set[str]] = {}
        with pseudo() as language:
            for name, page in PAGES.items():
                contents.restore(table, made)
                client = Client()
                client.cookies = deepcopy(cookies)
                content = page(client).content.decode()
                # The demo's own frame is not ours.
                main = re.search(r"<main.*?</main>", content, flags=re.DOTALL)
                left[name] = literals(main[0] if main else content)
    table_ready()
    return {name: texts for name, texts in left.items() if texts}, language.asked


def test_a_page_has_no_text_of_ours_that_is_not_translated(opened: tuple[dict[str, set[str]], set[str]]) -> None:
    """The test language puts brackets around every translated string."""
    left, _ = opened
    assert left == {}


def test_a_mail_has_none_either(table: Table, settings: Any, mailoutbox: Any) -> None:
    """This includes mails for a sign-up, for an address with an account, and for a new password."""
    settings.ACCOUNTS = ACCOUNTS
    logged_in()
    with pseudo():
        sign_up(Client(), "Mike", "mike@example.com")
        sign_up(Client(), "Jane", "john@example.com")
        Client().post("/accounts/password_reset/", {"email": "john@example.com"})
    assert len(mailoutbox) == 3
    for mail in mailoutbox:
        assert literals(f"{mail.subject}\n{mail.body}") == set()


@pytest.mark.skipif(shutil.which("xgettext") is None, reason="there is no xgettext: apt-get install gettext")
def test_makemessages_finds_what_the_pages_translate(
    opened: tuple[dict[str, set[str]], set[str]], tmp_path: Path
) -> None:
    """Each string that a page translates is a literal in the code."""
    _, asked = opened
    with pseudo():
        assert unlisted(asked - names(), [ROOT / "dynamo_single", ROOT / "accounts"], tmp_path) == set()
