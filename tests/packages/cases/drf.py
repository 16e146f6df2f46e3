"""Model view sets and the browsable API; see also [Serve a REST API](../how-to/rest-api.md)."""

from tests.packages.case import addresses, start

PACKAGE = "djangorestframework"
RESULT = "unchanged"

start("rest_framework", "dynamo_single.contrib.rest_framework")

from django.test import Client
from django.urls import include, path
from rest_framework import routers, serializers, viewsets

from project.directory.models import Company


class Serializer(serializers.ModelSerializer):
    class Meta:
        model = Company
        fields = "__all__"


class Companies(viewsets.ModelViewSet):
    queryset = Company.objects.all()
    serializer_class = Serializer


router = routers.SimpleRouter()
router.register("companies", Companies)
addresses(path("", include(router.urls)))

client = Client()
made = client.post("/companies/", {"name": "Acme", "public": "true"})
assert made.status_code == 201, made.content
assert [each["name"] for each in client.get("/companies/?format=json").json()] == ["Acme"]
assert b"Acme" in client.get("/companies/", headers={"Accept": "text/html"}).content
address = f"/companies/{made.json()['company_id']}/"
assert client.patch(address, {"name": "New"}, content_type="application/json").json()["name"] == "New"
assert client.delete(address).status_code == 204
