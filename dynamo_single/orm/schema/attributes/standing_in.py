"""Attributes that store the values of another one: a reference stores another model's ``pk``, a copy what it copies.

This module must not know what the other attribute is.
"""

from __future__ import annotations

from typing import Any

from dynamo_single.orm.schema.attributes.base import Attribute


class StandIn(Attribute[Any]):
    """Prepares, stores and reads values as its ``target`` does, an attribute of this one's name."""

    #: The attribute that it stands in for; a subclass finds it when it is first asked for.
    target: Any

    @property
    def attr_type(self) -> str:  # type: ignore[override]  # a plain class attribute elsewhere
        """DynamoDB's type of the target."""
        return str(self.target.attr_type)

    @property
    def key_kind(self) -> str | None:  # type: ignore[override]  # see attr_type
        """As the target is encoded."""
        kind: str | None = self.target.key_kind
        return kind

    def prepare(self, value: Any) -> Any:
        """As the target does."""
        return self.target.prepare(value)

    def encode(self, value: Any) -> Any:
        """As the target stores it."""
        return self.target.encode(value)

    def decode(self, inner: Any) -> Any:
        """As the target reads it."""
        return self.target.decode(inner)

    def to_text(self, value: Any) -> str:
        """As the target's value reads."""
        text: str = self.target.to_text(value)
        return text

    def from_text(self, text: str) -> Any:
        """As the target's value is read."""
        return self.target.from_text(text)
