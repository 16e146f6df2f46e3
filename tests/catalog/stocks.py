"""Counted things: additions of DynamoDB, values that keys depend on, and versioned objects."""

from __future__ import annotations

from dynamo_single import models


class Stock(models.TimestampedModel):
    """Numbers, lists, sets and a map that change in place; a key contains ``rank``."""

    code = models.UnicodeAttribute()
    qty = models.IntegerAttribute(default=0)
    spare = models.IntegerAttribute(null=True)
    price = models.DecimalAttribute(null=True)
    weight = models.NumberAttribute(null=True)
    due = models.TimestampAttribute(null=True)
    note = models.UnicodeAttribute(null=True)
    tags = models.ListAttribute(null=True)
    labels = models.UnicodeSetAttribute()
    levels = models.NumberSetAttribute()
    data = models.MapAttribute(default=dict)
    rank = models.IntegerAttribute(default=0)
    serial = models.IntegerAttribute(null=True, unique=True)

    class Keys:
        primary = models.Key("STOCK#{code}", "#METADATA")
        by_rank = models.IndexKey("gs1", "STOCK", "{rank}#{code}")


class Ledger(models.SoftDeleteModel):
    """Objects with a version, and a trash."""

    code = models.UnicodeAttribute()
    total = models.IntegerAttribute(default=0)
    note = models.UnicodeAttribute(null=True)
    serial = models.IntegerAttribute(null=True, unique=True)
    version = models.VersionAttribute()

    class Keys:
        primary = models.Key("LEDGER#{code}", "#METADATA")
        listed = models.IndexKey("gs1", "LEDGER", "{code}")
