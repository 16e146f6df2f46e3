"""Records: a map of any shape, with values for keys."""

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
    """A record whose map has a schema."""

    class Data:
        title = models.UnicodeAttribute(max_length=20)
        price = models.DecimalAttribute(null=True, max_digits=8, decimal_places=2, validators=[MinValueValidator(0)])
        stock = models.NumberAttribute(null=True)
        sent = models.DateAttribute(null=True)
        kind = models.UnicodeAttribute(null=True, choices=[("big", "Big"), ("small", "Small")])

        class receiver:
            name = models.UnicodeAttribute()
            street = models.UnicodeAttribute(null=True)


class Line:
    """The schema of an element in a list of maps."""

    name = models.UnicodeAttribute(max_length=20)
    price = models.DecimalAttribute(null=True, max_digits=8, decimal_places=2, validators=[MinValueValidator(0)])
    marks = models.ListAttribute(of=models.UnicodeAttribute(), null=True)


class Receipt(models.Model):
    """Lists with schemas: of maps, of numbers, and within a map."""

    class Data:
        note = models.UnicodeAttribute(null=True)
        steps = models.ListAttribute(schema=Line, null=True)

    receipt_id = models.UnicodeAttribute()
    lines = models.ListAttribute(default=list, blank=True, schema=Line)
    points = models.ListAttribute(null=True, of=models.NumberAttribute(validators=[MinValueValidator(0)]))
    other = models.ListAttribute(null=True)
    data = models.MapAttribute(default=dict, blank=True, schema=Data)

    class Keys:
        primary = models.Key("RECEIPT#{receipt_id}", "#METADATA")


class Till(models.Model):
    """A till, which contains slips."""

    till_id = models.UnicodeAttribute()

    class Keys:
        primary = models.Key("TILL#{till_id}", "#METADATA")


class Slip(models.Model):
    """A child with maps and lists that have schemas."""

    till = models.ReferenceAttribute(Till, on_delete=models.DO_NOTHING)
    slip_id = models.UnicodeAttribute()
    lines = models.ListAttribute(default=list, blank=True, schema=Line)
    data = models.MapAttribute(default=dict, blank=True, schema=Receipt.Data)

    class Keys:
        primary = models.Key("TILL#{till_id}", "SLIP#{slip_id}")
