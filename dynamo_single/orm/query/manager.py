"""Managers: the querysets that a model's objects come from."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from django.db import models

from dynamo_single.orm.plan.plan import Visibility
from dynamo_single.orm.query.queryset import QuerySet
from dynamo_single.orm.schema import references, registry
from dynamo_single.orm.schema.types import DynamoModel, M

Q = TypeVar("Q", bound=QuerySet[Any])

if TYPE_CHECKING:
    from dynamo_single.orm.results.pages import Page
    from dynamo_single.orm.write.batch_transactions import Progress
    from dynamo_single.orm.write.bulk import CreatedList

    # The result of from_queryset(), written out for type checkers: Django's stubs know only Django's queryset.
    class _Base(models.Manager[M]):
        # See QuerySet.as_manager(). mypy takes no such class as a base without the plugin of django-stubs.
        @classmethod
        def from_queryset(cls, queryset_class: type[Q], class_name: str | None = None) -> type[Q]: ...  # type: ignore[override]
        def get_queryset(self) -> QuerySet[M]: ...
        def all(self) -> QuerySet[M]: ...
        def none(self) -> QuerySet[M]: ...
        def filter(self, *args: object, **kwargs: object) -> QuerySet[M]: ...
        def exclude(self, *args: object, **kwargs: object) -> QuerySet[M]: ...
        def complex_filter(self, filter_obj: object) -> QuerySet[M]: ...
        def order_by(self, *field_names: object) -> QuerySet[M]: ...
        def reverse(self) -> QuerySet[M]: ...
        def distinct(self, *field_names: object) -> QuerySet[M]: ...
        def select_related(self, *fields: object) -> QuerySet[M]: ...
        def prefetch_related(self, *lookups: object) -> QuerySet[M]: ...
        def using(self, alias: str | None) -> QuerySet[M]: ...
        def using_index(self, name: str) -> QuerySet[M]: ...
        def without_index(self, *names: str) -> QuerySet[M]: ...
        def union(self, *other_qs: object, all: bool = False) -> QuerySet[M]: ...
        def only(self, *fields: object) -> QuerySet[M]: ...
        def defer(self, *fields: object) -> QuerySet[M]: ...
        def consistent(self) -> QuerySet[M]: ...
        def allow_scan(self) -> QuerySet[M]: ...
        def allow_reads(self, number: int) -> QuerySet[M]: ...
        def allow_in_memory(self, limit: int = 1000, *, max_bytes: int = 32 * 1024 * 1024) -> QuerySet[M]: ...
        def without_secrets(self) -> QuerySet[M]: ...
        def annotate(self, *args: object, **kwargs: object) -> Any: ...
        def dates(self, field_name: str, kind: str, order: str = "ASC") -> Any: ...
        def datetimes(
            self, field_name: str, kind: str, order: str = "ASC", tzinfo: datetime.tzinfo | None = None
        ) -> Any: ...
        def with_visibility(self, visibility: Visibility) -> QuerySet[M]: ...
        def page(self, size: int, cursor: str | None = None, *, max_requests: int | None = None) -> Page[M]: ...
        async def apage(self, size: int, cursor: str | None = None, *, max_requests: int | None = None) -> Page[M]: ...
        def bulk_create(
            self,
            objs: Iterable[DynamoModel],
            batch_size: int | None = None,
            ignore_conflicts: bool = False,
            update_conflicts: bool = False,
            update_fields: Iterable[str] | None = None,
            unique_fields: Iterable[str] | None = None,
            *,
            in_transactions: bool = False,
        ) -> CreatedList[M]: ...
        def in_transactions(self) -> QuerySet[M]: ...
        def on_progress(self, callback: Progress | None) -> QuerySet[M]: ...
        def cursor_for(self, obj: DynamoModel, *, before: bool = False) -> str: ...
        def values(self, *fields: object, **expressions: object) -> Any: ...
        def values_list(self, *fields: object, flat: bool = False, named: bool = False) -> Any: ...

else:
    _Base = models.Manager.from_queryset(QuerySet)


class Manager(_Base[M]):
    """A model's objects; everything of ``QuerySet`` is here too."""


class SoftDeleteManager(Manager[M]):
    """The objects of a model with soft delete: the live ones, the deleted ones, or all."""

    visibility: Visibility = "live"

    def __init__(self, visibility: Visibility | None = None) -> None:
        super().__init__()
        if visibility is not None and visibility != self.visibility:
            # Related managers derive from another manager's class alone, and must return the same objects.
            cls: Any = type(self)
            self.__class__ = _class_with_visibility(cls, visibility)

    def get_queryset(self) -> QuerySet[M]:
        """A queryset of the manager's kind of objects."""
        return _with_visibility(super().get_queryset(), self.visibility)


class BaseManager(Manager[M]):
    """Every object of a model, deleted ones too: for relations, which must find what an object refers to."""

    def get_queryset(self) -> QuerySet[M]:
        """A queryset that hides nothing, whatever the model's own managers leave out."""
        soft_delete = registry.DELETED_AT in registry.attributes_of(self.model)
        return _with_visibility(super().get_queryset(), "all" if soft_delete else "live")


@lru_cache(maxsize=256)
def _class_with_visibility(cls: type[object], visibility: Visibility) -> Any:
    """Return a class of managers that returns the same objects under the same name."""
    return type(cls.__name__, (cls,), {"__module__": cls.__module__, "visibility": visibility})


def _with_visibility(queryset: QuerySet[M], visibility: Visibility) -> QuerySet[M]:
    """Return the queryset, or a copy if it does not return these objects already: each query begins here."""
    return queryset if queryset._asked.visibility == visibility else queryset.with_visibility(visibility)


if TYPE_CHECKING:

    class Children(references.Children[references.Child]):
        """``Children`` as a project declares them, whose ``company.people`` is a manager; the schema does not depend on
        managers."""

        @overload
        def __get__(self, instance: None, owner: object) -> Self: ...
        @overload
        def __get__(self, instance: object, owner: object) -> Manager[references.Child]: ...
        def __get__(self, instance: object, owner: object) -> Self | Manager[references.Child]: ...
else:
    Children = references.Children
