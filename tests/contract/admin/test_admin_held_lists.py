"""Lists that the admin computes from rows in memory, and the pages of larger lists."""

from __future__ import annotations

import datetime
import html
import re
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin import AllValuesFieldListFilter
from django.contrib.admin.sites import all_sites
from django.urls import path

from dynamo_single.admin import DynamoAdminSite, DynamoModelAdmin
from dynamo_single.admin.lists import in_memory
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Office, Person
from tests.catalog.models import Order, Sample
from tests.contract.conftest import SIGNED_IN, Pages, Registering, link, shown, text_of

COMPANY = "directory/company/"
PERSON = "directory/person/"
SAMPLE = "catalog/sample/"


class CompanyAdmin(DynamoModelAdmin):
    """Everything that Django's lists have."""

    list_display = ("name", "stock", "founded", "public")
    list_filter = ("public", "stock", "founded")
    search_fields = ("name", "stock")
    date_hierarchy = "founded"


class SampleAdmin(DynamoModelAdmin):
    """Numbers, sets and references."""

    list_display = ("text", "integer")
    list_filter = ("integer", "words", "parent")
    search_fields = ("text", "=integer", "decimal__exact", "words")


class PersonAdmin(DynamoModelAdmin):
    """A filter by a reference."""

    list_display = ("name",)
    list_filter = ("company",)
    search_fields = ("email", "^name")


site = DynamoAdminSite()
site.register(Company, CompanyAdmin)
site.register(Person, PersonAdmin)
site.register(Sample, SampleAdmin)
all_sites.discard(site)
urlpatterns = [path("admin/", site.urls)]


@pytest.fixture
def lists(catalog: Pages) -> Pages:
    """The admin of this file, with three companies."""
    for number, (name, stock) in enumerate([("Zeta Works", "ZW"), ("acme of zetaland", "ACM"), ("Bolt", "QZ")]):
        Company.objects.create(name=name, stock=stock, founded=datetime.date(2020 + number, 5, 1), public=number < 2)
    return catalog


@pytest.fixture
def large(lists: Pages, monkeypatch: pytest.MonkeyPatch) -> Pages:
    """Return the same list with a limit of three rows."""
    monkeypatch.setattr(DynamoModelAdmin, "list_max_in_memory", 2)
    return lists


def choices(response: Any) -> str:
    """Return the choices of the filters."""
    return text_of(response).partition("Filter ")[2]


@pytest.mark.parametrize(
    ("column", "names"),
    [
        ("2", ["acme of zetaland", "Bolt", "Zeta Works"]),
        ("-2", ["Zeta Works", "Bolt", "acme of zetaland"]),
        ("-3", ["Bolt", "acme of zetaland", "Zeta Works"]),
        ("4.-1", ["Bolt", "acme of zetaland", "Zeta Works"]),
    ],
)
def test_every_column_sorts(lists: Pages, column: str, names: list[str]) -> None:
    """A single read is enough to sort by an unsupported column and by several columns."""
    response = lists.get(f"{COMPANY}?o={column}", sends=["Query"])
    assert shown(response) == names
    assert re.findall(r'class="sortable column-(\w+)', response.content.decode()) == [
        "name",
        "stock",
        "founded",
        "public",
    ]


@pytest.mark.parametrize(
    ("term", "names"),
    [
        ("zeta", ["Zeta Works", "acme of zetaland"]),
        ("ZETA works", ["Zeta Works"]),
        ("works zeta", ["Zeta Works"]),
        ('"of zeta"', ["acme of zetaland"]),
        ("z bolt", ["Bolt"]),
        ("zeta nothing", []),
        ("'", []),
        ("\x00", None),
        ("ü" * 5000, []),
    ],
)
def test_a_search_finds_every_word_in_any_field_and_case(lists: Pages, term: str, names: list[str] | None) -> None:
    """Each word can be anywhere in any field, as in Django; one read is enough."""
    with assert_requests([*SIGNED_IN, "Query"]):
        response = lists.client.get(f"/admin/{COMPANY}", {"q": term})
    assert response.status_code == 200
    assert names is None or sorted(shown(response)) == sorted(names)


def test_the_page_says_what_it_read(lists: Pages) -> None:
    """The page shows the number of rows read, their limit and their cost."""
    said = text_of(lists.get(f"{COMPANY}?q=zeta"))
    assert "3 rows were read for this page, of at most 1.0 MB: 1 request, 0.5 units." in said


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("stock=ZW", ["Zeta Works"]),
        ("public__exact=1", ["Zeta Works", "acme of zetaland"]),
        ("founded__gte=2021-01-01&founded__lt=2022-01-01", ["acme of zetaland"]),
        ("founded__year=2022", ["Bolt"]),
        ("founded__year=2022&founded__month=6", []),
        ("name__icontains=ZETA", ["Zeta Works", "acme of zetaland"]),
        ("name__iendswith=WORKS", ["Zeta Works"]),
        ("stock__isnull=1", []),
    ],
)
def test_filters(lists: Pages, question: str, names: list[str]) -> None:
    """A single read is enough for all of Django's filters and for manual lookups."""
    assert sorted(shown(lists.get(f"{COMPANY}?{question}", sends=["Query"]))) == sorted(names)


def test_filters_offer_all_values_with_their_numbers(lists: Pages) -> None:
    """A single read provides the values and facets, and a separate Query counts the trash."""
    offered = choices(lists.get(f"{COMPANY}?_facets=True", sends=["Query", "Query"]))
    assert "By publicly traded All Yes (2) No (1)" in offered
    assert "By ticker All ACM (1) QZ (1) ZW (1)" in offered
    assert "In the trash (0)" in offered


class AfterFilter(admin.SimpleListFilter):
    """A filter of a project's own."""

    title = "age"
    parameter_name = "age"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        """Return the filter's choices if there are young objects."""
        found = model_admin.get_queryset(request).filter(founded__gte="2022-01-01").exists()
        return [("old", "Old"), ("young", "Young")] if found else []

    def queryset(self, request: Any, queryset: Any) -> Any:
        """The rows of a choice."""
        if self.value() == "old":
            return queryset.filter(founded__lt="2022-01-01")
        return queryset.filter(founded__gte="2022-01-01") if self.value() else None


def test_filters_of_a_projects_own(lists: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """Custom filters and Django's filter for empty values use and count the same rows."""
    monkeypatch.setattr(CompanyAdmin, "list_filter", (AfterFilter, ("stock", admin.EmptyFieldListFilter)))
    response = lists.get(f"{COMPANY}?age=old&_facets=True", sends=["Query", "Query"])
    assert sorted(shown(response)) == ["Zeta Works", "acme of zetaland"]
    assert "By age All Old (2) Young (1) By ticker All Empty (0) Not empty (2)" in choices(response)
    assert shown(lists.get(f"{COMPANY}?stock__isempty=1", sends=["Query"])) == []


def test_the_dates_lead_to_years(lists: Pages) -> None:
    """The date hierarchy uses the rows in memory, like the list."""
    page = lists.get(COMPANY, sends=["Query"]).content.decode()
    assert [f"founded__year={year}" in page for year in (2019, 2020, 2021, 2022)] == [False, True, True, True]


@pytest.mark.parametrize(
    ("question", "texts"),
    [("q=4", ["four"]), ("q=seven", ["seven"]), ("q=blue", ["seven"]), ("q=2.50", ["four"]), ("q=%C3%BC", [])],
)
def test_a_number_beside_a_text_is_searched(lists: Pages, question: str, texts: list[str]) -> None:
    """A word that is not a number is searched only in strings, and does not raise an error."""
    Sample.objects.create(text="four", integer=4, decimal="2.50")
    Sample.objects.create(text="seven", integer=7, words={"blue", "red"})
    assert shown(lists.get(f"{SAMPLE}?{question}"), "text") == texts


def test_filters_over_numbers_sets_and_references(lists: Pages) -> None:
    """A number is one value, a set offers its members, and a reference its objects."""
    first = Sample.objects.create(text="four", integer=4, words={"red"})
    Sample.objects.create(text="seven", integer=7, words={"blue", "red"}, parent=first)
    offered = choices(lists.get(f"{SAMPLE}?_facets=True"))
    assert "By integer All 4 (1) 7 (1)" in offered
    assert "By words All blue (1) red (2)" in offered
    assert shown(lists.get(f"{SAMPLE}?integer=7"), "text") == ["seven"]
    assert shown(lists.get(f"{SAMPLE}?words__contains=blue"), "text") == ["seven"]
    assert shown(lists.get(f"{SAMPLE}?parent__sample_id__exact={first.pk}"), "text") == ["seven"]


def test_a_reference_that_a_key_answers_is_read_by_it(lists: Pages) -> None:
    """The people of a company are one partition; the filter's companies are another Query."""
    acme, bolt = Company.objects.all()[:2]
    Person.objects.create(company=acme, name="Mike", email="mike@example.com")
    Person.objects.create(company=bolt, name="Nora")
    response = lists.get(f"{PERSON}?company__company_id__exact={acme.pk}", sends=["Query", "Query"])
    assert shown(response) == ["Mike"]
    assert "rows were read" not in text_of(response)
    found = lists.get(f"{PERSON}?company__company_id__exact={acme.pk}&q=EXAMPLE", sends=["Query", "Query"])
    assert shown(found) == ["Mike"]


def test_the_trash_in_an_order_of_its_own(lists: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page sorts the trash in memory if its key does not support the order."""
    monkeypatch.setattr(CompanyAdmin, "ordering", ("-name",))
    monkeypatch.setattr(CompanyAdmin, "date_hierarchy", None)
    monkeypatch.setattr(CompanyAdmin, "list_filter", ())
    for company in Company.objects.all():
        company.delete()
    assert shown(lists.get(f"{COMPANY}?trash=yes", sends=["Query"])) == ["acme of zetaland", "Zeta Works", "Bolt"]


def test_what_a_search_found_is_acted_on(lists: Pages) -> None:
    """An action on all results applies to exactly these objects, by primary key."""
    data = {"action": "delete_selected", "_selected_action": ["x"], "select_across": "1", "post": "yes"}
    assert lists.post(f"{COMPANY}?q=zeta", data).status_code == 302
    assert [company.name for company in Company.objects.all()] == ["Bolt"]


def test_a_row_of_a_search_is_acted_on(lists: Pages) -> None:
    """The action reads a selected row by its key."""
    zeta = Company.objects.get(name="Zeta Works")
    data = {"action": "delete_selected", "_selected_action": [zeta.pk], "post": "yes"}
    assert lists.post(f"{COMPANY}?q=zeta", data).status_code == 302
    assert [company.name for company in Company.objects.all()] == ["Bolt", "acme of zetaland"]


def test_too_many_rows_to_act_on_are_said(large: Pages) -> None:
    """The action does not delete objects if the search reads more rows than the limit."""
    data = {"action": "delete_selected", "_selected_action": ["x"], "select_across": "1", "post": "yes"}
    assert large.post(f"{COMPANY}?stock=ZW", data).status_code == 302
    assert Company.objects.count() == 3


def test_a_large_list_is_not_counted_and_has_no_dates(large: Pages) -> None:
    """The page has the order of its key, and lists the omitted parts."""
    response = large.get(COMPANY)
    assert shown(response) == ["Bolt", "Zeta Works", "acme of zetaland"]
    said = text_of(response)
    assert "There are more than 2 companies, so this page is shown without the dates, the filter by ticker." in said
    assert re.findall(r'class="sortable column-(\w+)', response.content.decode()) == ["name"]


def test_a_large_list_that_dates_are_asked_of_is_read_up_to_the_bound_once(large: Pages) -> None:
    """Two reads find the list to be large and return a page by its key, without counts; the next page is one read."""
    with assert_requests([*SIGNED_IN, "Query", "Query"]) as requests:
        first = large.get(f"{COMPANY}?size=25")
    assert [request.params["Limit"] for request in requests[2:]] == [3, 26]
    with assert_requests([*SIGNED_IN, "Query"]):
        large.get(f"{COMPANY}?cursor={first.context['cl'].queryset.cursor_for(first.context['cl'].result_list[0])}")


def test_dates_that_no_list_of_all_rows_answers_are_said(registered: Registering) -> None:
    """A key supports a year of dates with any number of rows."""
    for number in range(3):
        Order.objects.create(customer="c", number=number, placed_at=datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC))
    pages = registered(Order, date_hierarchy="placed_at", list_display=("number", "placed_at"))
    page = pages.get("catalog/order/?placed_at__year=2020", sends=["Query"])
    assert "There is no list of all orders, so this page is shown without the dates." in text_of(page)
    assert page.context["cl"].result_count == 3


@pytest.fixture
def dated(lists: Pages, monkeypatch: pytest.MonkeyPatch) -> Pages:
    """People, with the dates of their companies; one company has no people."""
    for company in Company.objects.all():
        if company.name != "Bolt":
            Person.objects.create(company=company, name=f"of {company.name}")
    monkeypatch.setattr(PersonAdmin, "date_hierarchy", "company__founded")
    return lists


def test_dates_at_a_path_are_those_of_the_referenced_objects(dated: Pages) -> None:
    """The years of the companies that people refer to, and a list that is filtered by one."""
    page = dated.get(PERSON)
    assert re.findall(r"company__founded__year=(\d+)", page.content.decode()) == ["2020", "2021"]
    assert shown(dated.get(f"{PERSON}?company__founded__year=2021")) == ["of acme of zetaland"]


def test_dates_at_a_path_are_left_out_for_users_who_may_not_see_the_objects(staff: Any, dated: Pages) -> None:
    """The dates would reveal when a hidden company was founded."""
    page = staff("directory.view_person").get(PERSON)
    assert "company__founded" not in page.content.decode()
    assert "shown without the dates" in text_of(page)


def test_of_a_large_list_a_part_that_a_key_answers_is_counted(large: Pages) -> None:
    """The part may have few rows."""
    page = large.get(f"{COMPANY}?q=Zeta")
    assert page.context["cl"].is_counted
    assert page.context["cl"].result_count == 1


def test_a_large_list_in_the_order_of_its_admin(large: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page ignores the admin's default order if no key supports it."""
    monkeypatch.setattr(CompanyAdmin, "ordering", ("stock",))
    response = large.get(COMPANY)
    assert shown(response) == ["Bolt", "Zeta Works", "acme of zetaland"]
    assert "its default order" in text_of(response)


@pytest.fixture
def heavy(lists: Pages, monkeypatch: pytest.MonkeyPatch) -> Pages:
    """Return the same list with a byte limit."""
    monkeypatch.setattr(DynamoModelAdmin, "list_max_bytes", 500)
    return lists


def test_bytes_bound_list_like_rows(heavy: Pages) -> None:
    """The page has the order of its key, and names the omitted parts and the option that raises the limit."""
    response = heavy.get(f"{COMPANY}?o=2&_facets=True")
    assert shown(response) == ["Bolt", "Zeta Works", "acme of zetaland"]
    said = text_of(response)
    assert "The companies are larger than 500 bytes together, so this page is shown without" in said
    assert "the dates, the numbers next to the filters" in said
    assert "Raise list_max_bytes (500)" in missing_keys(response)["the dates"]
    assert "by_stock = models.IndexKey" in missing_keys(response)["the order by ticker"]


def test_search_of_heavy_list_scans(heavy: Pages) -> None:
    """A list with too many bytes is scanned like a list with too many rows."""
    assert "Searched 3 of up to 100000 items" in text_of(heavy.get(f"{COMPANY}?q=zeta"))


def test_action_on_heavy_list_is_refused(heavy: Pages) -> None:
    """The action does not delete some of the rows."""
    data = {"action": "delete_selected", "_selected_action": ["x"], "select_across": "1", "post": "yes"}
    response = heavy.client.post(f"/admin/{COMPANY}?stock=ZW", data, follow=True)
    assert "The companies are larger than 500 bytes together" in text_of(response)
    assert Company.objects.count() == 3


def test_bytes_are_bounded_as_in_memory_by_zero(heavy: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """By 32 MB, which no list of few rows has."""
    monkeypatch.setattr(DynamoModelAdmin, "list_max_bytes", 0)
    assert "are larger than" not in text_of(heavy.get(f"{COMPANY}?o=2"))


def test_number_of_rows_is_unbounded(pages: Pages) -> None:
    """By default only their bytes count: 2,010 short rows are sorted, filtered and counted like three."""
    Company.objects.bulk_create(Company(name=f"{number:04}", stock=str(number % 7)) for number in range(2010))
    page = pages.get(f"{COMPANY}?o=-2&q=1")
    assert page.context["cl"].is_counted
    assert page.context["cl"].result_count == sum("1" in f"{number:04}" for number in range(2010))
    assert "without" not in text_of(page)


def test_count_is_bounded_by_bytes(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """One megabyte of four ends the count of a page that keys serve; the page has cursors then."""
    monkeypatch.setattr(DynamoModelAdmin, "list_max_bytes", 2**20)
    monkeypatch.setattr(DynamoModelAdmin, "list_per_page", 2)
    company = Company.objects.create(company_id="c", name="Acme")
    Office.objects.bulk_create(Office(company=company, city=f"{number}", address="x" * 300_000) for number in range(7))
    page = pages.get("directory/office/", sends=["Query", "GetItem", "Query"])
    assert not page.context["cl"].is_counted


def test_late_page_is_counted_before_it_is_read(lists: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """A number in the address does not make the page read all rows before it."""
    monkeypatch.setattr(in_memory, "MAX_OTHERS", 1)
    monkeypatch.setattr(CompanyAdmin, "list_per_page", 1)
    assert lists.get(f"{COMPANY}?p=3").status_code == 200
    assert lists.get(f"{COMPANY}?p=9", sends=["Query"]).status_code == 302


def missing_keys(response: Any) -> dict[str, str]:
    """Return the parts that the page omits, with its text for developers."""
    found = re.findall(r"<dt>(.*?)</dt><dd><pre>(.*?)</pre>", response.content.decode(), flags=re.DOTALL)
    return {what: html.unescape(advice) for what, advice in found}


def test_a_large_list_names_the_keys_that_would_answer_the_rest(large: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page tries queries with values of its rows, without requests, and lists parts that need counts separately."""
    monkeypatch.setattr(CompanyAdmin, "ordering", ("stock",))
    found = missing_keys(large.get(f"{COMPANY}?_facets=True&q=Zeta"))
    by = 'for directory.Company.Keys:\n  by_{0} = models.IndexKey("gs2", "COMPANY", "{{{1}}}#{{company_id}}")'
    all_rows = "It needs all rows, and no key can replace them. Raise list_max_in_memory (2), or remove it."
    date = "filter(founded__gte=datetime.date(2020, 5, 1))"
    assert found == {
        "its default order": f"A key that supports all().order_by(stock), {by.format('stock', 'stock:last')}",
        "the dates": f"{all_rows} A key that supports {date}, {by.format('founded', 'founded')}",
        "the numbers next to the filters": all_rows,
        "the filter by ticker": f"{all_rows} A key that supports filter(stock='ZW'), {by.format('stock', 'stock')}",
        "the search in ticker": f"A key that supports filter(stock__startswith='Zeta'), {by.format('stock', 'stock')}",
        "the order by ticker": f"A key that supports all().order_by(stock), {by.format('stock', 'stock:last')}",
        "the order by founded": f"A key that supports all().order_by(founded), {by.format('founded', 'founded:last')}",
        "the order by publicly traded": f"A key that supports all().order_by(public), {by.format('public', 'public')}",
    }


def test_a_key_that_is_there_already_is_named(large: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key supports the filter but not its choices."""
    monkeypatch.setattr(CompanyAdmin, "list_filter", ("name",))
    said = missing_keys(large.get(COMPANY))["the filter by name"]
    assert said.startswith("It needs all rows, and no key can replace them.")
    assert said.endswith("filter(name='Bolt') is served by by_name (gs1) 'COMPANY' / '{name}#{company_id}'.")


@pytest.mark.parametrize("values", [{"words": {"a"}}, {}])
def test_what_no_key_can_answer_is_not_promised_one(large: Pages, values: Any) -> None:
    """This applies to members of sets, and to lists without an example value."""
    for number in range(3):
        Sample.objects.create(sample_id=str(number), text=f"t{number}", **values)
    said = missing_keys(large.get(SAMPLE))["the filter by words"]
    assert "A key that supports" not in said


def test_an_example_of_a_reference_is_its_key(large: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """The referenced object is not read, and does not need to exist."""
    monkeypatch.setattr(SampleAdmin, "list_filter", (("parent", AllValuesFieldListFilter),))
    for number in range(3):
        Sample.objects.create(sample_id=str(number), text=f"t{number}", parent_id="gone")
    with assert_requests([*SIGNED_IN, "Query", "Query"]):
        page = large.get(SAMPLE)
    assert "A key that supports filter(parent_id='gone')" in missing_keys(page)["the filter by parent"]


def test_keys_are_named_to_developers_alone(large: Pages, staff: Any) -> None:
    """The page that replaces an unsupported list does the same."""
    page = staff("directory.view_company").get(COMPANY)
    assert "this page is shown without the dates" in text_of(page)
    assert not missing_keys(page)


def test_a_small_list_names_no_keys(lists: Pages) -> None:
    """Every part of the list is supported."""
    assert not missing_keys(lists.get(COMPANY))


def test_a_search_of_a_large_list_finds_what_keys_find(large: Pages) -> None:
    """The search finds values that start with the text in the same case, and the page explains this."""
    response = large.get(f"{COMPANY}?q=Zeta")
    assert shown(response) == ["Zeta Works"]
    assert "Results where name starts with “Zeta” (case-sensitive)." in text_of(response)


def test_a_search_beside_a_filter_says_by_what_it_found(large: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys find people of one company by identifier; they find names only among all people."""
    monkeypatch.setattr(PersonAdmin, "search_fields", ("name", "person_id"))
    acme = Company.objects.all()[0]
    for number in range(3):
        Person.objects.create(company=acme, name=f"Mike {number}")
    of_acme = large.get(f"{PERSON}?company__company_id__exact={acme.pk}&q=person")
    assert len(shown(of_acme)) == 3
    assert "Results where person id starts with “person” (case-sensitive)." in text_of(of_acme)
    assert "where name starts with “Mike” (case-sensitive)." in text_of(large.get(f"{PERSON}?q=Mike"))


@pytest.mark.parametrize(
    ("question", "advice"),
    [
        ("stock=ZW", "no single key supports filter(stock='ZW')"),
        ("public__exact=1", "no single key supports filter(public=True)"),
        ("stock__icontains=z", "no single key supports filter(stock__icontains='z')"),
    ],
)
def test_scanned_list_names_missing_key(large: Pages, question: str, advice: str) -> None:
    """The page shows the first step, and explains the reason for the scan to developers."""
    response = large.get(f"{COMPANY}?{question}")
    assert response.status_code == 200
    assert "Searched 3 of up to 100000 items" in text_of(response)
    assert advice in missing_keys(response)["the filters and the search"]


@pytest.mark.parametrize(("question", "named"), [("o=2", ["ticker"]), ("o=-2.3", ["ticker", "founded"])])
def test_unsupported_column_keeps_order_of_key(large: Pages, question: str, named: list[str]) -> None:
    """The page has the order of its key, names the order that it leaves out, and the key that would support it."""
    response = large.get(f"{COMPANY}?{question}")
    assert shown(response) == ["Bolt", "Zeta Works", "acme of zetaland"]
    for column in named:
        assert f"the order by {column}" in response.context["cl"].left_out
        assert "A key that supports" in missing_keys(response)[f"the order by {column}"]
    assert "o=" not in response.context["cl"].get_query_string()


def test_unsupported_column_of_a_search_keeps_order_of_key(large: Pages) -> None:
    """The page keeps the results that keys found for the text."""
    response = large.get(f"{COMPANY}?q=Zeta&o=2")
    assert shown(response) == ["Zeta Works"]
    assert "the order by ticker" in response.context["cl"].left_out


@pytest.fixture
def paged(large: Pages, monkeypatch: pytest.MonkeyPatch) -> Pages:
    """Seven companies, three on a page, which are too many to count."""
    monkeypatch.setattr(CompanyAdmin, "list_per_page", 3)
    monkeypatch.setattr(CompanyAdmin, "date_hierarchy", None)
    monkeypatch.setattr(CompanyAdmin, "list_filter", ())
    for name in "CDEF":
        Company.objects.create(name=name)
    return large


def test_pages_of_a_large_list_there_and_back(paged: Pages) -> None:
    """The first page counts no further than the bound; each other is one Query, in both directions."""
    first = paged.get(COMPANY, sends=["Query", "Query"])
    second = paged.get(COMPANY + link(first, "next"), sends=["Query"])
    third = paged.get(COMPANY + link(second, "next"), sends=["Query"])
    back = paged.get(COMPANY + link(third, "prev"), sends=["Query"])
    assert [shown(page) for page in (first, second, third, back)] == [
        ["Bolt", "C", "D"],
        ["E", "F", "Zeta Works"],
        ["acme of zetaland"],
        ["E", "F", "Zeta Works"],
    ]
    assert "1 company on this page" in text_of(third)
    assert 'rel="next"' not in third.content.decode()


@pytest.mark.parametrize("question", ["p=2", "p=999999", "p=-1"])
def test_a_page_by_number_of_a_large_list_leads_back(paged: Pages, question: str) -> None:
    """The rows before the page are not read."""
    assert paged.get(f"{COMPANY}?{question}").headers["Location"] == f"/admin/{COMPANY}?e=1"


@pytest.mark.parametrize("cursor", ["x", "é", "\x00", "x" * 5000, "eyJhIjoxfQ"])
def test_invalid_cursor_leads_to_first_page(paged: Pages, cursor: str) -> None:
    """No rows are read for it."""
    page = paged.client.get(f"/admin/{COMPANY}", {"cursor": cursor})
    assert page.headers["Location"] == f"/admin/{COMPANY}"


def test_cursor_of_another_list_leads_to_first_page(paged: Pages) -> None:
    """A cursor belongs to the list that gave it."""
    Person.objects.create(company=Company.objects.all()[0], name="Mike")
    cursor = Person.objects.cursor_for(Person.objects.all()[0])
    page = paged.client.get(f"/admin/{COMPANY}", {"cursor": cursor})
    assert page.headers["Location"] == f"/admin/{COMPANY}"


def test_a_field_is_searched_as_a_list_is(pages: Pages) -> None:
    """Autocomplete finds words anywhere as well, of one reading, and of a large model what keys find."""
    Company.objects.create(name="acme of zetaland")
    Company.objects.create(name="Zeta")
    asked = "autocomplete/?app_label=directory&model_name=person&field_name=company&term="
    found = pages.get(f"{asked}ZETA", sends=["Query"]).json()["results"]
    assert sorted(each["text"] for each in found) == ["Zeta", "acme of zetaland"]
    company_admin = type(admin.site.get_model_admin(Company))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(company_admin, "list_max_in_memory", 1)
        found = pages.get(f"{asked}Zeta", sends=["Query", "Query"]).json()["results"]
    assert [each["text"] for each in found] == ["Zeta"]


def test_pages_of_what_keys_found(paged: Pages) -> None:
    """The results of a large search use cursors and the order of their key, whatever the admin's order is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CompanyAdmin, "ordering", ("stock",))
        for number in range(5):
            Company.objects.create(name=f"G{number}")
        first = paged.get(f"{COMPANY}?q=G")
        second = paged.get(COMPANY + link(first, "next"), sends=["Query"])
    assert [shown(first), shown(second)] == [["G0", "G1", "G2"], ["G3", "G4"]]


def test_a_filter_without_choices_is_asked_all_the_same(large: Pages) -> None:
    """More companies than a filter offers do not make it void."""
    acme, bolt = Company.objects.all()[:2]
    Person.objects.create(company=acme, name="Mike")
    Person.objects.create(company=bolt, name="Nora")
    assert shown(large.get(f"{PERSON}?company__company_id__exact={acme.pk}")) == ["Mike"]


def test_the_size_of_a_page_is_chosen(paged: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """Links keep the chosen size, and other sizes are ignored."""
    monkeypatch.setattr(CompanyAdmin, "list_page_sizes", (2, 4))
    first = paged.get(f"{COMPANY}?size=4", sends=["Query", "Query"])
    assert shown(first) == ["Bolt", "C", "D", "E"]
    second = paged.get(COMPANY + link(first, "next"), sends=["Query"])
    assert shown(second) == ["F", "Zeta Works", "acme of zetaland"]
    assert re.findall(r'<a href="([^"]*)">(\d)</a>', first.content.decode()) == [("?size=2", "2"), ("?size=3", "3")]
    for size in ("5000", "-1", "x", ""):
        assert len(shown(paged.get(f"{COMPANY}?size={size}"))) == 3


def test_looking_through_keeps_the_filters(large: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """The link omits only the order."""
    monkeypatch.setattr(PersonAdmin, "list_filter", ("company", "created_at"))
    monkeypatch.setattr(PersonAdmin, "search_fields", ("name", "email"))
    for number in range(3):
        Person.objects.create(company=Company.objects.all()[0], name=f"P{number}")
    page = large.get(f"{PERSON}?q=P&o=1").content.decode()
    assert re.search(r'href="\?q=P&amp;scan=[^"&]+"', page)


def test_rows_of_an_uncounted_page_are_edited(paged: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """list_editable saves the rows of a page by cursor: read together, one write and one entry of the log for each."""
    monkeypatch.setattr(CompanyAdmin, "list_editable", ("stock",))
    second = link(paged.get(COMPANY), "next")
    rows = [Company.objects.get(name=name) for name in ("E", "F", "Zeta Works")]
    data = {"form-TOTAL_FORMS": "3", "form-INITIAL_FORMS": "3", "_save": "Save"}
    for number, company in enumerate(rows):
        data |= {f"form-{number}-company_id": company.pk, f"form-{number}-stock": f"S{number}"}
    sends = ["Query", "BatchGetItem", *["UpdateItem", "PutItem"] * 3]
    assert paged.post(COMPANY + second, data, sends=sends).status_code == 302
    assert [Company.objects.get(pk=company.pk).stock for company in rows] == ["S0", "S1", "S2"]


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"form-0-company_id": "company-0"}, 200),
        ({"form-0-company_id": "\x00"}, 200),
        ({"form-0-company_id": ""}, 200),
        ({"form-INITIAL_FORMS": "3", "form-TOTAL_FORMS": "3"}, 200),
        ({"form-TOTAL_FORMS": "x"}, 200),
        ({"form-TOTAL_FORMS": "5000", "form-INITIAL_FORMS": "5000"}, 200),
        ({"form-INITIAL_FORMS": "0"}, 400),
    ],
)
def test_rows_that_no_list_showed_are_not_saved(
    lists: Pages, monkeypatch: pytest.MonkeyPatch, changed: dict[str, str], status: int
) -> None:
    """An invalid form of rows shows its errors or raises one, and does not change a row."""
    monkeypatch.setattr(CompanyAdmin, "list_editable", ("stock",))
    zeta = Company.objects.get(name="Zeta Works")
    data = {"form-TOTAL_FORMS": "1", "form-INITIAL_FORMS": "1", "_save": "Save", "form-0-company_id": zeta.pk}
    assert lists.post(COMPANY, data | {"form-0-stock": "T"} | changed).status_code == status
    assert {company.stock for company in Company.objects.all()} == {"ZW", "ACM", "QZ"}


def test_a_column_of_references_sorts_as_their_objects(lists: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the order of their model, and by an attribute of theirs that a column names: read once, in batches."""
    monkeypatch.setattr(Company._meta, "ordering", ("stock",))
    by_name = admin.display(ordering="company__name")(lambda person: person.company.name)
    monkeypatch.setattr(PersonAdmin, "list_display", ("name", "company", by_name))
    monkeypatch.setattr(PersonAdmin, "list_filter", ())
    for number, company in enumerate(Company.objects.order_by("name")):
        Person.objects.create(company=company, name=str(number))
    sends = ["Query", "BatchGetItem", "BatchGetItem"]
    assert shown(lists.get(f"{PERSON}?o=2", sends=sends)) == ["2", "0", "1"]
    assert shown(lists.get(f"{PERSON}?o=-3", sends=sends)) == ["2", "1", "0"]


@pytest.mark.parametrize("chosen", ["company", ("company", admin.RelatedOnlyFieldListFilter)])
def test_references_are_counted(lists: Pages, monkeypatch: pytest.MonkeyPatch, chosen: Any) -> None:
    """A filter by a reference shows the number of rows for each object."""
    monkeypatch.setattr(PersonAdmin, "list_filter", (chosen,))
    acme, bolt = Company.objects.order_by("-name")[:2]
    for company, name in [(acme, "Mike"), (bolt, "Nora"), (bolt, "Olga")]:
        Person.objects.create(company=company, name=name)
    offered = choices(lists.get(f"{PERSON}?_facets=True"))
    assert "acme of zetaland (1)" in offered
    assert "Zeta Works (2)" in offered


def test_referenced_objects_filter_a_large_list(large: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the limit, Django's filter offers every object of the reference, and the page shows the list."""
    monkeypatch.setattr(PersonAdmin, "list_filter", (("company", admin.RelatedOnlyFieldListFilter),))
    monkeypatch.setattr(PersonAdmin, "list_max_in_memory", 3)
    bolt = Company.objects.get(name="Bolt")
    for number in range(5):
        Person.objects.create(company=bolt, name=f"P{number}")
    page = large.get(PERSON)
    assert len(shown(page)) == 5
    assert "By company All Bolt Zeta Works acme of zetaland" in choices(page)
    assert len(shown(large.get(f"{PERSON}?company__company_id__exact={bolt.pk}"))) == 5


def test_referenced_objects_of_a_longer_list_are_not_offered(large: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """The filter in an address applies all the same."""
    monkeypatch.setattr(PersonAdmin, "list_filter", (("company", admin.RelatedOnlyFieldListFilter),))
    bolt = Company.objects.get(name="Bolt")
    for number in range(5):
        Person.objects.create(company=bolt, name=f"P{number}")
    assert len(shown(large.get(PERSON))) == 5
    assert len(shown(large.get(f"{PERSON}?company__company_id__exact={bolt.pk}"))) == 5


@pytest.mark.parametrize(("chosen", "count"), [("1", 0), ("0", 4)])
def test_empty_values_filter_a_large_list(
    large: Pages, monkeypatch: pytest.MonkeyPatch, chosen: str, count: int
) -> None:
    """Django's filter for empty values shows a step of a scan."""
    monkeypatch.setattr(CompanyAdmin, "list_filter", (("stock", admin.EmptyFieldListFilter),))
    Company.objects.create(name="Extra", stock="E")
    page = large.get(f"{COMPANY}?stock__isempty={chosen}")
    assert "Searched 4 of" in text_of(page)
    assert len(shown(page)) == count


def test_a_large_list_is_searched_by_the_primary_key(large: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """Django's name for the primary key works, and the page shows the attribute's name."""
    monkeypatch.setattr(CompanyAdmin, "search_fields", ("=pk", "stock"))
    bolt = Company.objects.get(name="Bolt")
    page = large.get(f"{COMPANY}?q={bolt.pk}")
    assert shown(page) == ["Bolt"]
    assert "where company id starts with" in text_of(page)
