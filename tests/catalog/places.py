"""One-to-one relations as Django's documentation has them: by a claim, and by the primary key."""

from __future__ import annotations

from dynamo_single import models


class Place(models.Model):
    """A place, which others refer to."""

    place_id = models.UnicodeAttribute()
    name = models.UnicodeAttribute()

    class Keys:
        primary = models.Key("PLACE#{place_id}", "#METADATA")
        listed = models.IndexKey("gs1", "PLACE", "{place_id}")

    def __str__(self) -> str:
        return self.name


class Restaurant(models.SoftDeleteModel):
    """One at a place, which a claim holds."""

    restaurant_id = models.UnicodeAttribute()
    place = models.OneToOneAttribute(Place, on_delete=models.DO_NOTHING)
    name = models.UnicodeAttribute()

    class Keys:
        primary = models.Key("RESTAURANT#{restaurant_id}", "#METADATA")
        listed = models.IndexKey("gs1", "RESTAURANT", "{restaurant_id}")

    def __str__(self) -> str:
        return self.name


class Bar(models.Model):
    """Another object at a place, under a separate name."""

    bar_id = models.IdAttribute()
    place = models.OneToOneAttribute(Place, on_delete=models.DO_NOTHING, null=True)

    class Keys:
        primary = models.Key("BAR#{bar_id}", "#METADATA")


class Kitchen(models.Model):
    """One of a restaurant, whose key it has."""

    restaurant = models.OneToOneAttribute(Restaurant, on_delete=models.DO_NOTHING)
    restaurant_id: str
    stoves = models.IntegerAttribute()

    class Keys:
        primary = models.Key("RESTAURANT#{restaurant_id}", "#KITCHEN")
