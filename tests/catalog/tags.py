"""Tags of any object: a generic relation, whose items store the label of the model."""

from __future__ import annotations

from typing import Any

from django.contrib.contenttypes.fields import GenericForeignKey, GenericRelation
from django.contrib.contenttypes.models import ContentType

from dynamo_single import models


class Emblem(models.Model):
    """A word about an object of any model."""

    tag_id = models.IdAttribute()
    word = models.UnicodeAttribute()
    content_type: Any = models.ReferenceAttribute(ContentType, on_delete=models.CASCADE)
    object_id = models.UnicodeAttribute()
    content_object = GenericForeignKey()

    class Keys:
        primary = models.Key("EMBLEM#{tag_id}", "#METADATA")
        by_object = models.IndexKey("gs1", "EMBLEM#{content_type_id}#{object_id}", "{word}#{tag_id}")

    class Meta:
        app_label = "catalog"


class Animal(models.Model):
    """An object with tags, which are deleted with it."""

    animal_id = models.IdAttribute()
    name = models.UnicodeAttribute()
    tags: Any = GenericRelation(Emblem)

    class Keys:
        primary = models.Key("ANIMAL#{animal_id}", "#METADATA")

    class Meta:
        app_label = "catalog"


class Mineral(models.Model):
    """Another object, which does not declare tags."""

    mineral_id = models.IdAttribute()
    name = models.UnicodeAttribute()

    class Keys:
        primary = models.Key("MINERAL#{mineral_id}", "#METADATA")

    class Meta:
        app_label = "catalog"
