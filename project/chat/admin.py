"""The chat in the admin."""

from __future__ import annotations

from django.contrib import admin

from dynamo_single.admin import DynamoModelAdmin, DynamoTabularInline
from project.chat.models import Member, Message, Profile, Server


class MembershipInline(DynamoTabularInline):
    """The few servers of a profile."""

    model = Member
    fields = ("server", "role")
    extra = 0
    autocomplete_fields = ("server",)


@admin.register(Server)
class ServerAdmin(DynamoModelAdmin):
    """Servers, by name. Their members have a separate list because a server may have thousands."""

    list_display = ("name", "topic", "member_count")
    search_fields = ("name",)


@admin.register(Profile)
class ProfileAdmin(DynamoModelAdmin):
    """Profiles, by name, with their servers."""

    list_display = ("username",)
    search_fields = ("username",)
    inlines = (MembershipInline,)


@admin.register(Member)
class MemberAdmin(DynamoModelAdmin):
    """Members of all servers, by name."""

    list_display = ("username", "server", "role")
    list_filter = ("server", "role")
    autocomplete_fields = ("server", "user")


@admin.register(Message)
class MessageAdmin(DynamoModelAdmin):
    """Messages of all servers, the newest first."""

    list_display = ("author", "text", "server", "sent_at")
    ordering = ("-sent_at",)
    list_filter = ("server",)
    autocomplete_fields = ("server",)
