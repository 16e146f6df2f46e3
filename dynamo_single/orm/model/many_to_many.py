"""``ManyToMany``: a relation whose edges are items of a model of their own, which is made where none is named.

This module must not know what the relation's managers do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django import forms
from django.db import models
from django.db.models.fields.related import lazy_related_operation
from django.utils.functional import lazy
from django.utils.translation import gettext, gettext_noop

from dynamo_single.exceptions import ConfigurationError
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.model.model import Model
from dynamo_single.orm.schema.attributes import ReferenceAttribute
from dynamo_single.orm.schema.keys.template import IndexKey, Key
from dynamo_single.orm.schema.types import DynamoModel

if TYPE_CHECKING:
    from django.forms import Field as FormField

    from dynamo_single.orm.query import many_to_many as managers

    _Base = models.ManyToManyField[Any, Any]
else:
    managers = LazyModule("dynamo_single.orm.query.many_to_many")
    _Base = models.ManyToManyField


class _Chosen(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]  # not generic at run time
    """Django's field; ``limit_choices_to`` narrows the choices by a filter, where Django's forms do by a subquery."""

    def get_limit_choices_to(self) -> Any:
        """Nothing that is still to be done: called once for each form."""
        limit: Any = super().get_limit_choices_to()
        if limit and self.queryset is not None:
            self.queryset = self.queryset.complex_filter(limit)
        return {}


class ManyToMany(_Base):
    """Many objects to many: ``users = ManyToMany("accounts.User", through="Member", related_name="servers")``.

    To forms and the admin it is a ``ManyToManyField``. ``through`` names the edges' model, whose primary key is its two
    references, with the partition of one of them; an index has the other one. Without ``through`` such a model is made,
    on ``index``: see the stored layout. ``server.users`` is a Query and a BatchGetItem for each hundred.

    With ``checked`` an edge is created only if both objects are there and not in the trash, and each of them counts its
    edges: one transaction of three items. A deletion of either one then leaves no edges, whatever is created at the
    same time. The references of a named ``through`` model have to be ``checked`` themselves, as ``E031`` reports.
    """

    #: Whether nobody has named a model of the edges.
    makes_edges = False

    def __init__(
        self,
        to: Any,
        *,
        related_name: str | None = None,
        through: Any = None,
        through_fields: tuple[str, str] | None = None,
        index: str = "gs1",
        checked: bool = False,
        verbose_name: Any = None,
        help_text: Any = "",
        blank: bool = False,
        limit_choices_to: Any = None,
        symmetrical: bool = False,
    ) -> None:
        if symmetrical:
            raise ConfigurationError(
                "symmetrical=True would require two edges for each pair. Add both edges, or query the other "
                "direction by related_name."
            )
        super().__init__(
            to,
            related_name=related_name,
            through=through,
            through_fields=through_fields,
            verbose_name=verbose_name,
            help_text=help_text,
            blank=blank,
            limit_choices_to=limit_choices_to,
            symmetrical=False,
        )
        self.index = index
        self.checked = checked

    # The stubs of the base classes differ from each other.
    def contribute_to_class(self, cls: Any, name: str, **kwargs: object) -> None:  # type: ignore[override]
        """Django's, with our edges and managers in the place of its own."""
        if not cls._meta.abstract and not self.remote_field.through:
            # Django makes none where there is one.
            relation: Any = self.remote_field
            relation.through = f"{cls._meta.app_label}.{_edge_name(cls, name)}"
            self.makes_edges = True
        super().contribute_to_class(cls, name, **kwargs)
        setattr(cls, self.name, managers.EdgesDescriptor(self.remote_field, reverse=False))

    def formfield(self, **kwargs: Any) -> FormField | None:
        """Django's, with our way of ``limit_choices_to``."""
        return super().formfield(**{"form_class": _Chosen, **kwargs})

    def declared(self, cls: Any) -> None:
        """Make the model of the edges, once the class that has the relation is complete."""
        if self.makes_edges:
            lazy_related_operation(_make_edges, cls, self.remote_field.model, field=self)

    def contribute_to_related_class(self, cls: Any, related: Any) -> None:
        """Django's, with our managers on the other side."""
        super().contribute_to_related_class(cls, related)
        if not self.remote_field.hidden and not related.related_model._meta.swapped:
            setattr(cls, related.accessor_name, managers.EdgesDescriptor(self.remote_field, reverse=True))


def _edge_name(cls: type[DynamoModel], name: str) -> str:
    return f"{cls._meta.object_name}_{name}"


def _in_words(template: str, names: Mapping[str, str]) -> str:
    text: str = gettext(template) % names
    return text


#: A template with names in it, in the language of whoever reads it.
_named = lazy(_in_words, str)


def _reference(to: Any, name: str, field: Any) -> Any:
    return ReferenceAttribute(to, on_delete=models.CASCADE, related_name=f"{name}+", checked=field.checked)


def _make_edges(owner: type[DynamoModel], target: Any, field: Any) -> None:
    """Make the model of the edges that nobody has declared, once both sides are known."""
    near, far = owner._meta.model_name, target._meta.model_name
    if near == far:
        near, far = f"from_{near}", f"to_{far}"
    name = _edge_name(owner, field.name)
    keys = {
        "primary": Key(f"{name}#{{{near}_id}}", f"{{{far}_id}}"),
        "reversed": IndexKey(field.index, f"{name}#TO#{{{far}_id}}", f"{{{near}_id}}"),
    }
    names = {"from": near, "to": far}
    meta = {
        "app_label": owner._meta.app_label,
        "table": owner._options.alias,
        "verbose_name": _named(gettext_noop("%(from)s-%(to)s relationship"), names),  # Django's words
        "verbose_name_plural": _named(gettext_noop("%(from)s-%(to)s relationships"), names),
    }
    make: Any = type(Model)
    edges = make(
        name,
        (Model,),
        {
            "__module__": owner.__module__,
            "__qualname__": name,
            near: _reference(owner, name, field),
            far: _reference(target, name, field),
            "Keys": type("Keys", (), keys),
            "Meta": type("Meta", (), meta),
        },
    )
    # What the admin and forms ask about before they let the relation be edited.
    edges._meta.auto_created = owner
