"""The organizations that a user may see, by the user's memberships."""

from django.http import Http404

from desk.models import Member, Organization, Ticket


def memberships(user):
    """Return the user's memberships, at most 100; one Query."""
    return Member.objects.filter(user=user)[:100]


def keys(user):
    """Return the keys of the user's organizations."""
    return [member.organization_id for member in memberships(user)]


def organization_of(user, pk):
    """Return a live organization of the user, or raise ``Http404``: a GetItem for the membership and one for it."""
    if not Member.objects.filter(organization=pk, user=user).exists():
        raise Http404
    organization = Organization.objects.filter(pk=pk).first()
    if organization is None:
        raise Http404
    return organization


def ticket_of(user, pk):
    """Return a live ticket of one of the user's organizations, or raise ``Http404``."""
    ticket = Ticket.objects.filter(pk=pk).select_related("organization").first()
    if ticket is None or not Member.objects.filter(organization=ticket.organization_id, user=user).exists():
        raise Http404
    return ticket
