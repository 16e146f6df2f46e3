"""Work outside of requests."""

from datetime import timedelta

from dynamo_single import clock

from desk.models import Ticket

#: How long a ticket waits for its customer.
PATIENCE = timedelta(days=14)


def close_waiting(organization, at_most=500):
    """Close tickets that have waited for their customer too long, at most ``at_most``; return their number."""
    before = clock.now() - PATIENCE
    waiting = Ticket.objects.filter(organization=organization, status="waiting", updated_at__lt=before)
    return waiting.filter(pk__in=[ticket.pk for ticket in waiting[:at_most]]).update(status="closed")
