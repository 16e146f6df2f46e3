"""The forms of the user's admin pages: Django's, for this user."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.auth import forms as auth_forms

from accounts.models import User


class UserCreationForm(auth_forms.AdminUserCreationForm):  # type: ignore[type-arg]  # not generic at run time
    """A new user with a name, an address and a password."""

    class Meta:
        model = User
        fields = ("username", "email")
        field_classes: ClassVar[dict[str, type]] = {"username": auth_forms.UsernameField}

    def clean_username(self) -> str:
        """The name as it is: the model finds duplicates, whatever their case, without Django's query by ``iexact``."""
        username: str = self.cleaned_data["username"]
        return username


class UserChangeForm(auth_forms.UserChangeForm):  # type: ignore[type-arg]  # not generic at run time
    """A user's attributes; the password has a page of its own."""

    class Meta:
        model = User
        fields = "__all__"
        field_classes: ClassVar[dict[str, type]] = {"username": auth_forms.UsernameField}
