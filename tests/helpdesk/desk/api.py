"""The REST API: users see the organizations of their memberships, and their contents."""

from django.http import Http404
from dynamo_single.contrib.rest_framework.serializers import ModelSerializer
from dynamo_single.transactions import atomic
from rest_framework import viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.response import Response

from desk import access
from desk.models import Comment, Member, Organization, Ticket


class OrganizationSerializer(ModelSerializer):
    """An organization with its numbers."""

    class Meta:
        model = Organization
        fields = ("organization_id", "name", "slug", "member_count", "ticket_count", "open_count")


class TicketSerializer(ModelSerializer):
    """A ticket; ``tags`` contains keys."""

    class Meta:
        model = Ticket
        fields = (
            *(
                "pk",
                "organization",
                "organization_name",
                "ticket_id",
                "title",
                "text",
                "status",
                "priority",
                "assignee",
                "tags",
            ),
            *("comment_count", "version", "created_at", "updated_at", "created_by"),
        )

    def validate_organization(self, organization):
        """Accept an organization of the user only; a ticket keeps its organization."""
        access_to(self.context["request"].user, organization.pk)
        if self.instance is not None and self.instance.organization_id != organization.pk:
            raise ValidationError("A ticket keeps its organization.")
        return organization

    def validate(self, values):
        """Accept tags of the ticket's organization, and an assignee that is a member of it."""
        organization = values.get("organization") or self.instance.organization
        if any(tag.organization_id != organization.pk for tag in values.get("tags", ())):
            raise ValidationError({"tags": "These tags belong to another organization."})
        assignee = values.get("assignee")
        if assignee is not None and not Member.objects.filter(organization=organization, user=assignee).exists():
            raise ValidationError({"assignee": "This user is not a member of the organization."})
        return values


class CommentSerializer(ModelSerializer):
    """A comment on a ticket."""

    class Meta:
        model = Comment
        fields = ("pk", "ticket", "comment_id", "text", "created_at", "created_by")

    def validate_ticket(self, ticket):
        """Accept a ticket of the user's organizations only; a comment keeps its ticket."""
        access_to(self.context["request"].user, ticket.organization_id)
        if self.instance is not None and self.instance.ticket_id != ticket.pk:
            raise ValidationError("A comment keeps its ticket.")
        return ticket


def access_to(user, pk):
    """Raise ``PermissionDenied`` unless the user is a member of an organization: one GetItem."""
    if not Member.objects.filter(organization=pk, user=user).exists():
        raise PermissionDenied


class OrganizationViewSet(viewsets.ModelViewSet):
    """The user's organizations; the creator of an organization owns it."""

    serializer_class = OrganizationSerializer
    search_fields = ("name",)
    filter_fields = ()

    def get_queryset(self):
        """Return the user's organizations: a Query for the memberships and a BatchGetItem."""
        return Organization.objects.filter(pk__in=access.keys(self.request.user))

    def perform_create(self, serializer):
        """Write the organization and its owner in one transaction."""
        with atomic():
            organization = serializer.save()
            Member.objects.create(organization=organization, user=self.request.user, role="owner")

    def perform_destroy(self, organization):
        """Move the organization and its tickets to the trash, if the user owns it."""
        member = Member.objects.get(organization=organization, user=self.request.user)
        if member.role != "owner":
            raise PermissionDenied
        organization.delete()


class TicketViewSet(viewsets.ModelViewSet):
    """The tickets of the user's organizations (``?organization=...&status=open``), or of one assignee."""

    serializer_class = TicketSerializer
    filter_fields = ("organization", "status", "priority", "assignee", "ticket_id")

    def get_queryset(self):
        """Return the tickets of the organizations that the user belongs to."""
        return Ticket.objects.filter(organization__in=access.keys(self.request.user))

    def get_object(self):
        """Return a ticket by its key: two GetItems."""
        return access.ticket_of(self.request.user, self.kwargs["pk"])

    @action(detail=True, methods=["post"])
    def restore(self, request, pk):
        """Take a ticket and its comments out of the trash."""
        ticket = Ticket.all_objects.filter(pk=pk).first()
        if ticket is None or ticket.organization_id not in access.keys(request.user):
            raise Http404
        ticket.restore()
        ticket.refresh_from_db()  # counts the restored comments
        return Response(self.get_serializer(ticket).data)


class CommentViewSet(viewsets.ModelViewSet):
    """The comments of a ticket: ``?ticket=...``, the oldest first."""

    serializer_class = CommentSerializer
    filter_fields = ()

    def get_queryset(self):
        """Return the comments of the ticket that the request names: one Query."""
        ticket = access.ticket_of(self.request.user, self.request.query_params.get("ticket", ""))
        return Comment.objects.filter(ticket=ticket)

    def get_object(self):
        """Return a comment that the user wrote, or one of the user's organizations for reading."""
        comment = Comment.objects.filter(pk=self.kwargs["pk"]).select_related("ticket").first()
        if comment is None:
            raise Http404
        access.ticket_of(self.request.user, comment.ticket_id)
        if self.request.method not in ("GET", "HEAD", "OPTIONS") and comment.created_by_id != self.request.user.pk:
            raise PermissionDenied
        return comment
