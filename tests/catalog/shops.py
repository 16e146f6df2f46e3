"""Shoppers and purchases: a child with a state, by which each shopper's purchases are listed."""

from __future__ import annotations

from dynamo_single import models


class Shopper(models.Model):
    """The parent."""

    shopper_id = models.IdAttribute()
    name = models.UnicodeAttribute()

    purchases = models.Children("Purchase")

    class Keys:
        primary = models.Key("SHOPPER#{shopper_id}", "#METADATA")
        listed = models.IndexKey("gs1", "SHOPPER", "{name}#{shopper_id}")

    def __str__(self) -> str:
        return self.name


class Purchase(models.Model):
    """A child listed by number, by time, and by time within a state."""

    shopper = models.ReferenceAttribute(Shopper, on_delete=models.CASCADE)
    number = models.IntegerAttribute()
    placed_at = models.TimestampAttribute()
    state = models.UnicodeAttribute(default="open", choices=[("open", "Open"), ("sent", "Sent")])
    price = models.DecimalAttribute(default=1)

    class Keys:
        primary = models.Key("SHOPPER#{shopper_id}", "PURCHASE#{number}")
        by_time = models.IndexKey("gs1", "PURCHASE", "{placed_at}#{shopper_id}#{number}")
        by_state = models.IndexKey("gs2", "PURCHASES#{shopper_id}#{state}", "{placed_at}#{number}")

    def __str__(self) -> str:
        return f"Purchase {self.number}"
