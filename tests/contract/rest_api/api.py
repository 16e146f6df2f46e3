"""An API of the test models, only with the classes of ``contrib.rest_framework``."""

from __future__ import annotations

from typing import Any

from django.urls import include, path
from rest_framework import viewsets
from rest_framework.permissions import AllowAny
from rest_framework.routers import SimpleRouter

from dynamo_single.contrib.rest_framework import filters, pagination, serializers
from project.chat.models import Message
from project.directory.models import Company, Person
from tests.catalog.models import Order, Sample
from tests.catalog.servers import GameServer


class FivePerPage(pagination.CursorPagination):
    """Five objects on a page, or the requested number."""

    page_size = 5
    page_size_query_param = "size"


def view_set(of: Any, **options: Any) -> Any:
    """The views of a model."""
    meta = type("Meta", (), {"model": of, "fields": "__all__"})
    return type(
        f"{of.__name__}ViewSet",
        (viewsets.ModelViewSet,),
        {
            "queryset": of.objects.all(),
            "serializer_class": type("Serializer", (serializers.ModelSerializer,), {"Meta": meta}),
            "permission_classes": (AllowAny,),
            "authentication_classes": (),
            "pagination_class": FivePerPage,
            "filter_backends": (filters.KeyFilterBackend, filters.KeySearchFilter, filters.KeyOrderingFilter),
            **options,
        },
    )


router = SimpleRouter()
router.register("orders", view_set(Order))
router.register("companies", view_set(Company, search_fields=("name",), filter_fields=("name",)))
router.register("people", view_set(Person))
router.register("samples", view_set(Sample))
router.register("messages", view_set(Message, lookup_value_regex="[^/]+"))
router.register("servers", view_set(GameServer))
urlpatterns = [
    path("api/", include(router.urls)),
]
