"""Waiting work, in indexes that contain only waiting items."""

from __future__ import annotations

from django.db.models import Q

from dynamo_single import models


class Foreman(models.Model):
    """A foreman, who assigns work; a patrol holds the shift."""

    foreman_id = models.UnicodeAttribute()
    shift = models.UnicodeAttribute(default="day")

    class Keys:
        primary = models.Key("FOREMAN#{foreman_id}", "#METADATA")


class Dispatch(models.SoftDeleteModel):
    """A task, listed if it is open, and if it is open and urgent."""

    dispatch_id = models.UnicodeAttribute()
    status = models.UnicodeAttribute(default="open")
    rank = models.IntegerAttribute(default=0)
    owner = models.UnicodeAttribute(null=True)
    note = models.UnicodeAttribute(default="")

    class Keys:
        primary = models.Key("DISPATCH#{dispatch_id}", "#METADATA")
        waiting = models.IndexKey("gs1", "WAITING", "{rank}#{dispatch_id}", condition=Q(status="open"))
        urgent = models.IndexKey("gs2", "URGENT#{owner}", "{rank}", condition=Q(status="open", rank__gte=5))


class Alarm(models.Model):
    """An alarm, listed if it is hot or late."""

    alarm_id = models.UnicodeAttribute()
    status = models.UnicodeAttribute(default="new")
    data = models.MapAttribute(default=dict)

    class Keys:
        primary = models.Key("ALARM#{alarm_id}", "#METADATA")
        hot = models.IndexKey("gs1", "HOT", "{alarm_id}", condition=Q(data__hot=True) | Q(status="late"))


class Patrol(models.Model):
    """Something that a foreman sees to; of those at night there is a list."""

    patrol_id = models.UnicodeAttribute()
    foreman = models.ReferenceAttribute(Foreman, on_delete=models.DO_NOTHING)
    shift = models.CopiedAttribute("foreman", "shift")

    class Keys:
        primary = models.Key("PATROL#{patrol_id}", "#METADATA")
        at_night = models.IndexKey("gs1", "NIGHT", "{foreman_id}#{patrol_id}", condition=Q(shift="night"))
        by_foreman = models.IndexKey("gs2", "FOREMAN#{foreman_id}", "{patrol_id}")
