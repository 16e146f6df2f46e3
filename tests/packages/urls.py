"""A page that reads, with django-debug-toolbar around it."""

from typing import Any

from django.http import HttpResponse
from django.urls import include, path

from project.directory.models import Company


def companies(request: Any) -> HttpResponse:
    """All companies, twice."""
    names = [company.name for _ in range(2) for company in Company.objects.all()]
    return HttpResponse(f"<html><body>{', '.join(names)}</body></html>")


urlpatterns = [path("companies/", companies), path("__debug__/", include("debug_toolbar.urls"))]
