"""``without_secrets()``: names from an address reach no secret, through REST framework's filters or by themselves."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import FieldError, SuspiciousOperation
from django.db.models import Avg, Count, F, Max, OuterRef, Q, Subquery
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Lower
from django.test import Client
from django.urls import include, path
from rest_framework import filters, renderers, routers, serializers, viewsets

from accounts.models import User
from dynamo_single import models
from dynamo_single.exceptions import DisallowedLookup, InvalidValue, NotSupported
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests
from tests.catalog.safes import FOLLOWING, INSIDE, VALUES, Lock, Safe, told
from tests.contract.admin.test_admin_secrets import LOOKUPS, PATHS
from tests.unit.declaring import declare, forgotten

#: Names of secrets in queries. Strings are not documents, whose elements have names.
NAMES = [name for name in PATHS if not name.startswith("remark")]


class Parameters(filters.BaseFilterBackend):
    """Passes the address's parameters on, as django-filter does for ``fields = "__all__"``."""

    def filter_queryset(self, request: Any, queryset: Any, view: object) -> Any:
        """Filter by each parameter that is not another backend's."""
        given = {name: value for name, value in request.query_params.items() if name not in ("ordering", "search")}
        return queryset.filter(**given)


class SafeSerializer(serializers.ModelSerializer[Safe]):
    """The name alone."""

    class Meta:
        model = Safe
        fields = ("safe_id", "name")


class SafeViewSet(viewsets.ModelViewSet[Safe]):
    """Safes, which an address filters, orders and searches by any name."""

    queryset: Any = Safe.objects.without_secrets()
    serializer_class = SafeSerializer
    renderer_classes = (renderers.JSONRenderer,)
    authentication_classes = ()
    permission_classes = ()
    filter_backends = (Parameters, filters.OrderingFilter, filters.SearchFilter)
    ordering_fields = "__all__"
    search_fields: tuple[str, ...] = ("=name",)


router = routers.SimpleRouter()
router.register("safes", SafeViewSet, basename="safe")
urlpatterns = [path("", include(router.urls))]


@pytest.fixture
def client(settings: Any, table: Table) -> Client:
    """Return a client of the API, a safe with every secret, and an empty safe."""
    settings.ROOT_URLCONF = __name__
    settings.MIDDLEWARE = []
    found: Safe = Safe.objects.create(safe_id="s1", name="Front", **VALUES, **INSIDE)
    Lock.objects.create(safe=found, lock_id="l1", brand="Best", code="swordfish-code")
    Safe.objects.create(safe_id="s2", name="Back")
    return Client(raise_request_exception=False)


def refused(client: Client, query: dict[str, str]) -> bool:
    """Return whether the API responds with status 400, and with no secret."""
    answer = client.get("/safes/", query)
    return answer.status_code == 400 and told(answer.content.decode()) == []


@pytest.mark.parametrize("name", NAMES)
def test_no_parameter_of_api_compares_with_secret(client: Client, name: str) -> None:
    passed = [lookup for lookup in LOOKUPS if not refused(client, {f"{name}{'__' * bool(lookup)}{lookup}": "1"})]

    assert passed == []


@pytest.mark.parametrize("sign", ["", "-"])
def test_ordering_filter_refuses_secrets(client: Client, sign: str) -> None:
    fields = [name.removesuffix("_id") for name in (*VALUES, *FOLLOWING)]

    assert [name for name in fields if not refused(client, {"ordering": f"name,{sign}{name}"})] == []


@pytest.mark.parametrize("prefix", ["", "^", "=", "@", "$"])
def test_search_filter_refuses_secrets(client: Client, monkeypatch: pytest.MonkeyPatch, prefix: str) -> None:
    passed = []
    for name in (*VALUES, *FOLLOWING):
        monkeypatch.setattr(SafeViewSet, "search_fields", ("name", f"{prefix}{name}"))
        passed += [] if refused(client, {"search": "sword"}) else [name]

    assert passed == []


def test_detail_refuses_secret(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SafeViewSet, "lookup_field", "claimed")
    monkeypatch.setattr(SafeViewSet, "lookup_url_kwarg", "pk")

    assert client.get(f"/safes/{VALUES['claimed']}/").status_code == 400


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"name": "Front"}, ["Front"]),
        ({"name__startswith": "B", "ordering": "name"}, ["Back"]),
        ({"ordering": "-name"}, ["Front", "Back"]),
        ({"name__gte": "A", "papers__author": "Ann"}, ["Front"]),
    ],
)
def test_api_filters_by_other_attributes(client: Client, query: dict[str, str], names: list[str]) -> None:
    assert [each["name"] for each in client.get("/safes/", query).json()] == names


def test_detail_by_key_is_found(client: Client) -> None:
    assert client.get("/safes/s1/").json() == {"safe_id": "s1", "name": "Front"}


#: Calls that name an attribute.
CALLS: dict[str, Callable[[Any, str], Any]] = {
    "filter": lambda safes, name: safes.filter(**{name: "a"}),
    "filter by another attribute's value": lambda safes, name: safes.filter(name=F(name)),
    "filter by one of several": lambda safes, name: safes.filter(name__in=["a", F(name)]),
    "filter with Q": lambda safes, name: safes.filter(Q(name="a") | ~Q(Q(**{name: "a"}), name="b")),
    "filter with pair": lambda safes, name: safes.filter((name, "a")),
    "filter by queryset": lambda safes, name: safes.filter(**{f"{name}__in": Safe.objects.filter(name="a")}),
    "exclude": lambda safes, name: safes.exclude(**{name: "a"}),
    "complex_filter": lambda safes, name: safes.complex_filter({name: "a"}),
    "get": lambda safes, name: safes.get(**{name: "a"}),
    "get_or_create": lambda safes, name: safes.get_or_create(**{name: "a"}),
    "order_by": lambda safes, name: safes.order_by("name", f"-{name}"),
    "order_by F": lambda safes, name: safes.order_by(F(name).desc()),
    "order_by function": lambda safes, name: safes.order_by(Lower(name)),
    "earliest": lambda safes, name: safes.earliest(name),
    "latest": lambda safes, name: safes.latest(name),
    "values": lambda safes, name: safes.values("name", name),
    "values of all": lambda safes, name: safes.values(),
    "values of expression": lambda safes, name: safes.values("name", x=F(name)),
    "values_list": lambda safes, name: safes.values_list(name, flat=True),
    "annotate": lambda safes, name: safes.annotate(x=Max(name)),
    "annotate groups": lambda safes, name: safes.values("name").annotate(x=Max(name)),
    "annotate with filter": lambda safes, name: safes.annotate(x=Count("pk", filter=Q(**{name: "a"}))),
    "aggregate": lambda safes, name: safes.aggregate(Max(name)),
    "aggregate with filter": lambda safes, name: safes.aggregate(x=Count("pk", filter=Q(**{name: "a"}))),
    "dates": lambda safes, name: safes.dates("day", "year"),
    "in_bulk": lambda safes, name: safes.in_bulk(["a"], field_name=name),
    "in_bulk of all": lambda safes, name: safes.in_bulk(field_name=name),
}
#: The name in the error of a call without a name.
NAMED = {"dates": "day", "values of all": "text"}


@pytest.mark.parametrize("call", CALLS)
def test_call_refuses_secret(table: Table, call: str) -> None:
    safes = Safe.objects.without_secrets().all().allow_in_memory()[:].filter(name__gte="A")
    for name in ("text", "pin", "folded", "parent_id", "drawn"):
        with assert_requests(0), pytest.raises(DisallowedLookup, match=f"'{NAMED.get(call, name)}(__|')"):
            CALLS[call](safes, name)


@pytest.mark.parametrize("name", ["papers__apiKey", "papers__deep__0__password", "contents__place"])
def test_places_of_documents_are_refused(table: Table, name: str) -> None:
    safes = Safe.objects.without_secrets()
    first, *steps = name.split("__")
    place: Any = F(first)
    for step in steps:
        place = KeyTransform(step, place)

    for named in (lambda: safes.order_by(name), lambda: safes.values(name), lambda: safes.order_by(place)):
        with pytest.raises(DisallowedLookup):
            named()


def test_annotation_stands_for_its_attribute(table: Table) -> None:
    safes = Safe.objects.values("name").annotate(heaviest=Max("number"), count=Count("pk")).without_secrets()

    assert safes.order_by("count").query.order_by == ("count",)
    with pytest.raises(DisallowedLookup):
        safes.order_by("-heaviest")
    with pytest.raises(DisallowedLookup):
        safes.values("heaviest")


#: Annotations from before the call, whose values are secrets of other models, or of a related object that is one.
ANNOTATED: dict[str, Callable[[Any], Any]] = {
    "attribute of a related object": lambda locks: locks.annotate(x=F("safe__pin")),
    "related object of a secret": lambda locks: locks.annotate(x=F("safe__parent__name")),
    "aggregate": lambda locks: locks.annotate(x=Max("safe__text")),
    "subquery": lambda locks: locks.annotate(x=Subquery(Safe.objects.filter(pk=OuterRef("safe")).values("pin"))),
}


@pytest.mark.parametrize("name", ANNOTATED)
def test_annotation_stands_for_attributes_of_others(table: Table, name: str) -> None:
    locks = ANNOTATED[name](Lock.objects.allow_in_memory()).without_secrets()
    with pytest.raises(DisallowedLookup):
        locks.order_by("x")


def test_error_masks_the_value_of_a_secret_annotation(table: Table) -> None:
    safes = Safe.objects.allow_in_memory().annotate(x=Lower("text"))
    with pytest.raises(Safe.DoesNotExist, match="matches x=•••"):
        safes.get(x="swordfish")


def test_error_of_computed_update_does_not_show_a_secret(table: Table) -> None:
    """Neither does the error before it, which tools for errors print too."""
    Safe.objects.create(safe_id="s", name="Front", integer=814281)
    with pytest.raises(InvalidValue, match="cannot store the value of a secret in name") as caught:
        Safe.objects.filter(pk="s").allow_in_memory().update(name=F("integer") + 1)
    errors: list[BaseException] = [caught.value]
    while (before := errors[-1].__context__) is not None:
        errors.append(before)
    assert [each for each in errors if "81428" in str(each)] == []


def test_other_side_of_secret_reference_is_refused(table: Table) -> None:
    with pytest.raises(DisallowedLookup, match="'safe__name'"):
        Safe.objects.without_secrets().allow_in_memory().filter(safe__name="Front")


#: The asynchronous variants, each with a secret.
AWAITED: dict[str, Callable[[Any], Any]] = {
    "aget": lambda safes: safes.aget(pin="a"),
    "aaggregate": lambda safes: safes.aaggregate(Avg("number")),
    "alatest": lambda safes: safes.alatest("number"),
    "ain_bulk": lambda safes: safes.ain_bulk(field_name="claimed"),
}


@pytest.mark.parametrize("call", AWAITED)
def test_awaited_twin_refuses_secret(table: Table, call: str) -> None:
    async def ask() -> None:
        await AWAITED[call](Safe.objects.without_secrets())

    with pytest.raises(DisallowedLookup):
        asyncio.run(ask())


def test_path_over_relation_is_refused(table: Table) -> None:
    with pytest.raises(DisallowedLookup, match="safe__pin__gte"):
        Lock.objects.without_secrets().filter(safe__pin__gte="a")


@pytest.mark.parametrize("name", ["password", "phone_secret__gte", "username_secret__isnull"])
def test_users_are_not_found_by_secrets(table: Table, name: str) -> None:
    users: Any = User.objects

    with pytest.raises(DisallowedLookup, match=name):
        users.without_secrets().get(**{name: "a"})


def test_key_made_of_secret_is_refused() -> None:
    with forgotten():
        chests: Any = declare("Chest", ("CHEST#{code}", "#METADATA"), code=models.UnicodeAttribute(secret=True)).objects

        with pytest.raises(DisallowedLookup, match="'pk'"):
            chests.without_secrets().get(pk="a")


def test_pickled_query_refuses_secrets(table: Table) -> None:
    again = Safe.objects.all()
    again.query = pickle.loads(pickle.dumps(Safe.objects.without_secrets().query))

    with pytest.raises(DisallowedLookup):
        again.filter(pin="a")


def test_union_with_other_queryset_is_refused(table: Table) -> None:
    with pytest.raises(NotSupported):
        Safe.objects.without_secrets() | Safe.objects.filter(pin="a")


def test_code_filters_before(client: Client) -> None:
    safes = Safe.objects.filter(name__gte="A", pin=VALUES["pin"]).without_secrets()

    assert [safe.text for safe in safes.filter(name="Front")] == [VALUES["text"]]


def test_error_names_attribute_without_value(table: Table) -> None:
    with pytest.raises(DisallowedLookup) as caught:
        Safe.objects.without_secrets().filter(text__startswith="swordfish")

    assert isinstance(caught.value, FieldError)
    assert isinstance(caught.value, SuspiciousOperation)
    assert "catalog.Safe: 'text__startswith' names a secret." in str(caught.value)
    assert told(str(caught.value)) == []
