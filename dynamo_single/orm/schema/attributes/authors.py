"""The attribute that says who made an object, and whose context an object is made in.

Who it is comes from the context and never from a value. This module must not know requests of any kind.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Literal

from django.conf import settings

from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.schema.attributes.base import Label
from dynamo_single.orm.schema.attributes.references import ReferenceAttribute
from dynamo_single.orm.schema.encoding.shown import shown
from dynamo_single.orm.schema.fields import fields
from dynamo_single.table import names

#: Gives the ``pk`` of the user that acts in this context; called only when an object is made.
author: ContextVar[Callable[[], Any] | None] = ContextVar("author", default=None)


def current_author() -> Any:
    """The ``pk`` of the user that acts in this context, or ``None`` if nobody does."""
    who = author.get()
    return None if who is None else who()


class AuthorField(fields.ReferenceField):
    """A reference to the user that is set by itself, once."""

    #: Who it is may have to be read.
    may_wait = True

    def pre_save(self, model_instance: Any, add: bool) -> Any:
        """The user of the context, for a new object; raises ``NotSupported`` if somebody else was set by hand."""
        given = model_instance.__dict__.get(self.attname)
        if not add:
            return given
        value = self.attribute.prepare(current_author())
        # A copy of a stored object, made by ``pk = None``, has its author still.
        read = (model_instance._stored or {}).get(self.attribute.attr_name)
        by_hand = given is not None and (read is None or self.attribute.from_attribute_value(read) != given)
        if by_hand and given != value:
            raise NotSupported(
                f"{model_instance._meta.label}.{self.name} cannot be set to {shown(given)}: it is the user that makes "
                "the object. Leave it out, or make the object within acting_as(user)."
            )
        setattr(model_instance, self.attname, value)
        return value


class AuthorAttribute(ReferenceAttribute[Any, Literal[True]]):
    """The user that made an object, by CurrentUserMiddleware or ``acting_as()``; set once, on every creation path."""

    field_class = AuthorField
    settled = True

    def __init__(self, verbose_name: Label | None = None, *, attr_name: str = names.CREATED_BY) -> None:
        super().__init__(
            settings.AUTH_USER_MODEL,
            verbose_name,
            related_name="+",
            null=True,
            blank=True,
            editable=False,
            attr_name=attr_name,
        )
