"""Requests that no browser sends: a user with permissions never causes a server error."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.test import override_settings
from django.urls import path

from dynamo_single.admin import DynamoAdminSite, DynamoModelAdmin
from project.directory.models import Company
from tests.catalog.models import Sample
from tests.contract.conftest import Pages
from tests.deep import deep

COMPANY = "directory/company/"
SAMPLE = "catalog/sample/"
#: Numbers too large for a count or ``int()``, and strings that are not numbers.
NUMBERS = ["9" * 20, "9" * 5000, "-1", "", "x", "1e400", "٣"]
#: Documents that JSON, Python or DynamoDB end at.
DOCUMENTS = ['{"a":' * 1000 + "1" + "}" * 1000, "[" * 20_000, '{"a": ' + "9" * 5000 + "}"]
#: Values that most fields reject.
VALUES = [
    *NUMBERS,
    *DOCUMENTS,
    "\x00",
    "[" * 1000 + "]" * 1000,
    '{"a": 1e400}',
    "NaN",
    "Infinity",
    "9999-12-31 23:59:59",
    "0001-01-01",
]

EDITABLE = [field.name for field in Sample._meta.concrete_fields if field.editable]

site = DynamoAdminSite()
site.register(Sample, type("SampleAdmin", (DynamoModelAdmin,), {}))
urlpatterns = [path("admin/", site.urls)]


@pytest.mark.parametrize("value", VALUES)
def test_whatever_an_address_gives_a_new_objects_form(catalog: Pages, value: str) -> None:
    """The form shows the valid values of all fields."""
    given = {field.name: value for field in Sample._meta.concrete_fields}
    assert catalog.client.get(f"/admin/{SAMPLE}add/", given).status_code == 200


@deep
@pytest.mark.parametrize("value", VALUES)
def test_whatever_an_address_gives_one_field_of_a_new_objects_form(catalog: Pages, value: str) -> None:
    """The form shows the valid value of each field."""
    for field in Sample._meta.concrete_fields:
        assert catalog.client.get(f"/admin/{SAMPLE}add/", {field.name: value}).status_code == 200


def test_an_address_gives_a_moment(catalog: Pages) -> None:
    """The form shows a datetime from the URL."""
    page = catalog.client.get(f"/admin/{SAMPLE}add/", {"moment": "2026-05-01 10:30"})
    assert 'value="2026-05-01"' in page.content.decode()
    assert 'value="10:30:00"' in page.content.decode()


@pytest.mark.parametrize("page", [f"{COMPANY}?p=", "{pk}/history/?p=", "{pk}/change/?_to_field=", f"{COMPANY}?o="])
def test_whatever_stands_in_an_address(pages: Pages, page: str) -> None:
    """A page that there is not leads back, or to the nearest one."""
    acme = Company.objects.create(name="Acme")
    address = page.format(pk=COMPANY + acme.pk)
    answers = {number: pages.get(address + number).status_code for number in NUMBERS}
    assert {number: status for number, status in answers.items() if status not in {200, 302, 400}} == {}


def test_the_search_of_a_field_has_no_such_page(pages: Pages) -> None:
    """Autocomplete returns a 404 for a missing page, as in Django."""
    asked = "autocomplete/?app_label=directory&model_name=person&field_name=company&term=A&page="
    answers = {page: pages.get(asked + page).status_code for page in ("9" * 20, "9" * 5000, "x", "0", "1")}
    assert answers == {**dict.fromkeys(answers, 404), "1": 200}


def test_a_search_that_no_key_answers_is_a_wrong_request(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only developers see the reason in the response."""
    monkeypatch.setattr(type(admin.site.get_model_admin(Company)), "search_fields", ["nothing"])
    asked = "autocomplete/?app_label=directory&model_name=person&field_name=company&term=A"
    assert (pages.get(asked).status_code, pages.get(asked).content) == (400, b"")
    with override_settings(DEBUG=True):
        assert b"nothing" in pages.get(asked).content


def test_an_address_by_a_content_types_number_leads_nowhere(pages: Pages) -> None:
    """Without SQL there are no such numbers."""
    targets = ["1/x", "9/9", "x/x", "9" * 5000 + "/x", "1/" + "x" * 5000]
    assert [pages.get(f"r/{target}/").status_code for target in targets] == [404] * 5


@pytest.mark.parametrize("document", DOCUMENTS)
@pytest.mark.parametrize("field", ["data", "things", "json"])
def test_a_document_that_is_none_is_the_fields_error(catalog: Pages, field: str, document: str) -> None:
    """The form rejects JSON with a thousand levels, and numbers with thousands of digits."""
    answer = catalog.post(f"{SAMPLE}add/", {field: document})
    assert answer.status_code == 200
    assert field in answer.context_data["adminform"].form.errors
    assert not Sample.objects.all().exists()


def test_json_is_as_deep_as_it_can_be_read_again(catalog: Pages) -> None:
    """The page can show any JSON that the form stores, and one more level is a field error."""
    assert catalog.post(f"{SAMPLE}add/", {"json": "[" * 200 + "]" * 200}).status_code == 302
    (stored,) = Sample.objects.all()
    assert catalog.get(f"{SAMPLE}{stored.pk}/change/").status_code == 200
    refused = catalog.post(f"{SAMPLE}add/", {"json": "[" * 201 + "]" * 201})
    assert "200 levels" in str(refused.context_data["adminform"].form.errors["json"])


@override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=None)  # some values are large, and here they come often
@pytest.mark.parametrize("value", VALUES)
def test_whatever_stands_in_all_fields_of_a_form(catalog: Pages, value: str) -> None:
    """Each field rejects it in the form; valid values of the others are stored together and shown again."""
    refused: set[str] = set()
    while taken := [name for name in EDITABLE if name not in refused]:
        form = {f"{name}{part}": value for name in taken for part in ("", "_0", "_1")}
        answer = catalog.post(f"{SAMPLE}add/", form)
        if answer.status_code == 302:
            break
        assert answer.status_code == 200
        found = {*answer.context_data["adminform"].form.errors}
        assert found & {*taken}
        refused |= found
    for sample in Sample.objects.all():
        assert catalog.get(f"{SAMPLE}{sample.pk}/change/").status_code == 200


@deep
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("field", EDITABLE)
def test_whatever_stands_in_a_form(catalog: Pages, field: str, value: str) -> None:
    """The form rejects it, or stores it and shows it again."""
    answer = catalog.post(f"{SAMPLE}add/", {field: value, f"{field}_0": value, f"{field}_1": value})
    assert answer.status_code in {200, 302}
    for sample in Sample.objects.all():
        assert catalog.get(f"{SAMPLE}{sample.pk}/change/").status_code == 200
