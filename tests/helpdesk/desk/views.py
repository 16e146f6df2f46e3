"""The pages: a user's organizations, the board of an organization, and a ticket with its comments."""

import asyncio

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import Http404, JsonResponse
from django.shortcuts import redirect, render

from desk import access
from desk.models import Comment, Member, Organization, Ticket


class TicketForm(forms.ModelForm):
    """A new ticket."""

    class Meta:
        model = Ticket
        fields = ("title", "text")


class CommentForm(forms.ModelForm):
    """A new comment."""

    class Meta:
        model = Comment
        fields = ("text",)


@login_required
def organizations(request):
    """List the user's organizations with their open tickets: one Query and one BatchGetItem."""
    found = Organization.objects.filter(pk__in=access.keys(request.user))
    return render(request, "desk/organizations.html", {"title": "Organizations", "organizations": found})


@login_required
def board(request, pk):
    """Show 50 tickets of each status, and store a new one."""
    organization = access.organization_of(request.user, pk)
    form = TicketForm(request.POST or None, instance=Ticket(organization=organization))
    if request.method == "POST" and form.is_valid():
        form.save()
        return redirect("board", pk=pk)
    lists = [
        (label, Ticket.objects.filter(organization=organization, status=status).order_by("-ticket_id")[:50])
        for status, label in Ticket._meta.get_field("status").choices
    ]
    context = {"title": organization.name, "organization": organization, "lists": lists, "form": form}
    return render(request, "desk/board.html", context)


@login_required
def ticket(request, pk):
    """Show a ticket with its tags and comments, and store a new comment."""
    found = access.ticket_of(request.user, pk)
    form = CommentForm(request.POST or None, instance=Comment(ticket=found))
    if request.method == "POST" and form.is_valid():
        form.save()
        return redirect("ticket", pk=pk)
    comments = found.comments.select_related("created_by")[:200]
    context = {"title": found.title, "ticket": found, "comments": comments, "tags": found.tags.all(), "form": form}
    return render(request, "desk/ticket.html", context)


async def figures(request, pk):
    """Return the numbers of tickets by status as JSON; the requests overlap."""
    user = await request.auser()
    if not user.is_authenticated or not await Member.objects.filter(organization=pk, user=user).aexists():
        raise Http404
    names = [status for status, _label in Ticket._meta.get_field("status").choices]
    counts = await asyncio.gather(*(Ticket.objects.filter(organization=pk, status=name).acount() for name in names))
    return JsonResponse(dict(zip(names, counts, strict=True)))
