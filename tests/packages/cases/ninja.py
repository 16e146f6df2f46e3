"""Schemas made of models, and an API that creates and lists."""

from tests.packages.case import addresses, start

PACKAGE = "django-ninja"
RESULT = "unchanged"

start()

from django.test import Client
from django.urls import path
from ninja import ModelSchema, NinjaAPI

from project.directory.models import Company

api = NinjaAPI()


class CompanyIn(ModelSchema):
    class Meta:
        model = Company
        fields = ["name", "public"]


class CompanyOut(ModelSchema):
    class Meta:
        model = Company
        fields = ["company_id", "name", "public"]


@api.post("/companies", response=CompanyOut)
def create(request, data: CompanyIn):
    return Company.objects.create(**data.dict())


@api.get("/companies", response=list[CompanyOut])
def companies(request):
    return Company.objects.all()


addresses(path("", api.urls))
client = Client()
made = client.post("/companies", {"name": "Acme", "public": True}, content_type="application/json")
assert made.status_code == 200, made.content
assert [each["name"] for each in client.get("/companies").json()] == ["Acme"]
