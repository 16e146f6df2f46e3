"""What a user name may be."""

from __future__ import annotations

from django.contrib.auth.validators import UnicodeUsernameValidator
from django.utils.deconstruct import deconstructible


@deconstructible
class UsernameValidator(UnicodeUsernameValidator):
    """Django's rule without ``@``: nobody's name can look like somebody else's e-mail address."""

    regex = r"^[\w.+-]+\Z"
    message = "Enter a valid username. It may contain letters, digits and . + - _ only; an @ is for e-mail addresses."
