"""Django's field of a one-to-one relation, and its other side: ``place.restaurant``.

Django asks a database for the object that refers to another one. Here its claim says which it is, or its primary key.
"""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models.fields.related_descriptors import ReverseOneToOneDescriptor

from dynamo_single.orm.schema.fields.fields import ReferenceField


class ByClaim:
    """What Django's descriptor asks for the one object, in the place of a queryset."""

    def __init__(self, queryset: Any, field: Any) -> None:
        self.queryset = queryset
        self.field = field

    def get(self, **asked: Any) -> Any:
        """The object; raises ``DoesNotExist``."""
        (value,) = asked.values()
        return self.queryset._the_one(self.field.attname, value)


class ReverseOneDescriptor(ReverseOneToOneDescriptor):  # type: ignore[type-arg]  # not generic at run time
    """``place.restaurant``: two GetItems, strongly consistent, or one where the place is the whole primary key.

    The answer is kept on the object. Where there is none it is ``RelatedObjectDoesNotExist``, after one GetItem.
    """

    def get_queryset(self, **hints: Any) -> Any:
        """For one object what finds the other by its claim; for ``prefetch_related()`` a queryset, by a key."""
        queryset: Any = super().get_queryset(**hints)
        return ByClaim(queryset, self.related.field) if "instance" in hints else queryset

    def get_prefetch_querysets(self, instances: Any, querysets: Any = None) -> Any:
        """What ``prefetch_related()`` reads: a queryset, also where Django 6.1 names an object for hints to it."""
        return super().get_prefetch_querysets(instances, querysets or [super().get_queryset(instance=instances[0])])


class OneToOneField(ReferenceField, models.OneToOneField):  # type: ignore[type-arg,misc]  # see descriptor_class
    """A one-to-one relation to forms and to the admin."""

    related_accessor_class = ReverseOneDescriptor
