"""Declare the types of this app's admin and its lists, for modules that cannot import the classes.

For type checkers, each type is a subclass of Django's class with the members that these modules use. At run time, the
names refer to Django's own classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from django.contrib.admin import ModelAdmin
from django.contrib.admin.views.main import ChangeList
from django.db.models import Q
from django.http import HttpRequest
from msgspec import Struct

from dynamo_single.orm.query.queryset import QuerySet
from dynamo_single.orm.schema.types import DynamoModel

__all__ = ["AdminMixin", "DynamoModelAdmin", "KeyChangeList", "M", "MissingPart", "Rows"]

Rows = QuerySet[DynamoModel]


class MissingPart(Struct, frozen=True):
    """A part that a page omits: its name, and the query that needs a key.

    ``is_counted`` means that the part needs all rows, even with a key.
    """

    what: str
    asked: Callable[[Rows], Rows] | None
    is_counted: bool = False


if TYPE_CHECKING:
    #: The base of mixins for a ``ModelAdmin`` or an inline, so that checkers find the methods that they call.
    AdminMixin = ModelAdmin[Any]

    from typing_extensions import TypeVar as TypeVarWithDefault  # Python's own since 3.13

    M = TypeVarWithDefault("M", bound=DynamoModel, default=Any)

    class DynamoModelAdmin(ModelAdmin[M]):
        """An admin of this app; ``admin/options`` defines the members."""

        def get_queryset(self, request: HttpRequest) -> QuerySet[M]: ...
        def has_restore_permission(self, request: HttpRequest, obj: M | None = None) -> bool: ...

    class KeyChangeList(ChangeList):
        """A list of this app; ``admin/lists/changelist`` defines the members."""

        lacking: list[MissingPart]
        unserved: list[Any]
        request: HttpRequest
        followed: tuple[tuple[bool, Q], ...]

        def without_search(self) -> Any: ...
else:
    AdminMixin = object
    M = TypeVar("M")
    DynamoModelAdmin, KeyChangeList = ModelAdmin, ChangeList
