"""Managers: the querysets that a model's objects come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from django.db import models

from dynamo_single import registry
from dynamo_single.query import Visibility
from dynamo_single.queryset import QuerySet

M = TypeVar("M", bound=models.Model, covariant=True)

if TYPE_CHECKING:
    # What from_queryset() makes, spelled out for checkers: Django's stubs know only Django's queryset.
    class _Base(models.Manager[M]):
        def get_queryset(self) -> QuerySet[M]: ...
        def all(self) -> QuerySet[M]: ...
        def none(self) -> QuerySet[M]: ...
        def filter(self, *args: Any, **kwargs: Any) -> QuerySet[M]: ...
        def exclude(self, *args: Any, **kwargs: Any) -> QuerySet[M]: ...
        def complex_filter(self, filter_obj: Any) -> QuerySet[M]: ...
        def order_by(self, *field_names: Any) -> QuerySet[M]: ...
        def reverse(self) -> QuerySet[M]: ...
        def distinct(self, *field_names: Any) -> QuerySet[M]: ...
        def select_related(self, *fields: Any) -> QuerySet[M]: ...
        def prefetch_related(self, *lookups: Any) -> QuerySet[M]: ...
        def using(self, alias: str | None) -> QuerySet[M]: ...
        def using_index(self, name: str) -> QuerySet[M]: ...
        def consistent(self) -> QuerySet[M]: ...
        def allow_scan(self) -> QuerySet[M]: ...
        def with_visibility(self, visibility: Visibility) -> QuerySet[M]: ...
        def values(self, *fields: Any, **expressions: Any) -> Any: ...
        def values_list(self, *fields: Any, flat: bool = False, named: bool = False) -> Any: ...

else:
    _Base = models.Manager.from_queryset(QuerySet)


class Manager(_Base[M]):
    """A model's objects; everything of ``QuerySet`` is here too."""


class SoftDeleteManager(Manager[M]):
    """The objects of a model with soft delete: the live ones, the deleted ones, or all."""

    def __init__(self, visibility: Visibility = "live") -> None:
        super().__init__()
        self.visibility = visibility

    def get_queryset(self) -> QuerySet[M]:
        """A queryset of the manager's kind of objects."""
        return super().get_queryset().with_visibility(self.visibility)


class BaseManager(Manager[M]):
    """Every object of a model, deleted ones too: for relations, which must find what an object refers to."""

    def get_queryset(self) -> QuerySet[M]:
        """A queryset that hides nothing, whatever the model's own managers leave out."""
        soft_delete = registry.DELETED_AT in registry.attributes_of(self.model)
        return super().get_queryset().with_visibility("all" if soft_delete else "live")
