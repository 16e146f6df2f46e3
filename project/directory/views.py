"""A paged list of companies, and a company with its people and offices."""

from __future__ import annotations

from typing import Any

from django.views.generic import DetailView, ListView

from dynamo_single.models import QuerySet
from dynamo_single.pagination import CursorListMixin
from project.directory.models import Company


class CompanyList(CursorListMixin, ListView):  # type: ignore[type-arg]  # not generic at run time
    """A page of companies by name: one Query."""

    queryset = Company.objects.order_by("name")
    paginate_by = 12
    template_name = "directory/companies.html"


class CompanyPage(DetailView):  # type: ignore[type-arg]  # not generic at run time
    """A company with its people and offices: one Query of its partition."""

    template_name = "directory/company.html"

    def get_queryset(self) -> QuerySet[Any]:
        """Return the company with the items of its partition."""
        return Company.objects.prefetch_related("people", "offices")
