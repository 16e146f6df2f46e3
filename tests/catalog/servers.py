"""Many-to-many relations: players on servers with declared edges, tags with generated edges, and checked ones."""

from __future__ import annotations

from dynamo_single import models


class GamePlayer(models.Model):
    """A player on a few servers."""

    player_id = models.IdAttribute()
    username = models.UnicodeAttribute()

    class Keys:
        primary = models.Key("PLAYER#{player_id}", "#METADATA#GAME")
        listed = models.IndexKey("gs1", "GAMEPLAYER", "{username}#{player_id}")

    def __str__(self) -> str:
        return self.username


class GameTag(models.Model):
    """A word for servers."""

    word = models.UnicodeAttribute()

    class Keys:
        primary = models.Key("GAMETAG#{word}", "#METADATA")
        listed = models.IndexKey("gs1", "GAMETAG", "{word}")

    def __str__(self) -> str:
        return self.word


class GameServer(models.Model):
    """A server with thousands of players."""

    server_id = models.IdAttribute()
    name = models.UnicodeAttribute()
    players = models.ManyToMany("catalog.GamePlayer", through="GameMember", related_name="servers")
    tags = models.ManyToMany(GameTag, related_name="servers", blank=True)
    links = models.ManyToMany("self", related_name="linked_from", blank=True)

    class Keys:
        primary = models.Key("SERVER#{server_id}", "#METADATA#GAME")
        listed = models.IndexKey("gs1", "GAMESERVER", "{name}#{server_id}")

    def __str__(self) -> str:
        return self.name


class GameMember(models.Model):
    """A player on a server, with the player's name and not the server's."""

    server = models.ReferenceAttribute(GameServer, on_delete=models.CASCADE)
    player = models.ReferenceAttribute(GamePlayer, on_delete=models.CASCADE, related_name="memberships")
    role = models.UnicodeAttribute(default="member")
    username = models.CopiedAttribute("player", "username")

    class Keys:
        primary = models.Key("SERVER#{server_id}", "PLAYER#{player_id}")
        by_player = models.IndexKey("gs1", "MEMBERSOF#{player_id}", "{server_id}")


class GameFan(models.Model):
    """A fan in a few guilds."""

    fan_id = models.UnicodeAttribute()

    class Keys:
        primary = models.Key("GAMEFAN#{fan_id}", "#METADATA")
        listed = models.IndexKey("gs1", "GAMEFAN", "{fan_id}")


class GameGuild(models.SoftDeleteModel):
    """A guild, which cannot get members while it is deleted; it has a trash."""

    guild_id = models.UnicodeAttribute()
    fans = models.ManyToMany(GameFan, related_name="guilds", checked=True, blank=True)

    class Keys:
        primary = models.Key("GAMEGUILD#{guild_id}", "#METADATA")
        listed = models.IndexKey("gs1", "GAMEGUILD", "{guild_id}")
