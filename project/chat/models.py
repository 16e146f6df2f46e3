"""Profiles and servers with a many-to-many relation, and the messages of a server."""

from __future__ import annotations

from dynamo_single import clock, models


class Profile(models.Model):
    """A user on a few servers. Each membership has a copy of the name."""

    profile_id = models.IdAttribute(prefix="profile")
    username = models.UnicodeAttribute(max_length=80)

    class Keys:
        primary = models.Key("PROFILE#{profile_id}", "#METADATA")
        by_username = models.IndexKey("gs1", "PROFILE", "{username}#{profile_id}")

    def __str__(self) -> str:
        return self.username


class Server(models.Model):
    """A server, which may have thousands of members. They are stored in its partition."""

    server_id = models.IdAttribute(prefix="server")
    name = models.UnicodeAttribute(max_length=80)
    topic = models.UnicodeAttribute(max_length=200, blank=True, default="")
    users = models.ManyToMany(Profile, through="Member", related_name="servers")
    members = models.Children("Member")
    member_count = models.CounterAttribute("members")

    class Keys:
        primary = models.Key("CHATSERVER#{server_id}", "#METADATA")
        by_name = models.IndexKey("gs1", "CHATSERVER", "{name}#{server_id}")

    def __str__(self) -> str:
        return self.name


class Member(models.Model):
    """A member of a server, with a copy of the member's name but no copy of the server's name."""

    server = models.ReferenceAttribute(Server, on_delete=models.CASCADE)
    user = models.ReferenceAttribute(Profile, on_delete=models.CASCADE, related_name="memberships")
    username = models.CopiedAttribute("user", "username")
    role = models.UnicodeAttribute(
        default="member", choices=[("member", "Member"), ("moderator", "Moderator"), ("owner", "Owner")]
    )

    class Keys:
        primary = models.Key("CHATSERVER#{server_id}", "USER#{user_id}")
        by_user = models.IndexKey("gs1", "CHATSERVERSOF#{user_id}", "CHATSERVER#{server_id}")
        by_username = models.IndexKey("gs2", "CHATMEMBERS#{server_id}", "{username}#{user_id}")
        listed = models.IndexKey("gs3", "CHATMEMBER", "{username}#{server_id}")  # for the admin

    class Meta:
        item_type = "chat.Member"

    def __str__(self) -> str:
        return str(self.username)


class Message(models.Model):
    """A message by a user with an account. Messages of the same time are distinct and ordered."""

    server = models.ReferenceAttribute(Server, on_delete=models.CASCADE, immutable=True, related_name="messages")
    sent_at = models.TimestampAttribute(default=clock.now, immutable=True, editable=False)
    message_id = models.IdAttribute(kind="ulid")
    #: The user name at the time of writing.
    author = models.UnicodeAttribute(max_length=150)
    text = models.UnicodeAttribute(max_length=1000, multiline=True)

    class Keys:
        primary = models.Key("MESSAGES#{server_id}", "MSG#{sent_at}#{message_id}")
        by_id = models.IndexKey("gs1", "MESSAGE#{message_id}", "#METADATA")
        listed = models.IndexKey("gs2", "MESSAGE", "{sent_at}#{message_id}")  # for the admin

    def __str__(self) -> str:
        return f"{self.author}: {self.text[:60]}"
