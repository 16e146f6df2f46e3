"""``check`` finds admin lists whose pages could not be shown."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.admin.sites import AdminSite, all_sites
from django.core.checks import CheckMessage

from dynamo_single.admin import DynamoModelAdmin
from dynamo_single.checks.admin import check_lists
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Person
from tests.catalog.models import Coupon
from tests.catalog.places import Place
from tests.catalog.servers import GameServer, GameTag


def warnings_of(model: Any, **options: Any) -> list[CheckMessage]:
    """The warnings about such an admin."""
    site = AdminSite("checked")
    site.register(model, type("Checked", (DynamoModelAdmin,), options))
    try:
        with assert_requests(0):
            return [each for each in check_lists() if each.obj is type(site.get_model_admin(model))]
    finally:
        all_sites.discard(site)


def found(model: Any, **options: Any) -> list[str]:
    """Return the subjects of the warnings for an admin class."""
    messages = warnings_of(model, **options)
    assert [each.id for each in messages] in ([], ["dynamo_single.W904"])
    told = [re.sub(r" \((?!').*\)\.$|\.$", "", each.msg.partition("would show an error: ")[2]) for each in messages]
    return re.split(r", (?=search_fields|list_filter|ordering)", told[0]) if told else []


def test_the_admins_of_the_project_are_answered() -> None:
    """Keys support all lists of the demo and the accounts."""
    assert check_lists() == []


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"ordering": ("stock",)}, []),
        ({"ordering": ("stock",), "list_max_in_memory": 0}, ["ordering = ('stock',)"]),
        ({"ordering": ("name",)}, []),
        ({"search_fields": ("name", "=stock")}, []),
        ({"search_fields": ("founded", "public", "@name")}, ["search_fields: 'public'", "search_fields: '@name'"]),
        ({"search_fields": ("founded",), "list_max_in_memory": 0}, ["search_fields: 'founded'"]),
        ({"list_filter": ("public", "founded")}, []),
        ({"list_filter": ("stock",)}, []),
        ({"list_filter": ("stock",), "list_max_in_memory": 0}, ["list_filter: 'stock'"]),
        ({"ordering": ("stock",), "get_queryset": lambda self, request: None}, []),
        ({"ordering": ("stock",), "get_ordering": lambda self, request: ()}, []),
    ],
)
def test_what_no_key_answers_is_told(options: dict[str, Any], told: list[str]) -> None:
    """The check reports orders, searches and filters by option, except the results of methods."""
    assert found(Company, **options) == told


@pytest.mark.parametrize(("model", "name"), [(GameServer, "tags"), (GameTag, "servers"), (Place, "restaurant")])
def test_filter_by_relation_needs_bound(model: Any, name: str) -> None:
    """The page reads related objects up to the limit of the list."""
    assert found(model, list_filter=(name,)) == []
    assert found(model, list_filter=(name,), list_max_in_memory=0) == [f"list_filter: {name!r}"]


def test_path_over_reference_needs_bound() -> None:
    """DynamoDB has no joins, so the page reads referenced objects up to the limit of the list."""
    options: dict[str, Any] = {"search_fields": ("company__name",), "list_filter": ("company__public",)}
    assert found(Person, **options) == []
    told = ["search_fields: 'company__name'", "list_filter: 'company__public'"]
    assert found(Person, **options, list_max_in_memory=0) == told


def test_search_compares_type_at_end_of_path() -> None:
    """A truth value has no words, also one of a related object."""
    assert found(Person, search_fields=("company__public",)) == ["search_fields: 'company__public'"]


def test_a_model_that_no_key_lists_is_told() -> None:
    """Its page could show nothing."""
    assert found(Coupon) == ["its list"]


def test_an_admin_has_one_warning_with_one_hint() -> None:
    """Django prints them before the output of each command."""
    options = {"ordering": ("stock",), "search_fields": ("public",), "list_filter": ("stock", "name")}
    (warning,) = warnings_of(Company, list_max_in_memory=0, **options)
    assert warning.msg == (
        "No key supports these options of the admin of directory.Company, so its pages would show an error: "
        "ordering = ('stock',), search_fields: 'public', list_filter: 'stock', list_filter: 'name'."
    )
    assert str(warning.hint).count("SimpleListFilter") == str(warning.hint).count("Search by strings") == 1


def test_a_warning_about_one_thing_says_why() -> None:
    (warning,) = warnings_of(Company, ordering=("stock",), list_max_in_memory=0)
    assert warning.msg.endswith("ordering = ('stock',) (directory.Company: no key supports all().order_by(stock)).")


def test_a_link_from_no_column_is_an_error_as_in_django() -> None:
    """The additional columns of the trash do not hide the error."""
    own = type("Linked", (DynamoModelAdmin,), {"list_display": ("name",), "list_display_links": ("name", "founded")})
    (error,) = own(Company, AdminSite("linked")).check()
    assert (error.id, "'list_display_links[1]' refers to 'founded'" in error.msg) == ("admin.E111", True)


def test_links_from_columns_that_a_method_gives_are_not_looked_at() -> None:
    """The result of the method is unknown, as in Django."""
    given = {"list_display_links": ("founded",), "get_list_display": lambda self, request: ("founded",)}
    assert type("Linked", (DynamoModelAdmin,), given)(Company, AdminSite("linked")).check() == []
