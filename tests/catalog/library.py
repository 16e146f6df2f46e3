"""Aisles and volumes: everything that a write can have to keep in step at once."""

from __future__ import annotations

from typing import ClassVar

from dynamo_single import models


class Aisle(models.SoftDeleteModel):
    """An aisle, which counts its volumes, cascades to them, and is copied by name."""

    aisle_id = models.UnicodeAttribute()
    name = models.UnicodeAttribute(unique=True)

    volumes = models.Children("Volume")

    volume_count = models.CounterAttribute("volumes")

    class Keys:
        primary = models.Key("AISLE#{aisle_id}", "#METADATA")
        listed = models.IndexKey("gs1", "AISLE", "{name}#{aisle_id}")


class Volume(models.TimestampedModel, models.SoftDeleteModel):
    """A volume, which moves, is counted and copies, with values that are unique alone and together."""

    aisle = models.ReferenceAttribute(Aisle, on_delete=models.CASCADE)
    number = models.IntegerAttribute()
    title = models.UnicodeAttribute()
    isbn = models.UnicodeAttribute(null=True, unique=True)
    slot = models.IntegerAttribute(null=True)
    mark = models.UnicodeAttribute(default="m")
    loans = models.IntegerAttribute(default=0)
    aisle_name = models.CopiedAttribute("aisle", "name")
    folded = models.CanonicalAttribute(source="title")

    class Keys:
        primary = models.Key("AISLE#{aisle_id}", "VOLUME#{number}")
        by_title = models.IndexKey("gs1", "VOLUME", "{folded}#{mark}#{aisle_id}#{number}")
        by_aisle_name = models.IndexKey("gs2", "VOLUMES#{aisle_name}", "{slot}#{number}")

    class Meta:
        unique_together: ClassVar[tuple[tuple[str, ...], ...]] = (("aisle", "slot"),)


class Ledgered(models.SoftDeleteModel):
    """The same with a version and no parent."""

    number = models.IntegerAttribute()
    title = models.UnicodeAttribute()
    isbn = models.UnicodeAttribute(null=True, unique=True)
    loans = models.IntegerAttribute(default=0)
    version = models.VersionAttribute()

    class Keys:
        primary = models.Key("LEDGERED#{number}", "#METADATA")
        by_title = models.IndexKey("gs1", "LEDGERED", "{title}#{number}")


class Meeting(models.TimestampedModel, models.SoftDeleteModel):
    """One datetime in two keys next to optional parts, and a room for one meeting."""

    meeting_id = models.UnicodeAttribute()
    team = models.UnicodeAttribute()
    host = models.UnicodeAttribute(null=True)
    status = models.UnicodeAttribute(default="planned")
    starts_at = models.TimestampAttribute(null=True)
    topic = models.UnicodeAttribute(null=True)
    room = models.UnicodeAttribute(null=True, unique=True)
    seats = models.IntegerAttribute(default=0)

    class Keys:
        primary = models.Key("MEETING#{meeting_id}", "#METADATA")
        by_team = models.IndexKey("gs1", "TEAM#{team}", "{status}#{starts_at}#{meeting_id}")
        by_host = models.IndexKey("gs2", "HOST#{host}", "{starts_at}#{meeting_id}")
