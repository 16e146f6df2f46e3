"""The steps that a name takes over relations: ``customer__city``, ``orders__status``, ``tags__name``.

This module knows models and Django's fields, and must not know querysets.
"""

from __future__ import annotations

from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db.models import Q
from msgspec import Struct

from dynamo_single.orm.schema.references import Children
from dynamo_single.orm.schema.types import DynamoModel

_SEPARATOR = "__"


class Step(Struct, frozen=True):
    """One step from a model to a related model.

    ``field`` is the reference that connects them: one of the model itself if the step goes ``forward``, else one of the
    other model. If that is a model of edges, ``inner`` is the name of its reference to the object at the other end.
    ``kept`` is the many-to-many relation if the model itself contains the keys of the other objects. ``conditions`` are
    the values of the other objects besides the key: those of a ``GenericRelation`` have the model's content type.
    """

    field: Any
    forward: bool
    inner: str = ""
    kept: Any = None
    conditions: tuple[tuple[str, object], ...] = ()

    @property
    def model(self) -> Any:
        """The model that the step leads to."""
        return self.field.related_model if self.forward else self.field.model

    @property
    def near(self) -> str:
        """The attribute of the model that holds the keys of the step."""
        return str(self.field.attname) if self.forward else "pk"

    @property
    def far(self) -> str:
        """The attribute of the other model that has the same keys."""
        return "pk" if self.forward else str(self.field.attname)

    @property
    def is_plural(self) -> bool:
        """Whether the step can lead to several objects."""
        return not self.forward and not self.field.unique

    def is_lookup(self, rest: str) -> bool:
        """Return whether the rest of a name is a lookup of the relation itself, which compares keys."""
        first = rest.partition(_SEPARATOR)[0]
        return not has_name(self.model, first) and self.model._meta.pk.get_lookup(first) is not None

    def name(self, rest: str) -> str:
        """Return the name of a condition in the other model, given what follows the relation's own name."""
        if self.inner:
            return f"{self.inner}{_SEPARATOR}{rest}" if rest else self.inner
        return f"pk{_SEPARATOR}{rest}" if rest and self.is_lookup(rest) else rest or "pk"


class ComputedReference(Struct, frozen=True):
    """A reference to objects that are not stored, such as content types, which are compared without a request."""

    field: Any

    @property
    def kept_in(self) -> str:
        """The attribute with the key."""
        return str(self.field.attname)

    def keys_by(self, condition: Q) -> list[Any]:
        """Return the keys of the objects that meet a condition."""
        return sorted(self.field.related_model._default_manager.filter(condition).values_list("pk", flat=True))

    def held(self, keys: list[Any]) -> Q:
        """Return the condition for the objects that have one of the keys."""
        return Q((f"{self.kept_in}__in", keys))

    def holders(self, keys: list[Any]) -> None:
        """Return nothing: no other model lists the objects."""


def has_name(model: Any, name: str) -> bool:
    """Return whether a name is one of a model's fields, relations or children rather than a lookup."""
    try:
        model._meta.get_field(name)
    except FieldDoesNotExist:
        fields = model._meta.concrete_fields
        return (
            name == "pk"
            or isinstance(getattr(model, name, None), Children)
            or any(name == field.attname for field in fields)
        )
    return True


def step_of(model: type[DynamoModel], name: str) -> tuple[Step, str] | None:
    """Return the first step of a condition's name and the rest of it; ``None`` if it is about the model itself.

    The key of a referenced object is in the reference, so that ``customer__pk`` takes no step.
    """
    first, _, rest = name.partition(_SEPARATOR)
    children = getattr(model, first, None)
    if isinstance(children, Children):
        return Step(children.field, False), rest
    try:
        field: Any = model._meta.get_field(first)
    except FieldDoesNotExist:
        return None
    step = _step(field, rest)
    is_ours = step is not None and (hasattr(step.model, "_stored") or step.kept is not None)
    return (step, rest) if step is not None and is_ours else None


def _step(field: Any, rest: str) -> Step | None:
    if not field.is_relation:
        return None
    if field.many_to_many:
        # Since Django 6.1 no side of the relation is concrete.
        is_forward = hasattr(field, "m2m_field_name")
        relation = field if is_forward else field.field
        ends = relation.m2m_field_name(), relation.m2m_reverse_field_name()
        near, far = ends if is_forward else reversed(ends)
        through = relation.remote_field.through
        kept = relation if is_forward and hasattr(relation, "kept_in") else None
        return Step(through._meta.get_field(near), False, far, kept)
    if hasattr(field, "object_id_field_name"):
        other, kind = field.related_model, field.get_content_type().pk
        return Step(
            other._meta.get_field(field.object_id_field_name),
            False,
            conditions=((field.content_type_field_name, kind),),
        )
    if not field.concrete:
        back = getattr(field, "field", None)
        return Step(back, False) if back is not None and back.concrete else None
    if not hasattr(field, "attribute") or not rest:
        return None
    after = rest.partition(_SEPARATOR)[0]
    is_key = after in ("pk", field.target_field.name, field.target_field.attname)
    if is_key or not has_name(field.related_model, after):
        return None
    return Step(field, True, kept=None if hasattr(field.related_model, "_stored") else ComputedReference(field))
