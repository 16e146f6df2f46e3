"""A view that asks whether a request is of htmx."""

from tests.packages.case import addresses, start

PACKAGE = "django-htmx"
RESULT = "unchanged"

start("django_htmx", middleware=("django_htmx.middleware.HtmxMiddleware",))

from django.http import HttpResponse
from django.test import Client
from django.urls import path

from project.directory.models import Company

Company.objects.create(name="Acme")
addresses(path("", lambda request: HttpResponse(f"{bool(request.htmx)} {Company.objects.count()}")))
assert Client().get("/", headers={"HX-Request": "true"}).content == b"True 1"
