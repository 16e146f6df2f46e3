"""Django's own forms that find users by address or name use claims, in any case."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.forms import PasswordResetForm, UserCreationForm

from accounts.models import User
from dynamo_single.testing import assert_requests

FOUND = ["GetItem", "GetItem"]


@pytest.fixture
def mike(table: Any) -> User:
    """Return a user with a name and an address."""
    return User.objects.create_user("Mike", "Mike@example.com", "Quite-Good-9")


class CreationForm(UserCreationForm):  # type: ignore[type-arg]  # not generic at run time
    """The form from Django's documentation for custom user models."""

    class Meta:
        model = User
        fields = ("username", "email")


def test_djangos_password_reset_form_finds_the_address(mike: User, mailoutbox: Any) -> None:
    form = PasswordResetForm({"email": "MIKE@EXAMPLE.com"})
    assert form.is_valid()
    with assert_requests(FOUND):
        form.save(domain_override="example.com", email_template_name="registration/password_reset_email.html")
    assert [mail.to for mail in mailoutbox] == [["Mike@example.com"]]


def test_djangos_password_reset_form_says_nothing_of_an_address_that_nobody_has(mike: User, mailoutbox: Any) -> None:
    form = PasswordResetForm({"email": "nobody@example.com"})
    assert form.is_valid()
    with assert_requests(["GetItem"]):
        form.save(domain_override="example.com")
    assert mailoutbox == []


def test_somebody_who_is_not_active_gets_no_mail(mike: User, mailoutbox: Any) -> None:
    """The user that the claim names must meet the other conditions."""
    User.objects.filter(pk=mike.pk).update(is_active=False)
    form = PasswordResetForm({"email": "mike@example.com"})
    assert form.is_valid()
    form.save(domain_override="example.com")
    assert mailoutbox == []


def test_djangos_creation_form_makes_a_user(table: Any) -> None:
    form = CreationForm(
        {"username": "Anna", "email": "anna@example.com", "password1": "Quite-Good-9", "password2": "Quite-Good-9"}
    )
    assert form.is_valid(), form.errors
    anna = form.save()
    assert User.objects.get(username__iexact="ANNA") == anna


@pytest.mark.parametrize("name", ["Mike", "MIKE"])
def test_djangos_creation_form_sees_a_name_that_is_taken(mike: User, name: str) -> None:
    """The form uses ``iexact``."""
    form = CreationForm(
        {"username": name, "email": "m@example.com", "password1": "Quite-Good-9", "password2": "Quite-Good-9"}
    )
    assert form.errors == {"username": ["A user with that username already exists."]}
