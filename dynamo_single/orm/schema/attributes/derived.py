"""Attributes that follow from other objects: a value that is copied along a reference, and how many children there are.

Both are kept by every way to write and never set. This module must not know how or when items are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Literal

from django.db.models import Q

from dynamo_single.exceptions import ConfigurationError, NotSupported
from dynamo_single.orm.schema.attributes.base import Attribute, Label
from dynamo_single.orm.schema.attributes.references import ReferenceAttribute, StoredAgain
from dynamo_single.orm.schema.attributes.scalars import IntegerAttribute
from dynamo_single.orm.schema.attributes.version import VersionAttribute
from dynamo_single.orm.schema.encoding.secrets import Path, lookups_in
from dynamo_single.orm.schema.fields import fields


class CopiedAttribute(StoredAgain[Any]):
    """An attribute of the object that a reference leads to: ``username = CopiedAttribute("user", "username")``.

    It has the source's type and can stand in the keys of indexes. Creating an object, or changing its reference, reads
    the source by one GetItem; the transaction holds only if the source still has that value. When the source's value
    changes, its copies are found by a key and follow in the same transaction, or in batches where they do not fit.

    A change that more than ``max_holders`` objects would have to follow is refused (``TooManyHolders``), or with
    ``beyond="job"`` written by itself with a mark: the copies follow when ``manage.py dynamo_rebuild`` is run.
    """

    computed = True
    field_class = fields.CopiedField
    looked_up = ("reference_field", "source", "target")

    def __init__(
        self,
        reference: str,
        attribute: str,
        verbose_name: Label | None = None,
        *,
        help_text: Label = "",
        attr_name: str | None = None,
        max_holders: int | None = None,
        beyond: Literal["refuse", "job"] = "refuse",
        secret: bool | None = None,
    ) -> None:
        named: dict[str, Any] = {"help_text": help_text, "attr_name": attr_name, "secret": secret}
        super().__init__(verbose_name, null=True, blank=True, editable=False, **named)
        if max_holders is not None and (type(max_holders) is not int or max_holders < 1):
            raise ConfigurationError(f"max_holders={max_holders!r} is no number of objects, from 1 up.")
        if beyond not in ("refuse", "job"):
            raise ConfigurationError(f'beyond={beyond!r}: it can be "refuse", or "job" for manage.py dynamo_rebuild.')
        if beyond == "job" and max_holders is None:
            raise ConfigurationError('beyond="job" has no effect without max_holders, which says when it begins.')
        self.max_holders = max_holders
        self.beyond = beyond
        self.reference = reference
        self.attribute = attribute

    @property
    def origin(self) -> str:  # type: ignore[override]  # a plain attribute elsewhere
        """What it is computed of, for messages."""
        return f"{self.reference}.{self.attribute}"

    @cached_property
    def reference_field(self) -> Any:
        """The reference that leads to the source, or ``None`` if the model has none of that name."""
        found = (
            field
            for field in self.field.model._meta.concrete_fields
            if self.reference in (field.name, field.attname)
            and isinstance(getattr(field, "attribute", None), ReferenceAttribute)
        )
        return next(found, None)

    def origins(self) -> Iterator[tuple[Attribute, Path]]:
        """Yield the attribute that is copied; nothing if the declaration is wrong, which a check reports."""
        try:
            yield self.source, ()
        except ConfigurationError:
            return

    @property
    def source_model(self) -> Any:
        """The model that the value is copied from."""
        return self.reference_field.related_model._meta.concrete_model

    @cached_property
    def source(self) -> Attribute:
        """The attribute that is copied; raises ``ConfigurationError`` for one that cannot be."""
        label = self.field.model._meta.label
        if self.reference_field is None:
            raise ConfigurationError(
                f"{label}: {self.name} is copied along {self.reference!r}, which is not a reference of the model."
            )
        model = self.reference_field.related_model
        known = {
            name: field.attribute
            for field in (() if isinstance(model, str) else model._meta.concrete_fields)
            if isinstance(getattr(field, "attribute", None), Attribute)
            for name in (field.name, field.attname)
        }
        found: Attribute | None = known.get(self.attribute)
        if found is None or isinstance(found, CopiedAttribute | CounterAttribute):
            why = "is kept by the app itself" if found is not None else "is not an attribute of a model in DynamoDB"
            name = model if isinstance(model, str) else model._meta.label
            raise ConfigurationError(
                f"{label}: {self.name} cannot copy {name}.{self.attribute}, which {why}. Copy an attribute that is "
                "stored where it is set."
            )
        if found.field_options.get("auto_now") or isinstance(found, VersionAttribute):
            raise ConfigurationError(
                f"{label}: {self.name} cannot copy {model._meta.label}.{self.attribute}, which changes with every "
                "write."
            )
        return found

    @cached_property
    def target(self) -> Attribute:
        """The source's attribute under this one's name."""
        return self.under_own_name(self.source)

    def __set__(self, instance: object, value: object) -> None:
        if value == instance.__dict__.get(self.name):
            return  # Django's validation sets every value that it has looked at
        raise NotSupported(
            f"{self.name} is copied from {self.origin} and cannot be set: set {self.reference}, or change the "
            f"{self.attribute} of the other object."
        )

    @property
    def expects(self) -> str:  # type: ignore[override]  # see attr_type
        """What the source takes."""
        expects: str = self.target.expects
        return expects


class CounterAttribute(IntegerAttribute):
    """How many live children there are: ``member_count = CounterAttribute("members")`` beside ``members = Children()``.

    With ``condition=Q(status="open")`` it counts those of them that meet it, by their own attributes. It changes in the
    transaction that creates, deletes, restores or moves a child, or changes what the condition asks of, and never
    otherwise; an object that is held in memory shows it as it was read. It cannot stand in a key.
    """

    computed = True
    key_kind = None

    def __init__(
        self,
        children: str,
        verbose_name: Label | None = None,
        *,
        condition: Q | None = None,
        help_text: Label = "",
        attr_name: str | None = None,
        secret: bool | None = None,
    ) -> None:
        named: dict[str, Any] = {"help_text": help_text, "attr_name": attr_name, "secret": secret}
        super().__init__(verbose_name, default=0, blank=True, editable=False, **named)
        self.children = children
        self.condition = condition

    @property
    def origin(self) -> str:  # type: ignore[override]  # a plain attribute elsewhere
        """What it is computed of, for messages."""
        return self.children

    def origins(self) -> Iterator[tuple[Attribute, Path]]:
        """Yield the children's attributes that the condition names, since the number depends on their values."""
        try:
            model = getattr(self.field.model, self.children).model
        except (AttributeError, ConfigurationError):
            return  # which the layout reports
        for lookup in lookups_in(self.condition):
            name, *steps = lookup.split("__")
            attribute = getattr(model, name, None)
            if isinstance(attribute, Attribute):
                yield attribute, tuple(steps)

    def make_field(self) -> Any:
        """A field that fixtures leave out: loading the children counts them."""
        field: Any = super().make_field()
        field.serialize = False
        return field

    def __set__(self, instance: object, value: object) -> None:
        if value == instance.__dict__.get(self.name):
            return  # see CopiedAttribute
        raise NotSupported(
            f"{self.name} counts {self.children} and cannot be set: it changes with each of them that is created or "
            "deleted."
        )
