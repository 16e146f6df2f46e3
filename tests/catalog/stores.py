"""Articles in a store, with check constraints."""

from __future__ import annotations

from django.db.models import CheckConstraint, F, Q

from dynamo_single import models


class Article(models.Model):
    """The reserved number is within the stock; a price is positive if there is one."""

    article_id = models.IdAttribute()
    name = models.UnicodeAttribute(blank=True, default="")
    stock = models.IntegerAttribute(default=0)
    reserved = models.IntegerAttribute(default=0)
    price = models.IntegerAttribute(null=True)

    class Keys:
        primary = models.Key("ARTICLE#{article_id}", "#METADATA")
        by_name = models.IndexKey("gs1", "ARTICLES", "{article_id}")

    class Meta:
        app_label = "catalog"
        constraints = (
            CheckConstraint(condition=Q(reserved__lte=F("stock")), name="within_stock"),
            CheckConstraint(condition=Q(price__gt=0), name="positive", violation_error_message="Enter a price."),
        )
