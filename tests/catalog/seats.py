"""Values that are unique together, within another object, or under a condition; and derived objects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from django.db.models import Q, UniqueConstraint

from dynamo_single import models


class Seat(models.SoftDeleteModel):
    """Places that exist once in each hall, and guests who have one place at a time."""

    seat_id = models.IdAttribute()
    hall = models.UnicodeAttribute(attr_name="hallName")
    row = models.IntegerAttribute(null=True)
    guest = models.UnicodeAttribute(null=True, canonical=True)
    code = models.UnicodeAttribute(default="", blank=True)
    status = models.UnicodeAttribute(default="free")

    class Keys:
        primary = models.Key("SEAT#{seat_id}", "#METADATA")
        by_hall = models.IndexKey("gs1", "HALL#{hall}", "{seat_id}")

    class Meta:
        unique_together = (("hall", "row"),)
        constraints = (
            UniqueConstraint(fields=["guest"], condition=Q(status="taken"), name="one_seat_each"),
            UniqueConstraint(fields=["hall", "code"], name="codes", violation_error_message="The code is in use."),
            UniqueConstraint(fields=["hall", "row"], name="rows_again"),
        )


class Voucher(models.Model):
    """A voucher, which expires, and is unique together with its owner."""

    voucher_id = models.IdAttribute()
    shop = models.UnicodeAttribute()
    number = models.IntegerAttribute()
    expires_at = models.TTLAttribute()

    class Keys:
        primary = models.Key("VOUCHER#{voucher_id}", "#METADATA")

    class Meta:
        unique_together = (("shop", "number"),)


class Essay(models.SoftDeleteModel):
    """A text that can be found by each of its words."""

    essay_id = models.IdAttribute()
    title = models.UnicodeAttribute()

    derived_from: ClassVar[tuple[str, ...]] = ("title",)

    class Keys:
        primary = models.Key("ESSAY#{essay_id}", "#METADATA")

    def derived_objects(self) -> Iterable[models.Model]:
        """Its title's words."""
        for place, word in enumerate(self.title.split()):
            yield EssayWord(essay_id=self.essay_id, word=word, place=place)


class EssayWord(models.Model):
    """One word of a title."""

    essay = models.ReferenceAttribute(Essay, on_delete=models.DO_NOTHING)
    word = models.UnicodeAttribute()
    place = models.IntegerAttribute()

    derived_by: ClassVar[str] = "essay"

    class Keys:
        primary = models.Key("ESSAY#{essay_id}", "WORD#{word}")
        by_word = models.IndexKey("gs1", "WORD#{word}", "{essay_id}")
