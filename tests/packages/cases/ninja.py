"""Schemas made of models, sets included; an API that creates and lists; 400, 404, 409 and 503 for the app's errors."""

from tests.packages.case import addresses, start

PACKAGE = "django-ninja"
RESULT = "with lines"
LINES = "`dynamo_single.contrib.ninja.connect(api)` before the schemas, for sets and for responses of errors"

start()

from django.test import Client
from django.urls import path
from ninja import ModelSchema, NinjaAPI

from dynamo_single import models
from dynamo_single.contrib.ninja import connect
from dynamo_single.testing import fault
from project.directory.models import Company


class Shelf(models.Model):
    shelf_id = models.UnicodeAttribute()
    tags = models.UnicodeSetAttribute()
    sizes = models.NumberSetAttribute()
    about = models.MapAttribute()
    company = models.ReferenceAttribute(Company, on_delete=models.DO_NOTHING)

    class Keys:
        primary = models.Key("SHELF#{shelf_id}", "#METADATA")

    class Meta:
        app_label = "directory"


api = NinjaAPI()
connect(api)


class CompanyIn(ModelSchema):
    class Meta:
        model = Company
        fields = ["name", "public"]


class CompanyOut(ModelSchema):
    class Meta:
        model = Company
        fields = ["company_id", "name", "public"]


class ShelfSchema(ModelSchema):
    class Meta:
        model = Shelf
        fields = ["shelf_id", "tags", "sizes", "about", "company"]


@api.post("/shelves", response=ShelfSchema)
def create_shelf(request, data: ShelfSchema):
    Shelf(**data.dict(by_alias=True)).save()
    return Shelf.objects.get(pk=data.shelf_id)


@api.post("/companies", response=CompanyOut)
def create(request, data: CompanyIn, key: str = ""):
    return Company.objects.create(**data.dict(), **({"company_id": key} if key else {}))


@api.get("/companies", response=list[CompanyOut])
def companies(request):
    return Company.objects.all()


@api.get("/shelves", response=list[ShelfSchema])
def shelves(request):
    return Shelf.objects.filter(tags__contains="a")


@api.get("/companies/{key}", response=CompanyOut)
def company(request, key: str):
    return Company.objects.get(pk=key)


addresses(path("", api.urls))
client = Client()


def post(address):
    return client.post(address, {"name": "Acme", "public": True}, content_type="application/json")


made = post("/companies")
assert made.status_code == 200, made.content
assert [each["name"] for each in client.get("/companies").json()] == ["Acme"]
refused = client.get("/shelves")
assert refused.status_code == 400, refused.content
assert "no key supports" in refused.json()["message"]
assert client.get("/companies/none").status_code == 404
assert post("/companies?key=a").status_code == 200
assert post("/companies?key=a").status_code == 409
for address in ("/companies/a", "/companies"):
    with fault("denied"):
        away = client.get(address)
    assert (away.status_code, away["Retry-After"].isdecimal()) == (503, True)

shelf = {"shelf_id": "s", "tags": ["a", "b"], "sizes": [1, 2], "about": {"wide": True}, "company_id": "a"}
stored = client.post("/shelves", shelf, content_type="application/json")
assert stored.status_code == 200, stored.content
assert stored.json() | {"company_id": "a"} == shelf | {"company": "a"}, stored.json()
wrong = client.post("/shelves", {**shelf, "tags": [1]}, content_type="application/json")
assert wrong.status_code == 400, wrong.content
