"""Django fields of slugs and of addresses of pages and computers, of times of day and durations, and of files.

They describe values, validate them and make form fields as Django's own fields do.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import time
from typing import Any

from django.core.files import File
from django.db import models
from django.db.models import Model, prefetch_related_objects
from django.db.models.fields.related_descriptors import ReverseOneToOneDescriptor

from dynamo_single import clock
from dynamo_single.orm.schema.fields.base import DynamoField, ReferenceField
from dynamo_single.orm.schema.fields.documents import Canonical
from dynamo_single.orm.schema.fields.fetching import FETCH_ONE, ForwardOneDescriptor, fetch, mode_of, with_mode_of


class SlugField(DynamoField, models.SlugField):  # type: ignore[type-arg]  # not generic at run time
    """A short text of letters, digits, hyphens and underscores."""


class URLField(DynamoField, models.URLField):  # type: ignore[type-arg]  # not generic at run time
    """The address of a page."""

    def formfield(self, **kwargs: object) -> Any:
        """Assume https for input without a scheme, as Django 6 does; Django 5.2 warns."""
        return super().formfield(**{"assume_scheme": "https", **kwargs})


class IPAddressField(DynamoField, models.GenericIPAddressField):  # type: ignore[type-arg]  # not generic at run time
    """An IPv4 or IPv6 address."""


for _text_field in (SlugField, URLField, IPAddressField):
    _text_field.register_lookup(Canonical)


# Django fields of times of day and of durations.


class TimeField(DynamoField, models.TimeField):  # type: ignore[type-arg]  # not generic at run time
    """A time of day."""

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        """Return the process's local time of day, as Django does, by the app's clock."""
        if not (self.auto_now or (self.auto_now_add and add)):
            return super().pre_save(model_instance, add)
        setattr(model_instance, self.attname, present := clock.time_of_day())
        return present

    def save_form_data(self, instance: models.Model, data: object) -> None:
        """Return a form's value, unless it is the widget's text of the value, which has whole seconds."""
        before = getattr(instance, self.attname)
        if not (isinstance(data, time) and isinstance(before, time) and data == before.replace(microsecond=0)):
            super().save_form_data(instance, data)


class DurationField(DynamoField, models.DurationField):  # type: ignore[type-arg]  # not generic at run time
    """How long something takes."""


# Django's fields of files and images: the name is stored in the item, the contents in a storage.


class FileField(DynamoField, models.FileField):  # type: ignore[misc]  # see descriptor_class
    """A file in a storage."""

    #: The storage may be another server.
    may_wait = True

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        """Put what was uploaded into the storage; what is no file is left for the attribute to refuse."""
        held = getattr(model_instance, self.attname)
        return super().pre_save(model_instance, add) if isinstance(held, File) else held

    def validate_stored(self, value: object) -> None:
        """Nothing: a file that was uploaded is only put into the storage when its object is saved."""


class ImageField(FileField, models.ImageField):  # type: ignore[misc]  # see descriptor_class
    """An image in a storage; Pillow reads it."""


# Django's field of a one-to-one relation, and its other side: ``place.restaurant``.  Django queries a database for the
# referring object. Here its claim names it, or its primary key.


class ReverseOneDescriptor(ReverseOneToOneDescriptor):  # type: ignore[type-arg]  # not generic at run time
    """``place.restaurant``: two GetItems, strongly consistent, or one if the place is the whole primary key.

    The object caches the result. Without one it raises ``RelatedObjectDoesNotExist``, after one GetItem.
    """

    def __get__(self, instance: Any, cls: object = None) -> Any:
        """Return the other object, by the mode of this one; peers are loaded only if their keys identify them."""
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
        """Load with two GetItems, or one if the place is the whole primary key, or if there is none."""
        related = self.related
        asked = related.field.get_forward_related_filter(instance)
        found = None
        with suppress(related.related_model.DoesNotExist):
            found = self.get_queryset(instance=instance).get(**asked)
            related.field.set_cached_value(found, instance)
        related.set_cached_value(instance, found)

    def fetch_many(self, instances: Any) -> None:
        """Load with one BatchGetItem for each hundred."""
        missing = [each for each in instances if not self.related.is_cached(each)]
        prefetch_related_objects(missing, self.related.get_accessor_name() or "")

    def get_queryset(self, **hints: Any) -> Any:
        """Return live objects if the other side is claimed: objects in the trash do not hold claims.

        For a single object it is a consistent queryset, so that the claim identifies the other instead of an index.
        """
        return self._live(hints).consistent()

    def get_prefetch_querysets(self, instances: Any, querysets: Any = None) -> Any:
        """Return the reads of ``prefetch_related()``, in the objects' mode: batches of claims, without an index."""
        return super().get_prefetch_querysets(instances, querysets or [self._live({"instance": instances[0]})])

    def _live(self, hints: dict[str, Any]) -> Any:
        """Django's queryset, of live objects; since 6.1 it is made for an object."""
        queryset = with_mode_of(hints.get("instance"), super().get_queryset(**hints))
        if not self.related.field.primary_key and queryset._asked.visibility == "all":
            queryset = queryset.with_visibility("live")
        return queryset


class OneToOneField(ReferenceField, models.OneToOneField):  # type: ignore[type-arg,misc]  # see descriptor_class
    """A one-to-one relation to forms and to the admin."""

    related_accessor_class = ReverseOneDescriptor
    forward_related_accessor_class = ForwardOneDescriptor
