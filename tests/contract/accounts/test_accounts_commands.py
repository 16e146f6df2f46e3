"""Django's commands and forms for users, as they are."""

from __future__ import annotations

from io import StringIO
from typing import Any
from unittest import mock

import pytest
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm
from django.contrib.auth.models import Permission
from django.core.management import CommandError, ManagementUtility, call_command

from accounts.models import User
from dynamo_single import testing
from dynamo_single.contrib.accounts.forms import UserChangeForm, UserCreationForm
from dynamo_single.table import Request, Table


class Terminal(StringIO):
    """A standard input that is a terminal."""

    def isatty(self) -> bool:
        """Return True."""
        return True


def interactively(answers: list[str], *passwords: str, command: str = "createsuperuser", args: Any = ()) -> Any:
    """Run a command, type ``answers`` at its prompts, and return its output and errors."""
    out, err = StringIO(), StringIO()
    with (
        mock.patch("builtins.input", side_effect=answers),
        mock.patch("getpass.getpass", side_effect=passwords),
    ):
        options: dict[str, Any] = {"stdin": Terminal()} if command == "createsuperuser" else {}
        call_command(command, *args, stdout=out, stderr=err, **options)
    return out.getvalue(), err.getvalue()


def count(table: Table) -> int:
    """Return the number of items."""
    return int(table.send(Request("Scan", {"Select": "COUNT"}))["Count"])


def test_createsuperuser_asks(table: Table) -> None:
    """The command prompts for name, address and password, and creates a superuser."""
    out, err = interactively(["boss", "boss@example.com"], "Quite-Good-9", "Quite-Good-9")
    assert "Superuser created successfully." in out
    assert err == ""
    boss = User.objects.get_by_natural_key("boss")
    assert boss.is_superuser
    assert boss.is_staff
    assert boss.check_password("Quite-Good-9")
    assert boss.email == "boss@example.com"


def test_createsuperuser_asks_again_for_a_taken_name(table: Table) -> None:
    """The prompt rejects a name that is taken in another case, or that looks like an address."""
    User.objects.create_user("Boss")
    out, err = interactively(["BOSS", "a@b", "chief", ""], "Quite-Good-9", "Quite-Good-9")
    assert "Error: That username is already taken." in err
    assert "an @ is for e-mail addresses" in err
    assert "Superuser created successfully." in out
    assert User.objects.get_by_natural_key("chief").email == ""


def test_createsuperuser_warns_of_a_bad_password(table: Table) -> None:
    """Django's password validators see the new user."""
    out, err = interactively(
        ["administrator", "", "n"], "administrator", "administrator", "Quite-Good-9", "Quite-Good-9"
    )
    assert "The password is too similar to the username." in err
    assert "Superuser created successfully." in out


def test_createsuperuser_from_the_environment(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --noinput everything comes from the environment."""
    for name, value in {"USERNAME": "boss", "EMAIL": "boss@example.com", "PASSWORD": "Quite-Good-9"}.items():
        monkeypatch.setenv(f"DJANGO_SUPERUSER_{name}", value)
    out = StringIO()
    call_command("createsuperuser", interactive=False, stdout=out)
    assert "Superuser created successfully." in out.getvalue()
    assert User.objects.get_by_natural_key("boss").check_password("Quite-Good-9")


@pytest.mark.parametrize(
    ("username", "email", "message"),
    [
        ("BOSS", "other@example.com", "That username is already taken"),
        ("chief", "BOSS@example.com", "A user with that email address already exists."),
        ("chief", "no-address", "Enter a valid email address."),
        ("boss@example.com", "other@example.com", "an @ is for e-mail addresses"),
        ("", "other@example.com", "Username cannot be blank."),
    ],
)
def test_createsuperuser_refuses(table: Table, username: str, email: str, message: str) -> None:
    """A duplicate in any case and an invalid value end with a message before any write."""
    User.objects.create_user("boss", "boss@example.com")
    before = count(table)
    with pytest.raises(CommandError, match=message):
        call_command("createsuperuser", interactive=False, username=username, email=email)
    assert count(table) == before


def test_changepassword(table: Table) -> None:
    """The command changes the password of the user of that name."""
    User.objects.create_user("Mike", "mike@example.com", "old")
    out, _ = interactively([], "Quite-Good-9", "Quite-Good-9", command="changepassword", args=["Mike"])
    assert "Changing password for user 'Mike'" in out
    assert "Password changed successfully for user 'Mike'" in out
    assert User.objects.get_by_natural_key("Mike").check_password("Quite-Good-9")


def test_changepassword_of_nobody(table: Table) -> None:
    """An unknown name ends with a message."""
    with pytest.raises(CommandError, match="user 'nobody' does not exist"):
        call_command("changepassword", "nobody")


def test_changepassword_validates(table: Table) -> None:
    """Three passwords that are too weak end the command, and the old one stays."""
    User.objects.create_user("Mike", None, "old")
    with pytest.raises(CommandError, match="after 3 attempts"):
        interactively([], *["1234"] * 6, command="changepassword", args=["Mike"])
    assert User.objects.get_by_natural_key("Mike").check_password("old")


# forms


def creation(username: str, email: str = "") -> UserCreationForm:
    """The form of a new user, sent."""
    password = "Quite-Good-9"
    return UserCreationForm(
        {"username": username, "email": email, "usable_password": "true", "password1": password, "password2": password}
    )


def test_the_creation_form_makes_a_user(table: Table) -> None:
    """Name, address and password are stored as typed."""
    form = creation("Mike", "User1@Example.com")
    assert form.is_valid(), form.errors
    form.save()
    mike = User.objects.get_by_identifier("user1@example.com")
    assert mike.username == "Mike"
    assert mike.email == "User1@example.com"
    assert mike.check_password("Quite-Good-9")


def test_the_creation_form_refuses_duplicates(table: Table) -> None:
    """Each duplicate, in any case, reports an error on its field."""
    User.objects.create_user("Mike", "user1@example.com")
    form = creation("MIKE", "USER1@example.com")
    assert form.errors == {
        "username": ["A user with that username already exists."],
        "email": ["A user with that email address already exists."],
    }
    assert "username" in creation("a@b").errors
    assert "username" in creation("").errors


def test_the_change_form_keeps_the_password(table: Table) -> None:
    """Other attributes change; the user's own name and an empty address are not duplicates."""
    mike = User.objects.create_user("Mike", "user1@example.com", "secret", permissions={"a.b"})
    data = {
        "username": "mike",
        "email": "",
        "first_name": "Michael",
        "is_active": "on",
        "date_joined_0": "2026-01-02",
        "date_joined_1": "03:04:05",
        "date_joined": "2026-01-02 03:04:05",
        "user_permissions": [Permission.objects.get(codename="view_company").pk],
    }
    form = UserChangeForm(data, instance=mike)
    assert form.is_valid(), form.errors
    form.save()
    mike = User.objects.get(pk=mike.pk)
    assert (mike.username, mike.email, mike.first_name) == ("mike", "", "Michael")
    assert mike.permissions == {"a.b", "directory.view_company"}
    assert mike.check_password("secret")


@pytest.mark.parametrize("form_class", [SetPasswordForm, PasswordChangeForm])
def test_the_password_forms_save(table: Table, form_class: Any) -> None:
    """Django's own forms set the user's password."""
    mike = User.objects.create_user("Mike", None, "old")
    form = form_class(mike, {"old_password": "old", "new_password1": "Quite-Good-9", "new_password2": "Quite-Good-9"})
    assert form.is_valid(), form.errors
    form.save()
    assert User.objects.get(pk=mike.pk).check_password("Quite-Good-9")


# without an engine


@pytest.mark.parametrize(
    "command", [["createsuperuser", "--noinput", "--username=x", "--email=x@example.com"], ["changepassword", "x"]]
)
def test_a_command_without_an_engine_says_so_in_one_line(
    table: Table, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The message names the problem and the fix, without a traceback."""

    def nobody(operation: str, params: Any) -> None:
        raise testing.unreachable(table.settings)

    with testing.intercept(nobody), pytest.raises(SystemExit) as ended:
        ManagementUtility(["manage.py", *command]).execute()
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert said.startswith("EndpointUnreachable: No server responds at http://127.0.0.1:")
    assert "manage.py dynamo_local" in said
    assert said.count("\n") == 1
