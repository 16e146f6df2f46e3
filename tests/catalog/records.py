"""Records: a map of any shape, with what keys need out of it."""

from __future__ import annotations

from django.core.validators import MinValueValidator

from dynamo_single import models


class Treatise(models.Record):
    """A product as the record scenario has it, by its author, and by its price."""

    author = models.ExtractedAttribute("data__author__lastname")
    price = models.ExtractedAttribute("data__price", output=models.DecimalAttribute())

    class Keys(models.Record.Keys):
        by_author = models.IndexKey("gs1", "TREATISE#{author}", "{id}")

    class Meta:
        id_prefix = "treatise"


class Bundle(models.Record):
    """A record whose map is held to a schema."""

    class Data:
        title = models.UnicodeAttribute(max_length=20)
        price = models.DecimalAttribute(null=True, max_digits=8, decimal_places=2, validators=[MinValueValidator(0)])
        stock = models.NumberAttribute(null=True)
        sent = models.DateAttribute(null=True)
        kind = models.UnicodeAttribute(null=True, choices=[("big", "Big"), ("small", "Small")])

        class receiver:
            name = models.UnicodeAttribute()
            street = models.UnicodeAttribute(null=True)
