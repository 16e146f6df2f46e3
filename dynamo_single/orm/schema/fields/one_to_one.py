"""Django's field of a one-to-one relation, and its other side: ``place.restaurant``.

Django asks a database for the object that refers to another one. Here its claim says which it is, or its primary key.
This module must not know how either is read.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.db import models
from django.db.models import Model, prefetch_related_objects
from django.db.models.fields.related_descriptors import ReverseOneToOneDescriptor

from dynamo_single.orm.schema.fields.fetching import FETCH_ONE, ForwardOneDescriptor, fetch, in_mode_of, mode_of
from dynamo_single.orm.schema.fields.fields import ReferenceField


class ReverseOneDescriptor(ReverseOneToOneDescriptor):  # type: ignore[type-arg]  # not generic at run time
    """``place.restaurant``: two GetItems, strongly consistent, or one where the place is the whole primary key.

    The answer is kept on the object. Where there is none it is ``RelatedObjectDoesNotExist``, after one GetItem.
    """

    def __get__(self, instance: Any, cls: object = None) -> Any:
        """The other object, by the mode of this one; peers are read along only where their keys say which they are."""
        if instance is not None and not self.related.is_cached(instance) and instance._is_pk_set():
            mode = mode_of(instance)
            if mode.track_peers and not self.related.field.primary_key:
                self.fetch_one(instance)
            elif mode is not FETCH_ONE:
                fetch(self, instance)
        return super().__get__(instance, cls)

    @property
    def prefetches(self) -> type[Model]:
        """The model whose querysets ``prefetch_related()`` reads for it."""
        return self.related.related_model

    @property
    def field(self) -> Any:
        """The relation, which is called as the accessor is."""
        return self.related

    def fetch_one(self, instance: Any) -> None:
        """Two GetItems, or one where the place is the whole primary key, or where there is none."""
        related = self.related
        asked = related.field.get_forward_related_filter(instance)
        found = None
        with suppress(related.related_model.DoesNotExist):
            found = self.get_queryset(instance=instance).get(**asked)
            related.field.set_cached_value(found, instance)
        related.set_cached_value(instance, found)

    def fetch_many(self, instances: Any) -> None:
        """One BatchGetItem for each hundred."""
        missing = [each for each in instances if not self.related.is_cached(each)]
        prefetch_related_objects(missing, self.related.get_accessor_name() or "")

    def get_queryset(self, **hints: Any) -> Any:
        """Where the other side is claimed, of live objects: none of the trash holds a claim.

        For one object it is a consistent queryset, so that the claim says which the other is, and no index.
        """
        return self._live(hints).consistent()

    def get_prefetch_querysets(self, instances: Any, querysets: Any = None) -> Any:
        """What ``prefetch_related()`` reads, in the mode of the objects: batches of claims, which need no index."""
        return super().get_prefetch_querysets(instances, querysets or [self._live({"instance": instances[0]})])

    def _live(self, hints: dict[str, Any]) -> Any:
        """Django's queryset, of live objects; since 6.1 it is made for an object."""
        queryset = in_mode_of(hints.get("instance"), super().get_queryset(**hints))
        if not self.related.field.primary_key and queryset._asked.visibility == "all":
            queryset = queryset.with_visibility("live")
        return queryset


class OneToOneField(ReferenceField, models.OneToOneField):  # type: ignore[type-arg,misc]  # see descriptor_class
    """A one-to-one relation to forms and to the admin."""

    related_accessor_class = ReverseOneDescriptor
    forward_related_accessor_class = ForwardOneDescriptor
