"""Many users on many servers, and their messages: copies, counters and authors."""

from __future__ import annotations

from django.utils import timezone

from dynamo_single import models


class ChatUser(models.Model):
    """A user on a few servers."""

    user_id = models.IdAttribute(attr_name="userId")
    username = models.UnicodeAttribute()
    mood = models.UnicodeAttribute(null=True)

    memberships = models.Children("ChatMembership")

    class Keys:
        primary = models.Key("USER#{user_id}", "#METADATA#CHAT")


class ChatServer(models.Model):
    """A server with thousands of users."""

    server_id = models.IdAttribute(attr_name="serverId")
    name = models.UnicodeAttribute()

    members = models.Children("ChatMembership")
    channels = models.Children("ChatChannel")

    member_count = models.CounterAttribute("members", attr_name="memberCount")
    channel_count = models.CounterAttribute("channels", attr_name="channelCount")

    class Keys:
        primary = models.Key("SERVER#{server_id}", "#METADATA")


class ChatMembership(models.SoftDeleteModel):
    """A user on a server, with the user's name and not the server's."""

    server = models.ReferenceAttribute(ChatServer, on_delete=models.DO_NOTHING, attr_name="serverId")
    user = models.ReferenceAttribute(ChatUser, on_delete=models.DO_NOTHING, attr_name="userId")
    role = models.UnicodeAttribute(default="Member")
    username = models.CopiedAttribute("user", "username")

    class Keys:
        primary = models.Key("SERVER#{server_id}", "USER#{user_id}")
        by_user = models.IndexKey("gs1", "MEMBERSHIPS#{user_id}", "{server_id}")
        by_name = models.IndexKey("gs2", "MEMBERS#{server_id}", "{username}#{user_id}")


class ChatChannel(models.Model):
    """A channel, which can move to another server."""

    channel_id = models.IdAttribute()
    server = models.ReferenceAttribute(ChatServer, on_delete=models.DO_NOTHING, null=True)
    topic = models.UnicodeAttribute(default="")

    class Keys:
        primary = models.Key("CHANNEL#{channel_id}", "#METADATA")
        by_server = models.IndexKey("gs1", "CHANNELS#{server_id}", "{channel_id}")


class ChatMessage(models.AuthoredModel):
    """A message, sorted by time."""

    chat_id = models.UnicodeAttribute(attr_name="chatId")
    message_id = models.IdAttribute(kind="ulid", attr_name="msgId")
    sent_at = models.TimestampAttribute(default=timezone.now, attr_name="timestamp")
    text = models.UnicodeAttribute()

    class Keys:
        primary = models.Key("CHAT#{chat_id}", "MSG#{sent_at}#{message_id}")
        by_id = models.IndexKey("gs1", "MSG#{message_id}", "{chat_id}")


class ChatProfile(models.Model):
    """A profile next to a user, with two copies that the table itself finds."""

    user = models.ReferenceAttribute(ChatUser, on_delete=models.DO_NOTHING)
    kind = models.UnicodeAttribute()
    username = models.CopiedAttribute("user", "username")
    mood = models.CopiedAttribute("user", "mood")

    class Keys:
        primary = models.Key("PROFILES#{user_id}", "{kind}")


class ChatInvitation(models.Model):
    """An invitation for one user or for any user."""

    invitation_id = models.IdAttribute()
    user = models.ReferenceAttribute(ChatUser, on_delete=models.DO_NOTHING, null=True)
    username = models.CopiedAttribute("user", "username")

    class Keys:
        primary = models.Key("INVITATION#{invitation_id}", "#METADATA")
        by_user = models.IndexKey("gs1", "INVITATIONS#{user_id}", "{invitation_id}")
        by_name = models.IndexKey("gs2", "INVITATIONS", "{username}#{invitation_id}")
