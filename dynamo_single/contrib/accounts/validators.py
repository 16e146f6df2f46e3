"""The validators of user names and telephone numbers."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.utils.deconstruct import deconstructible
from django.utils.translation import gettext_lazy as _

from dynamo_single.contrib.accounts.logins.identifiers import phone_of


@deconstructible
class UsernameValidator(UnicodeUsernameValidator):
    """Django's rule without ``@``, so a user name cannot look like another user's e-mail address."""

    regex = r"^[\w.+-]+\Z"
    message = "Enter a valid username. It may contain letters, digits and . + - _ only; an @ is for e-mail addresses."

    def __call__(self, value: Any) -> None:
        """Reject invalid names, and telephone numbers if users can log in with numbers."""
        super().__call__(value)
        if phone_of(value) is not None:
            raise ValidationError(_("A user name cannot be a telephone number."), "phone")


@deconstructible
class PhoneValidator:
    """The validator of a stored telephone number, which includes the country."""

    def __call__(self, value: str) -> None:
        """Reject strings that are not telephone numbers in E.164."""
        if phone_of(value) != value:
            raise ValidationError(_("Enter a telephone number with its country, such as +15550100."), "phone")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))
