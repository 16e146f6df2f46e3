"""The explorer of items: keys as forms, conditions on sort keys, filters, typed values and downloads."""

from __future__ import annotations

import csv
import datetime
import io
import json
from collections.abc import Iterator
from types import ModuleType
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.admin.sites import all_sites
from django.contrib.auth import get_user_model
from django.urls import clear_url_caches, path

from dynamo_single import models
from dynamo_single.admin import DynamoAdminSite
from dynamo_single.contrib.table_admin import table_reads
from dynamo_single.contrib.table_admin.explorer import downloads
from dynamo_single.table import Request, Table
from dynamo_single.testing import setup_table
from project.directory.models import Company, Person
from tests.contract.adoption.conftest import ADOPTED, adopted_table
from tests.contract.conftest import Pages, Registering, text_of
from tests.unit.declaring import declare, forgotten

TABLE = "dynamo_single.view_table"
NAMES = ("Anna", "Berta", "Bertram", "Carla")


def opened(pages: Pages, sends: Any = None, **asked: Any) -> Any:
    """The page of a query."""
    return pages.get(f"dynamodb/table/?{urlencode(asked, doseq=True)}", sends=sends)


def sorts(shown: Any) -> list[str]:
    """The sort keys of the rows."""
    return [row.sort for row in shown.context["rows"]]


def downloaded(pages: Pages, **asked: Any) -> Any:
    """The file of a query."""
    return pages.get(f"dynamodb/table/download/?{urlencode(asked, doseq=True)}")


@pytest.fixture
def people(table: Table) -> list[Any]:
    """Four people of one company."""
    company = Company.objects.create(company_id="acme", name="Acme")
    return [Person.objects.create(company=company, person_id=name.lower(), name=name) for name in NAMES]


BY_NAME = {"key": "directory.person.by_name"}


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ({}, NAMES),
        ({"v_name": "Berta"}, ["Berta"]),
        ({"v_name": "Bert", "op": "begins"}, ["Berta", "Bertram"]),
        ({"v_name": "Berta", "op": "lt"}, ["Anna"]),
        ({"v_name": "Berta", "op": "le"}, ["Anna", "Berta"]),
        ({"v_name": "Berta", "op": "gt"}, ["Bertram", "Carla"]),
        ({"v_name": "Berta", "op": "ge"}, ["Berta", "Bertram", "Carla"]),
        ({"v_name": "Berta", "to": "Bertram", "op": "between"}, ["Berta", "Bertram"]),
        ({"v_name": "Berta", "v_person_id": "berta"}, ["Berta"]),
        ({"v_name": "Berta", "v_person_id": "c", "op": "ge"}, []),
    ],
)
def test_key_form_reads_as_its_queryset(pages: Pages, people: Any, asked: Any, names: Any) -> None:
    """A single Query is enough; the copied code returns the same objects with the same key."""
    shown = opened(pages, ["Query"], **BY_NAME, **asked)
    queryset = eval(shown.context["queryset"], {"Person": Person})  # noqa: S307 - a text of our own page
    assert [row.item.visible["name"]["S"] for row in shown.context["rows"]] == [*names]
    assert sorted(person.name for person in queryset) == sorted(names)
    assert queryset._plan().index == "gs2"


def test_primary_key_form_excludes_other_models(pages: Pages, people: Any) -> None:
    """The collection of a model in a partition; a link leads to all of it."""
    shown = opened(pages, ["Query"], key="directory.person.primary", v_company_id="acme")
    assert {row.item.item_type for row in shown.context["rows"]} == {"Person"}
    whole = pages.get(f"dynamodb/table/{shown.context['whole_url']}", sends=["Query"])
    assert {row.item.item_type for row in whole.context["rows"]} == {"Company", "Person"}


def test_key_form_without_values_reads_nothing(pages: Pages, people: Any) -> None:
    """The form requires the partition's variables."""
    shown = opened(pages, [], key="directory.person.primary")
    assert [field.name for field in shown.context["fields"]] == ["company_id", "person_id"]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"v_person_id": "x"}, "Enter a value for name too"),
        ({"v_name": "B", "to": "A", "op": "between"}, "The range ends before it starts"),
    ],
)
def test_key_form_names_its_mistakes(pages: Pages, people: Any, asked: Any, expected: str) -> None:
    shown = opened(pages, [], **BY_NAME, **asked)
    assert shown.status_code == 200
    assert expected in shown.context["error"]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"sort": "PEOPLE#berta"}, ["berta"]),
        ({"sort": "PEOPLE#bert", "op": "begins"}, ["berta", "bertram"]),
        ({"sort": "PEOPLE#berta", "op": "gt"}, ["bertram", "carla"]),
        ({"sort": "PEOPLE#a", "to": "PEOPLE#berta", "op": "between"}, ["anna", "berta"]),
    ],
)
def test_stored_sort_keys_are_compared(pages: Pages, people: Any, asked: Any, found: list[str]) -> None:
    shown = opened(pages, ["Query"], pk="COMPANY#acme", **asked)
    assert sorts(shown) == [f"PEOPLE#{name}" for name in found]


@pytest.mark.parametrize(
    ("name", "operator", "value", "count"),
    [
        ("name", "eq", "Berta", 1),
        ("name", "ne", "Berta", 4),
        ("name", "contains", "rt", 2),
        ("name", "begins", "Bert", 2),
        ("stock", "exists", "", 0),
        ("person_id", "missing", "", 1),
        ("publicly traded", "missing", "", 5),
        ("public", "eq", "false", 1),
        ("createdAt", "ge", "2001-01-01", 5),
        ("createdAt", "lt", "2001-01-01T10:00:00", 0),
        ("createdAt", "gt", "1", 5),
        ("createdAt", "gt", "words", 0),
        ("name", "eq", "2001-02-31", 0),
    ],
)
def test_filters_compare_shown_values(
    pages: Pages, people: Any, name: str, operator: str, value: str, count: int
) -> None:
    """Numbers as numbers, and datetimes also by dates."""
    shown = opened(pages, ["Query"], pk="COMPANY#acme", f=name, fop=operator, fv=value)
    assert len(shown.context["rows"]) == count


def test_paths_lead_into_maps(pages: Pages, table: Table) -> None:
    item = {"pk": {"S": "A"}, "sk": {"S": "1"}, "at": {"M": {"city": {"S": "Ghent"}, "token": {"S": "abc"}}}}
    table.send(Request("PutItem", {"Item": item}))
    found = [
        len(opened(pages, pk="A", f=f"at.{name}", fv=value).context["rows"])
        for name, value in (("city", "Ghent"), ("city", "Gent"), ("token", "abc"), ("token", "•••"))
    ]
    assert found == [1, 0, 0, 0]


@pytest.mark.parametrize("operator", ["eq", "ne", "begins", "contains", "gt", "exists", "missing"])
def test_masked_attributes_meet_no_filter(pages: Pages, operator: str) -> None:
    """This includes filters by the mask, by the value, and by absence."""
    user: Any = get_user_model()._default_manager.get(username="admin")
    for value in (user.password, "•••", ""):
        shown = opened(pages, pk=f"USER#{user.pk}", f="password", fop=operator, fv=value)
        assert [row for row in shown.context["rows"] if row.item.item_type == "User"] == []


def test_filtered_pages_read_within_the_budget(pages: Pages, people: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next page continues after the last item read."""
    monkeypatch.setattr(table_reads, "_FILTERED_STEP", 1)
    monkeypatch.setattr(table_reads, "BUDGET", 3)
    shown = opened(pages, ["Query"] * 3, pk="COMPANY#acme", f="name", fv="Carla")
    assert (shown.context["rows"], shown.context["page"].read) == ([], 3)
    rest = pages.get(f"dynamodb/table/{shown.context['next_url']}", sends=["Query"] * 3)
    assert sorts(rest) == ["PEOPLE#carla"]


def test_full_filtered_page_continues_within_a_response(
    pages: Pages, people: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next page continues after the last shown item, in the middle of a response; each item is shown once."""
    monkeypatch.setattr(table_reads, "PAGE", 2)
    first = opened(pages, ["Query"], **BY_NAME, f="name", fop="contains", fv="a")
    second = pages.get(f"dynamodb/table/{first.context['next_url']}", sends=["Query"])
    names = [row.item.visible["name"]["S"] for shown in (first, second) for row in shown.context["rows"]]
    assert (names, second.context["next_url"]) == ([*NAMES], "")


def test_moments_are_dates_beside_their_number(pages: Pages, people: Any, settings: Any) -> None:
    settings.TIME_ZONE = "UTC"
    moment = datetime.datetime(2026, 12, 22, 10, tzinfo=datetime.UTC)
    Person.objects.filter(pk=people[0].pk).update(created_at=moment)
    shown = text_of(opened(pages, pk="COMPANY#acme", sort="PEOPLE#anna"))
    assert "Dec. 22, 2026, 10 a.m. 1797933600000" in shown


def test_raw_view_has_the_stored_items(pages: Pages, people: Any) -> None:
    shown = opened(pages, ["Query"], pk="COMPANY#acme", view="raw")
    assert '"name": {"S": "Carla"}' in text_of(shown)


def test_item_page_copies_its_object_as_queryset(pages: Pages, people: Any) -> None:
    shown = pages.get(f"dynamodb/item/?{urlencode({'pk': 'COMPANY#acme', 'sk': 'PEOPLE#anna'})}", sends=["GetItem"])
    assert eval(shown.context["queryset"], {"Person": Person}) == people[0]  # noqa: S307


def test_items_without_model_are_marked_read_only(pages: Pages, table: Table) -> None:
    table.send(Request("PutItem", {"Item": {"pk": {"S": "A"}, "sk": {"S": "1"}, "expiresAt": {"N": "1797933600"}}}))
    text = text_of(pages.get("dynamodb/item/?pk=A&sk=1"))
    assert "This item has no model, so it is read-only." in text
    assert "Dec. 22, 2026" in text


# secrets


@pytest.fixture
def with_secret_ids(pages: Pages, settings: Any) -> Iterator[Pages]:
    """A site on which the identifiers of people are secrets."""

    class SecretSite(DynamoAdminSite):
        def is_secret(self, model: Any, name: str) -> bool:
            return (model is Person and name == "person_id") or super().is_secret(model, name)

    site = SecretSite()
    all_sites.discard(site)
    urls: Any = ModuleType("urls")
    urls.urlpatterns = [path("admin/", site.urls)]
    settings.ROOT_URLCONF = urls
    yield pages
    clear_url_caches()


@pytest.mark.parametrize("operator", ["eq", "lt", "le", "gt", "ge", "begins", "between"])
def test_secret_sort_keys_are_not_compared(with_secret_ids: Pages, people: Any, operator: str) -> None:
    """A comparison would reveal the secret letter by letter, so no request is sent."""
    shown = opened(with_secret_ids, [], pk="COMPANY#acme", sort="PEOPLE#a", to="PEOPLE#b", op=operator)
    assert shown.status_code == 400


def test_text_before_a_secret_is_compared(with_secret_ids: Pages, people: Any) -> None:
    shown = opened(with_secret_ids, ["Query"], pk="COMPANY#acme", sort="PEOPLE#", op="begins")
    assert sorts(shown) == ["PEOPLE#•••"] * 4


def test_keys_with_secrets_have_no_form(with_secret_ids: Pages, people: Any) -> None:
    assert opened(with_secret_ids, [], key="directory.person.primary", v_company_id="acme").status_code == 400
    assert "directory.person.primary" not in opened(with_secret_ids).content.decode()


def test_hidden_models_have_no_form(staff: Any, people: Any) -> None:
    pages = staff(TABLE, "directory.view_company")
    assert opened(pages, [], **BY_NAME).status_code == 400
    assert "directory.person." not in opened(pages).content.decode()


# downloads


def rows_of(response: Any) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    return list(csv.DictReader(io.StringIO(response.content.decode(), newline="")))


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t"])
def test_csv_quotes_formulas(pages: Pages, table: Table, begin: str) -> None:
    """This includes strings and names, but no negative numbers."""
    item = {"pk": {"S": "A"}, "sk": {"S": "1"}, "text": {"S": f"{begin}1+1"}, f"{begin}n": {"N": "-5"}}
    table.send(Request("PutItem", {"Item": item}))
    (row,) = rows_of(downloaded(pages, pk="A"))
    assert (row["text"], row[f"'{begin}n"]) == (f"'{begin}1+1", "-5")


def test_downloads_are_filtered_and_in_order(pages: Pages, people: Any) -> None:
    response = downloaded(pages, **BY_NAME, f="name", fop="contains", fv="ert", order="newest")
    assert [row["name"] for row in rows_of(response)] == ["Bertram", "Berta"]
    assert response["Content-Disposition"] == 'attachment; filename="items.csv"'


def test_json_lines_have_the_stored_values(pages: Pages, people: Any) -> None:
    response = downloaded(pages, pk="COMPANY#acme", format="jsonl")
    lines = [json.loads(line) for line in response.content.decode().splitlines()]
    assert [line.get("name") for line in lines[1:]] == [{"S": name} for name in NAMES]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_masked_attributes_are_not_downloaded(pages: Pages, form: str) -> None:
    user: Any = get_user_model()._default_manager.get(username="admin")
    text = downloaded(pages, pk=f"USER#{user.pk}", format=form).content.decode()
    assert "admin@example.com" in text
    assert user.password not in text
    assert "password" not in text


def test_large_downloads_are_cut_and_named_so(pages: Pages, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Query for each megabyte, until the bound in bytes."""
    monkeypatch.setattr(downloads, "MAX_BYTES", 1_500_000)
    for number in range(9):
        item = {"pk": {"S": "A"}, "sk": {"S": str(number)}, "text": {"S": "x" * 390_000}}
        table.send(Request("PutItem", {"Item": item}))
    response = pages.get("dynamodb/table/download/?pk=A&format=jsonl", sends=["Query", "Query"])
    assert 'filename="items-incomplete.jsonl"' in response["Content-Disposition"]
    assert 1_500_000 < len(response.content) < 3_000_000


def test_downloads_leave_hidden_models_out(staff: Any, people: Any) -> None:
    pages = staff(TABLE, "directory.view_company")
    assert "Anna" not in downloaded(pages, pk="COMPANY#acme").content.decode()
    assert "Acme" in downloaded(pages, pk="COMPANY#acme").content.decode()


# tables with names of their own


@pytest.fixture
def stops(table: Table) -> Iterator[Any]:
    """Return a model in an adopted table. The table is declared before the site and for longer."""
    shape = {
        "PARTITION_KEY": "PK",
        "SORT_KEY": "Number:N",
        "TYPE_ATTRIBUTE": "_kind",
        "INDEXES": {"gs1": {"name": "ByTown", "partition": "Town", "sort": "Number:N"}},
        "RAW_KEYS": True,
    }
    with adopted_table(**shape) as alias, forgotten():
        setup_table(alias)
        yield declare(
            "Stop",
            ("LINE#{line}", "{number}"),
            {"by_town": models.IndexKey("gs1", "{town}", "{number}")},
            options={"table": ADOPTED},
            line=models.UnicodeAttribute(),
            number=models.IntegerAttribute(attr_name="Number"),
            town=models.UnicodeAttribute(attr_name="Town"),
        )


def test_adopted_tables_show_their_own_names(stops: Any, registered: Registering) -> None:
    """This includes names of keys, the type and the index; numbers are shown and entered as numbers."""
    for number in (5, -7, 12):
        stops.objects.create(line="a", number=number, town="Ghent")
    pages = registered(stops)
    shown = opened(pages, ["Query"], alias=ADOPTED, pk="LINE#a", sort="0", op="gt")
    assert sorts(shown) == ["5", "12"]
    item = pages.client.get(shown.context["rows"][0].url)
    stored = json.loads(item.context["item"].text)
    assert {"PK": {"S": "LINE#a"}, "Number": {"N": "5"}, "Town": {"S": "Ghent"}}.items() <= stored.items()
    assert not stored.keys() & {"pk", "sk", "gs1pk", "gs1sk", "itemType"}
    assert "ByTown" in text_of(item)
    url, parts = item.context["keys"][1][3:]
    assert [part[:2] for part in parts] == [("Town", "Ghent"), ("Number", "5")]
    assert sorts(pages.client.get(url)) == ["-7", "5", "12"]
    assert opened(pages, [], alias=ADOPTED, pk="LINE#a", sort="five").status_code == 400


# hostile addresses


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("key=nothing", 400),
        ("key=%00", 400),
        ("pk=a&op=drop", 400),
        ("pk=a&sort=b&to=a&op=between", 200),
        (f"pk=a&sort={'x' * 1025}", 400),
        ("pk=a&" + "&".join(["f=a"] * 6), 400),
        (f"pk=a&f={'x' * 1025}", 400),
        ("pk=a&f=a&fop=drop", 400),
        ("pk=a&f=a.b.c&fop=gt&fv=NaN", 200),
        ("pk=a&f=a&fop=gt&fv=9999-12-31T23:59:59-23:59", 200),
        ("begins=a&f=a&view=raw&order=newest", 200),
        ("key=directory.person.by_id&v_person_id=" + "x" * 2048, 200),
        ("key=directory.person.by_id&v_person_id=a~~b%23", 200),
        ("key=directory.person.by_id&v_other=1", 200),
        ("key=directory.company.primary&v_company_id=%00&op=begins", 200),
    ],
)
def test_hostile_queries_are_never_server_errors(pages: Pages, people: Any, query: str, status: int) -> None:
    assert pages.get(f"dynamodb/table/?{query}").status_code == status
    assert pages.get(f"dynamodb/table/download/?{query}&format=csv").status_code in (200, 400)
