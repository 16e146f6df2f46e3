"""One page, which opens a transaction."""

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import path


@transaction.atomic
def page(request: HttpRequest) -> HttpResponse:
    """Respond inside a transaction."""
    return HttpResponse("answered")


urlpatterns = [path("", page)]
