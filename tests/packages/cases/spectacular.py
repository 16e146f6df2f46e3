"""The schema of an API of models: filters with their types, cursors, and the responses of errors."""

from tests.packages.case import addresses, start

PACKAGE = "drf-spectacular"
RESULT = "with lines"
LINES = (
    "`dynamo_single.contrib.rest_framework.schema.add_errors` in `POSTPROCESSING_HOOKS`, for the responses of errors"
)

HOOKS = ["drf_spectacular.hooks.postprocess_schema_enums", "dynamo_single.contrib.rest_framework.schema.add_errors"]

start(
    "rest_framework",
    "drf_spectacular",
    REST_FRAMEWORK={"DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema"},
    SPECTACULAR_SETTINGS={"POSTPROCESSING_HOOKS": HOOKS},
)

from django.test import Client
from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView
from rest_framework import routers, serializers, viewsets

from dynamo_single.contrib.rest_framework.filters import KeyFilterBackend, KeyOrderingFilter, KeySearchFilter
from dynamo_single.contrib.rest_framework.pagination import CursorPagination
from project.directory.models import Company, Office


class Serializer(serializers.ModelSerializer):
    class Meta:
        model = Office
        fields = "__all__"


class Offices(viewsets.ModelViewSet):
    queryset = Office.objects.all()
    serializer_class = Serializer
    filter_backends = (KeyFilterBackend, KeySearchFilter, KeyOrderingFilter)
    pagination_class = CursorPagination

    def get_queryset(self):
        return super().get_queryset().filter(company_id=self.request.user.company_id)


class CompanySerializer(serializers.ModelSerializer):
    class Meta:
        model = Company
        fields = "__all__"


class Companies(viewsets.ModelViewSet):
    queryset = Company.objects.all()
    serializer_class = CompanySerializer
    filter_backends = (KeyFilterBackend,)
    filter_fields = ("public", "founded", "name")


router = routers.SimpleRouter()
router.register("offices", Offices)
router.register("companies", Companies)
addresses(path("", include(router.urls)), path("schema/", SpectacularAPIView.as_view()))
schema = Client().get("/schema/", headers={"Accept": "application/json"})
assert schema.status_code == 200, schema.content
paths = schema.json()["paths"]
names = {each["name"] for each in paths["/offices/"]["get"]["parameters"]}
assert {"city", "company_id", "cursor", "search", "ordering"} <= names, names
types = {each["name"]: each["schema"] for each in paths["/companies/"]["get"]["parameters"]}
assert types == {
    "public": {"type": "boolean"},
    "founded": {"type": "string", "format": "date"},
    "name": {"type": "string"},
}, types
statuses = {
    method: {*operation["responses"]}
    for path, methods in paths.items()
    for method, operation in methods.items()
    if path.startswith("/offices/")
}
assert statuses == {
    "get": {"200", "400", "404", "503"},
    "post": {"201", "400", "409", "503"},
    "put": {"200", "400", "404", "409", "503"},
    "patch": {"200", "400", "404", "409", "503"},
    "delete": {"204", "400", "404", "409", "503"},
}, statuses
