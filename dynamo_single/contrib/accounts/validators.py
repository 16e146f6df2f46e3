"""What a user name and a telephone number may be."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.utils.deconstruct import deconstructible
from django.utils.translation import gettext_lazy as _

from dynamo_single.contrib.accounts.logins.identifiers import phone_of


@deconstructible
class UsernameValidator(UnicodeUsernameValidator):
    """Django's rule without ``@``: nobody's name can look like somebody else's e-mail address."""

    regex = r"^[\w.+-]+\Z"
    message = "Enter a valid username. It may contain letters, digits and . + - _ only; an @ is for e-mail addresses."

    def __call__(self, value: Any) -> None:
        """Refuse what is no name, and what reads as a telephone number where people log in with these."""
        super().__call__(value)
        if phone_of(value) is not None:
            raise ValidationError(_("A telephone number cannot be a user name: it could be another's."), "phone")


@deconstructible
class PhoneValidator:
    """A number as it is stored, with its country."""

    def __call__(self, value: str) -> None:
        """Refuse what reads as no number, or is not in the one form that all others are compared in."""
        if phone_of(value) != value:
            raise ValidationError(_("Enter a telephone number with its country, such as +15550100."), "phone")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))
