"""The attribute that says who made an object, and whose context an object is made in.

Who it is comes from the context and never from a value. This module must not know requests of any kind.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Literal

from django.conf import settings
from django.db import models

from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.schema.attributes.base import Label
from dynamo_single.orm.schema.attributes.references import ReferenceAttribute
from dynamo_single.orm.schema.encoding.shown import shown
from dynamo_single.orm.schema.fields import fields
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.table import names

#: Gives the model and the ``pk`` of whoever acts in this context; called only when an object is made. The model is
#: ``None`` where only the ``pk`` was given.
author: ContextVar[Callable[[], tuple[Any, Any]] | None] = ContextVar("author", default=None)


def current_author() -> tuple[Any, Any]:
    """The model, if it is known, and the ``pk`` of whoever acts in this context; ``None`` if nobody does."""
    who = author.get()
    return (None, None) if who is None else who()


class AuthorField(fields.ReferenceField):
    """A reference to the user that is set by itself, once."""

    #: Who it is may have to be read.
    may_wait = True

    def _acting(self, model_instance: DynamoModel) -> Any:
        """The ``pk`` of whoever acts; raises ``NotSupported`` for an object of another model than the author's."""
        model, pk = current_author()
        wanted: Any = self.remote_field.model._meta.concrete_model
        if pk is not None and model is not None and not issubclass(model._meta.concrete_model, wanted):
            raise NotSupported(
                f"{model_instance._meta.label}.{self.name} is one of {wanted._meta.label}, and one of "
                f"{model._meta.label} acts in this context. Make the object within acting_as() of one of "
                f"{wanted._meta.label}, or of nobody: acting_as(None)."
            )
        return self.attribute.prepare(pk)

    def pre_save(self, model_instance: Any, add: bool) -> Any:
        """The user of the context, for a new object; raises ``NotSupported`` if somebody else was set by hand."""
        given = model_instance.__dict__.get(self.attname)
        if not add:
            return given
        value = self._acting(model_instance)
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
    """Who made an object, by CurrentUserMiddleware or ``acting_as()``; set once, on every creation path.

    It is one of ``AUTH_USER_MODEL``, unless ``to`` names another model, which need not be in DynamoDB.
    """

    field_class = AuthorField
    settled = True

    def __init__(self, to: Any = None, verbose_name: Label | None = None, *, attr_name: str = names.CREATED_BY) -> None:
        super().__init__(
            settings.AUTH_USER_MODEL if to is None else to,
            verbose_name,
            related_name="+",
            on_delete=models.DO_NOTHING,
            null=True,
            blank=True,
            editable=False,
            attr_name=attr_name,
        )
