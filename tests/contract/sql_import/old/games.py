"""Many-to-many relations."""

from __future__ import annotations

from django.db import models
from django.db.models import CASCADE

from tests.contract.sql_import.old.base import Catalog, Row


class GameTag(Row):
    """A word."""

    word = models.CharField(max_length=20, primary_key=True)

    class Meta(Catalog):
        pass


class GamePlayer(Row):
    """A player."""

    username = models.CharField(max_length=20)

    class Meta(Catalog):
        pass


class GameServer(Row):
    """Three many-to-many relations: with a model, without one, and to itself."""

    name = models.CharField(max_length=20)
    players = models.ManyToManyField(GamePlayer, through="GameMember")
    tags = models.ManyToManyField(GameTag)
    links = models.ManyToManyField("self", symmetrical=False)

    class Meta(Catalog):
        pass


class GameMember(Row):
    """An edge with data."""

    server = models.ForeignKey(GameServer, CASCADE)
    player = models.ForeignKey(GamePlayer, CASCADE)
    role = models.CharField(max_length=20)

    class Meta(Catalog):
        pass


class GameFan(Row):
    """A fan."""

    fan_id = models.CharField(max_length=20, primary_key=True)

    class Meta(Catalog):
        pass


class GameGuild(Row):
    """A guild, whose edges are checked in DynamoDB."""

    guild_id = models.CharField(max_length=20, primary_key=True)
    fans = models.ManyToManyField(GameFan)

    class Meta(Catalog):
        pass
