"""A paged list of users over shards in three orders, and a user with its e-mail addresses."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.http import Http404
from django.utils.dateparse import parse_datetime
from django.views.generic import DetailView, ListView

from dynamo_single import clock
from dynamo_single.models import QuerySet
from dynamo_single.pagination import CursorListMixin
from project.service.models import Beneficiary, User


class UserList(CursorListMixin, ListView):  # type: ignore[type-arg]  # not generic at run time
    """A page of users, the newest first: a Query of each shard, and one for the names of the beneficiaries."""

    paginate_by = 20
    template_name = "service/users.html"

    def get_queryset(self) -> QuerySet[Any]:
        """Return all users, or the users that match the URL's parameters. Each query uses one key."""
        asked = self.request.GET
        if asked.get("name"):
            found = User.objects.filter(last_name__istartswith=asked["name"])
            return found.order_by("last_name_canonical")
        if asked.get("beneficiary"):
            return User.objects.filter(beneficiary_id=asked["beneficiary"]).order_by("-created")
        if asked.get("since"):
            return User.objects.filter(created__gte=_moment(asked["since"])).order_by("-created")
        return User.objects.order_by("-created")

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        """Add the beneficiaries and yesterday's time, which the links to the next pages must keep."""
        beneficiaries = {each.pk: each for each in Beneficiary.objects.all()}
        context = super().get_context_data(**context)
        for user in context["object_list"]:
            if user.beneficiary_id in beneficiaries:
                user.beneficiary = beneficiaries[user.beneficiary_id]
        yesterday = (clock.now() - timedelta(days=1)).replace(microsecond=0)
        return {**context, "beneficiaries": beneficiaries.values(), "yesterday": yesterday.isoformat()}


class UserPage(DetailView):  # type: ignore[type-arg]  # not generic at run time
    """A user by id: one request to its possible shards, and one Query for its addresses."""

    queryset = User.objects.select_related("beneficiary")
    template_name = "service/user.html"


def _moment(text: str) -> datetime:
    try:
        moment = parse_datetime(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise Http404("No moment with a time zone.")
    return moment
