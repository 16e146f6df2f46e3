"""What users log in with: the kinds of identifiers, and the attribute that each one is.

It knows no models, so that the models and their managers can both use it.
"""

from __future__ import annotations

from typing import Protocol

#: The kinds of identifiers that follow from the user's own attributes, and the attribute that each one is.
EMAIL = "EMAIL"
USERNAME = "USERNAME"
ATTRIBUTES = {EMAIL: "email", USERNAME: "username"}


def kind_of(identifier: str) -> str:
    """Whether somebody typed an e-mail address or a user name; no user name contains an ``@``."""
    return EMAIL if "@" in identifier else USERNAME


class Identified(Protocol):
    """Somebody who is known by identifiers."""

    def has_identifier(self, kind: str, identifier: str) -> bool:
        """Whether the identifier of this kind is theirs, whatever its case."""


class Identifying(Protocol):
    """A way to log in: whose it is, and what is typed."""

    user_id: str
    identifier: str
