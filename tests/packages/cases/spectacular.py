"""The schema of an API of models."""

from tests.packages.case import addresses, start

PACKAGE = "drf-spectacular"
RESULT = "unchanged"

start(
    "rest_framework", "drf_spectacular", REST_FRAMEWORK={"DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema"}
)

from django.test import Client
from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView
from rest_framework import routers, serializers, viewsets

from dynamo_single.contrib.rest_framework.filters import KeyFilterBackend, KeyOrderingFilter
from dynamo_single.contrib.rest_framework.pagination import CursorPagination
from project.directory.models import Office


class Serializer(serializers.ModelSerializer):
    class Meta:
        model = Office
        fields = "__all__"


class Offices(viewsets.ModelViewSet):
    queryset = Office.objects.all()
    serializer_class = Serializer
    filter_backends = (KeyFilterBackend, KeyOrderingFilter)
    pagination_class = CursorPagination


router = routers.SimpleRouter()
router.register("offices", Offices)
addresses(path("", include(router.urls)), path("schema/", SpectacularAPIView.as_view()))
schema = Client().get("/schema/", headers={"Accept": "application/json"})
assert schema.status_code == 200, schema.content
names = {each["name"] for each in schema.json()["paths"]["/offices/"]["get"]["parameters"]}
assert {"city", "company_id", "cursor", "ordering"} <= names, names
