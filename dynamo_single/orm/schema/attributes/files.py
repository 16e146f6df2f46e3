"""Attributes of files and images: items hold their names, and a storage of Django's the contents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, overload

from django.core.files import File
from django.core.files.storage import Storage
from django.db import models
from django.db.models.fields.files import FieldFile, ImageFieldFile

from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.schema.attributes.base import Attribute, Label
from dynamo_single.orm.schema.fields import simple
from dynamo_single.orm.schema.keys import values
from dynamo_single.orm.schema.keys.values import gettext_noop


class FileAttribute(Attribute[FieldFile]):
    """A file: the item holds its name, and ``storage`` the contents, as with Django's ``FileField``.

    ``upload_to`` and ``storage`` as there. ``save()`` and ``create()`` store an uploaded file before they write the
    item; the file stays even if the write fails. The name supports ``exact``, ``startswith`` and ``isnull``; keys
    cannot contain it.
    """

    attr_type = "S"
    expects = gettext_noop("a file, or the name of one in the storage")
    field_class: ClassVar[type[models.Field[Any, Any]]] = simple.FileField

    def __init__(
        self,
        verbose_name: Label | None = None,
        *,
        upload_to: str | Callable[[Any, str], str] = "",
        storage: Storage | Callable[[], Storage] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(verbose_name, **options)
        self.field_options |= {"upload_to": upload_to, "storage": storage}

    @overload
    def __get__(self, instance: None, owner: object) -> FileAttribute: ...
    @overload
    def __get__(self, instance: object, owner: object) -> FieldFile: ...
    def __get__(self, instance: Any, owner: object) -> Any:
        held = super().__get__(instance, owner)
        if instance is None or (isinstance(held, FieldFile) and held.instance is instance):
            return held
        if isinstance(held, FieldFile):
            held.instance = instance  # belongs to a copied object
            return held
        if isinstance(held, File):
            made = self.field.attr_class(instance, self.field, held.name)
            made.file = held
            made._committed = False
        elif held is None or isinstance(held, str):
            made = self.field.attr_class(instance, self.field, held or None)
        else:
            return held
        instance.__dict__[self.name] = made
        return made

    def __set__(self, instance: object, value: object) -> None:
        instance.__dict__[self.name] = value

    def prepare(self, value: object) -> Any:
        """Return the name; without one ``None``, or the empty string if ``blank=True`` and the attribute is not
        ``null``."""
        name = super().prepare(value)
        if name:
            return name
        return "" if self.field_options["blank"] and not self.null else None

    def clean(self, value: object) -> Any:
        """Return the name of a stored file; reject other names, so that each name leads to a file."""
        if isinstance(value, str):
            return values.checked_text(value, path=self.name)
        if not isinstance(value, File):
            raise self.refuse(value)
        if value and not getattr(value, "_committed", False):
            raise InvalidValue(
                f"{self.name}: {value.name} is not in the storage. save() and create() put it there; for another write "
                "call its save(name, content, save=False) first."
            )
        return value.name or ""


class ImageAttribute(FileAttribute):
    """An image, as Django's ``ImageField``; forms need Pillow, and so do ``width_field`` and ``height_field``."""

    field_class = simple.ImageField

    def __init__(
        self,
        verbose_name: Label | None = None,
        *,
        width_field: str | None = None,
        height_field: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(verbose_name, **options)
        self.field_options |= {"width_field": width_field, "height_field": height_field}

    @overload
    def __get__(self, instance: None, owner: object) -> ImageAttribute: ...
    @overload
    def __get__(self, instance: object, owner: object) -> ImageFieldFile: ...
    def __get__(self, instance: object, owner: object) -> Any:
        return super().__get__(instance, owner)

    def __set__(self, instance: object, value: object) -> None:
        had_one = instance.__dict__.get(self.name) is not None
        super().__set__(instance, value)
        # Django reads the size of a new object after all attributes are set.
        if had_one:
            self.field.update_dimension_fields(instance, force=True)
