"""Clubs with teams, players and other dependents: children with and without a cascade."""

from __future__ import annotations

from datetime import timedelta

from dynamo_single import models


class Club(models.TimestampedModel, models.SoftDeleteModel):
    """The root."""

    club_id = models.IdAttribute(prefix="club")
    name = models.UnicodeAttribute(unique=True)

    teams = models.Children("Team")
    trophies = models.Children("Trophy", cascade=True)
    guests = models.Children("Guest", cascade=False)

    class Keys:
        primary = models.Key("CLUB#{club_id}", "#METADATA")
        by_name = models.IndexKey("gs1", "CLUB", "{name}#{club_id}")


class Team(models.SoftDeleteModel):
    """A child in the parent's partition, with children of its own elsewhere."""

    club = models.ReferenceAttribute(Club, on_delete=models.CASCADE)
    team_id = models.UnicodeAttribute()

    players = models.Children("Player")

    class Keys:
        primary = models.Key("CLUB#{club_id}", "TEAM#{team_id}")
        listed = models.IndexKey("gs1", "TEAM", "{team_id}#{club_id}")


class Player(models.SoftDeleteModel):
    """A grandchild that an index lists, with a unique value."""

    player_id = models.UnicodeAttribute()
    team = models.ReferenceAttribute(Team, on_delete=models.CASCADE)
    number = models.UnicodeAttribute(null=True, unique=True)

    class Keys:
        primary = models.Key("PLAYER#{player_id}", "#METADATA")
        by_team = models.IndexKey("gs1", "TEAM#{team_id}", "{player_id}")


class Trophy(models.Model):
    """A child without soft delete, which is permanently deleted with its parent."""

    club = models.ReferenceAttribute(Club, on_delete=models.CASCADE)
    year = models.IntegerAttribute()

    class Keys:
        primary = models.Key("CLUB#{club_id}", "TROPHY#{year}")


class Guest(models.SoftDeleteModel):
    """A child that stays."""

    club = models.ReferenceAttribute(Club, on_delete=models.DO_NOTHING)
    guest_id = models.UnicodeAttribute()

    class Keys:
        primary = models.Key("CLUB#{club_id}", "GUEST#{guest_id}")
        listed = models.IndexKey("gs1", "GUEST", "{guest_id}")


class Draft(models.SoftDeleteModel):
    """A draft, which the trash keeps for thirty days."""

    draft_id = models.UnicodeAttribute()
    title = models.UnicodeAttribute(unique=True)

    sheets = models.Children("Sheet", cascade=True)

    class Keys:
        primary = models.Key("DRAFT#{draft_id}", "#METADATA")
        listed = models.IndexKey("gs1", "DRAFT", "{title}#{draft_id}")

    class Meta:
        purge_after = timedelta(days=30)


class Sheet(models.SoftDeleteModel):
    """A sheet, which the trash keeps for a day, or as long as its draft."""

    draft = models.ReferenceAttribute(Draft, on_delete=models.DO_NOTHING)
    number = models.IntegerAttribute()

    class Keys:
        primary = models.Key("DRAFT#{draft_id}", "SHEET#{number}")
        listed = models.IndexKey("gs1", "SHEET", "{number}#{draft_id}")

    class Meta:
        purge_after = timedelta(days=1)


class Hive(models.SoftDeleteModel):
    """A hive, which counts its cascading children."""

    hive_id = models.IdAttribute()
    bee_count = models.CounterAttribute("bees")

    bees = models.Children("Bee")

    class Keys:
        primary = models.Key("HIVE#{hive_id}", "#METADATA")
        listed = models.IndexKey("gs1", "HIVE", "{hive_id}")


class Bee(models.SoftDeleteModel):
    """A counted bee."""

    hive = models.ReferenceAttribute(Hive, on_delete=models.CASCADE)
    bee_id = models.UnicodeAttribute()

    class Keys:
        primary = models.Key("HIVE#{hive_id}", "BEE#{bee_id}")
        listed = models.IndexKey("gs1", "BEE", "{hive_id}#{bee_id}")
