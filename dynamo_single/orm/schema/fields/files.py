"""Django's fields of files and images: the name is stored in the item, the contents in a storage.

As ``fields`` does, they describe, validate and make form fields as Django's do.
"""

from __future__ import annotations

from typing import Any

from django.core.files import File
from django.db import models

from dynamo_single.orm.schema.fields.fields import DynamoField


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
