"""The pages of the help desk in the admin."""

from django.contrib import admin
from dynamo_single.admin import DynamoModelAdmin, DynamoTabularInline

from desk.models import Comment, Member, Organization, Tag, Ticket


class MemberInline(DynamoTabularInline):
    """The members of an organization."""

    model = Member
    autocomplete_fields = ("user",)
    extra = 1


class TagInline(DynamoTabularInline):
    """The tags of an organization."""

    model = Tag
    extra = 1


class CommentInline(DynamoTabularInline):
    """The comments of a ticket."""

    model = Comment
    fields = ("text",)
    extra = 1


@admin.register(Organization)
class OrganizationAdmin(DynamoModelAdmin):
    """Organizations by name, with their members and tags."""

    list_display = ("name", "slug", "member_count", "open_count", "ticket_count")
    search_fields = ("name",)
    inlines = (MemberInline, TagInline)


@admin.register(Ticket)
class TicketAdmin(DynamoModelAdmin):
    """The tickets, with their tags and comments."""

    list_display = ("title", "organization", "status", "assignee", "comment_count")
    list_filter = ("status",)
    list_select_related = ("organization", "assignee")
    autocomplete_fields = ("organization", "assignee")
    search_fields = ("title",)
    inlines = (CommentInline,)
    check_version = True


@admin.register(Comment)
class CommentAdmin(DynamoModelAdmin):
    """All comments in the order of their creation."""

    list_display = ("text", "ticket", "created_by")


@admin.register(Tag)
class TagAdmin(DynamoModelAdmin):
    """The tags of all organizations."""

    search_fields = ("word",)
