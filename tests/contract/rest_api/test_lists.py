"""Filters, search, order and pages of lists."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest
from rest_framework.test import APIClient, APIRequestFactory

from dynamo_single.testing import assert_requests
from project.directory.models import Company
from tests.catalog.models import Order
from tests.contract.rest_api.api import view_set

pytestmark = [pytest.mark.usefixtures("table"), pytest.mark.urls("tests.contract.rest_api.api")]

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
#: The index does not contain orders without a time.
ALL = "/api/orders/?placed_at__isnull=false&ordering="


@pytest.fixture
def orders(table: Any) -> list[Order]:
    """Twelve orders of two customers."""
    return [
        Order.objects.create(customer="ab"[n % 2], number=n, placed_at=BEGIN + timedelta(days=n), coupon="x")
        for n in range(12)
    ]


def numbers(response: Any) -> list[int]:
    assert response.status_code == 200, response.json()
    return [each["number"] for each in response.json()["results"]]


def test_filter_by_key_is_one_query(client: APIClient, orders: list[Order]) -> None:
    with assert_requests(["Query"]):
        assert numbers(client.get("/api/orders/?customer=a&size=20")) == [0, 2, 4, 6, 8, 10]


def test_range_of_sort_key_narrows_list(client: APIClient, orders: list[Order]) -> None:
    assert numbers(client.get("/api/orders/?customer=a&number__gte=6&number__lt=10")) == [6, 8]


def test_filter_without_key_lists_what_is_offered(client: APIClient, orders: list[Order]) -> None:
    with assert_requests([]):
        response = client.get("/api/orders/?number=3")
    assert response.status_code == 400
    assert response.json() == {
        "number": ["No key supports these filters together. This list filters by: customer, number, placed_at, coupon."]
    }


def test_invalid_value_names_its_parameter(client: APIClient, orders: list[Order]) -> None:
    with assert_requests([]):
        response = client.get("/api/orders/?customer=a&number=many")
    assert (response.status_code, response.json()) == (400, {"number": ["This value is not valid."]})


@pytest.mark.parametrize("lookup", ["regex", "customer__x", ""])
def test_unknown_lookup_is_refused(client: APIClient, orders: list[Order], lookup: str) -> None:
    assert client.get(f"/api/orders/?customer=a&number__{lookup}=1").status_code == 400


def test_too_many_values_are_refused(client: APIClient, orders: list[Order]) -> None:
    response = client.get("/api/orders/", {"customer": "a", "number__in": ",".join(map(str, range(101)))})
    assert response.json() == {"number__in": ["This value is not valid."]}


def test_several_values_are_read_by_keys(client: APIClient, orders: list[Order]) -> None:
    with assert_requests(["BatchGetItem"]):
        assert numbers(client.get("/api/orders/?customer=a&number__in=2,6")) == [2, 6]


def test_other_parameters_are_ignored(client: APIClient, orders: list[Order]) -> None:
    assert numbers(client.get("/api/orders/?customer=a&status=gone&format=json")) == [0, 2, 4, 6, 8]


@pytest.mark.parametrize(
    ("text", "expected"), [("number", [0, 2, 4, 6, 8]), ("-number", [10, 8, 6, 4, 2]), ("-placed_at", None)]
)
def test_order_is_that_of_a_key(client: APIClient, orders: list[Order], text: str, expected: Any) -> None:
    response = client.get(f"/api/orders/?customer=a&ordering={text}")
    if expected is not None:
        assert numbers(response) == expected
    else:
        assert response.status_code == 400
        offered = "customer, -customer, number, -number"
        assert response.json() == {"ordering": [f"No key supports this order. This list sorts by: {offered}."]}


def test_order_of_whole_list(client: APIClient, orders: list[Order]) -> None:
    assert numbers(client.get(f"{ALL}-placed_at")) == [11, 10, 9, 8, 7]


def test_order_by_unknown_name_is_refused(client: APIClient, orders: list[Order]) -> None:
    assert client.get("/api/orders/?customer=a&ordering=nothing").status_code == 400


def test_pages_lead_to_every_object_and_back(client: APIClient, orders: list[Order]) -> None:
    seen, address, previous = [], f"{ALL}placed_at", []
    while address:
        page = client.get(address).json()
        seen.append([each["number"] for each in page["results"]])
        previous.append(page["previous"])
        address = page["next"]
    assert seen == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11]]
    assert numbers(client.get(previous[-1])) == [5, 6, 7, 8, 9]


def test_pages_of_several_filters_follow_each_other(client: APIClient, orders: list[Order]) -> None:
    page = client.get("/api/orders/?number__gte=2&customer=a&size=2").json()
    assert numbers(client.get(page["next"])) == [6, 8]


def test_page_of_whole_list_is_one_query(client: APIClient, orders: list[Order]) -> None:
    with assert_requests(["Query"]):
        client.get(f"{ALL}placed_at")


@pytest.mark.parametrize("cursor", ["x", "\x00", "a.b"])
def test_invalid_cursor_is_not_found(client: APIClient, orders: list[Order], cursor: str) -> None:
    response = client.get(f"{ALL}placed_at&cursor={quote(cursor)}")
    assert (response.status_code, response.json()) == (404, {"detail": "Invalid cursor"})


def test_search_finds_beginnings(client: APIClient) -> None:
    for name in ("Acme", "Acorn", "Beta"):
        Company.objects.create(name=name)
    with assert_requests(["Query"]):
        found = client.get("/api/companies/?search=Ac").json()["results"]
    assert [each["name"] for each in found] == ["Acme", "Acorn"]


def test_refused_query_of_a_view_is_a_bad_request(client: APIClient, caplog: Any) -> None:
    """Here the list of all people in an order that no key has, by the view's own code."""
    view = view_set(Order, queryset=Order.objects.order_by("total"), filter_backends=())
    response = view.as_view({"get": "list"})(APIRequestFactory().get("/"))
    assert response.status_code == 400
    assert response.data == {"detail": "No key supports this filter, search or order."}
    assert "NoAccessPattern" in caplog.text


@pytest.mark.parametrize("address", ["/", "/?customer=a", "/?search=a", "/?ordering=number"])
def test_rows_of_a_union_are_a_bad_request(client: APIClient, orders: list[Order], address: str) -> None:
    a, b = (Order.objects.filter(customer=each).values("number") for each in "ab")
    views = view_set(Order, queryset=a.union(b).allow_in_memory(100))
    assert views.as_view({"get": "list"})(APIRequestFactory().get(address)).status_code == 400
