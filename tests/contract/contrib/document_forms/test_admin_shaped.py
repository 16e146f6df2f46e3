"""A map that has a schema in the admin's forms: a row for each place, and all else as it is."""

from __future__ import annotations

import re
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
from django.contrib.admin.sites import all_sites
from django.urls import path

from dynamo_single.admin import DynamoAdminSite, DynamoModelAdmin
from dynamo_single.admin.log import LogEntry
from tests.catalog.records import Bundle, Treatise
from tests.contract.admin.test_admin_documents import form_of_text
from tests.contract.conftest import Pages, text_of

BUNDLE = "catalog/bundle/"
#: Possible contents of such a map: values of other types were there before the schema.
HELD = [
    {"title": "T", "receiver": {"name": "A"}},
    {"title": " T ", "receiver": {"name": "A", "street": None, "more": {"x": {1, 2}}}, "price": Decimal("2.5")},
    {"title": "T", "receiver": {"name": "A"}, "sent": "2026-01-31", "kind": "big", "stock": 10**37 + 1},
    {"title": "T", "receiver": {"name": "A"}, "other": [], "empty": {}},
]

site = DynamoAdminSite()
site.register(Bundle, type("BundleAdmin", (DynamoModelAdmin,), {}))
site.register(Treatise, type("TreatiseAdmin", (DynamoModelAdmin,), {}))
all_sites.discard(site)  # checks inspect all models, and report an error for this model
urlpatterns = [path("admin/", site.urls)]


def rows(page: Any) -> dict[str, str]:
    """Return the contents of the rows by label."""
    content = page.content.decode()
    sent = form_of_text(page)
    return {
        label: sent.get(f"data_{number}", "")
        for number, label in enumerate(re.findall(r'<label for="id_data_\d+">([^<]*)</label>', content))
    }


def test_each_place_has_a_row_with_its_label(catalog: Pages) -> None:
    """Places of maps within by the names on the way, and one row for all else."""
    bundle = Bundle.objects.create(data={"title": "T", "receiver": {"name": "A"}, "kind": "big", "other": 1})
    found = rows(catalog.get(f"{BUNDLE}{bundle.pk}/change/"))
    assert found["Title"] == "T"
    assert found["Receiver / Name"] == "A"
    assert found["Kind"] == "big"
    assert found["Additional keys, as JSON"].split() == ["{", '"other":', "1", "}"]


@pytest.mark.parametrize("held", HELD)
def test_whoever_changes_nothing_changes_nothing(catalog: Pages, held: Any) -> None:
    """For any map, only the log is written."""
    bundle = Bundle.objects.create(data=held)
    address = f"{BUNDLE}{bundle.pk}/change/"
    assert catalog.post(address, form_of_text(catalog.get(address))).status_code == 302
    found = Bundle.objects.get(pk=bundle.pk)
    assert (found.data, found._stored) == (held, bundle._stored)


@pytest.mark.parametrize("model", [Bundle, Treatise])
def test_the_log_says_that_nothing_has_changed(catalog: Pages, model: Any) -> None:
    """A map that is submitted unchanged is not a changed field, with and without a schema."""
    record = model.objects.create(data={"title": "T", "receiver": {"name": "A"}, "price": Decimal("2.5"), "more": [1]})
    address = f"catalog/{model._meta.model_name}/{record.pk}/change/"
    page = catalog.get(address)
    hidden = re.findall(r'name="(initial-data)" value="([^"]*)"', page.content.decode())
    catalog.post(address, {**form_of_text(page), **{name: unescape(value) for name, value in hidden}})
    (entry,) = LogEntry.objects.filter(object_type=model._meta.label_lower, object_id=record.pk)
    assert entry.get_change_message() == "No fields changed."


def test_a_row_changes_its_place_alone(catalog: Pages) -> None:
    """The schema determines the type; an empty row removes the element."""
    bundle = Bundle.objects.create(
        data={"title": "T", "price": 3, "receiver": {"name": "A", "street": "S"}, "other": {"kept": Decimal("0.10")}}
    )
    address = f"{BUNDLE}{bundle.pk}/change/"
    page = catalog.get(address)
    number = {label: f"data_{place}" for place, label in enumerate(rows(page))}
    sent = {
        **form_of_text(page),
        number["Price"]: "12.25",
        number["Receiver / Street"]: "",
        number["Sent"]: "2026-01-31",
    }
    assert catalog.post(address, sent).status_code == 302
    assert Bundle.objects.get(pk=bundle.pk).data == {
        "title": "T",
        "price": Decimal("12.25"),
        "sent": "2026-01-31",
        "receiver": {"name": "A"},
        "other": {"kept": Decimal("0.10")},
    }


@pytest.mark.parametrize(
    ("label", "text", "message"),
    [
        ("Price", "dear", "Price: Enter a number."),
        ("Price", "1.234", "Price: Ensure that there are no more than 2 decimal places."),
        ("Sent", "soon", "Sent: Enter a valid date."),
        ("Receiver / Name", "", "data__receiver__name: This field must have a value."),
        ("Additional keys, as JSON", "{", "Enter valid JSON: see line 1, column 2."),
    ],
)
def test_an_error_names_its_row(catalog: Pages, label: str, text: str, message: str) -> None:
    """The input is kept."""
    bundle = Bundle.objects.create(data={"title": "T", "receiver": {"name": "A"}})
    address = f"{BUNDLE}{bundle.pk}/change/"
    page = catalog.get(address)
    place = [*rows(page)].index(label)
    answer = catalog.post(address, {**form_of_text(page), f"data_{place}": text})
    assert answer.status_code == 200
    assert message in text_of(answer)
    assert rows(answer)[label].strip() == text


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ('{"title": "Other"}', "Title: the JSON contains another value of title. Remove it from the JSON"),
        (
            '{"receiver": "Bob"}',
            "Receiver / Name: the JSON contains another value of receiver.name. Remove it from the JSON",
        ),
    ],
)
def test_two_values_of_one_place_are_an_error(catalog: Pages, rest: str, message: str) -> None:
    """The page reports the conflict instead of dropping a value silently."""
    page = catalog.get(f"{BUNDLE}add/")
    number = {label: f"data_{place}" for place, label in enumerate(rows(page))}
    values = {number["Title"]: "T", number["Receiver / Name"]: "A", number["Additional keys, as JSON"]: rest}
    answer = catalog.post(f"{BUNDLE}add/", {**form_of_text(page), **values})
    assert message in text_of(answer)


def test_the_same_value_in_a_row_and_in_the_json_is_fine(catalog: Pages) -> None:
    """No value is lost, and null means no value."""
    page = catalog.get(f"{BUNDLE}add/")
    number = {label: f"data_{place}" for place, label in enumerate(rows(page))}
    rest = '{"title": "T", "receiver": null, "price": null}'
    values = {number["Title"]: "T", number["Receiver / Name"]: "A", number["Price"]: "1"}
    sent = {**form_of_text(page), **values, number["Additional keys, as JSON"]: rest}
    assert catalog.post(f"{BUNDLE}add/", sent).status_code == 302
    assert Bundle.objects.get().data == {"title": "T", "receiver": {"name": "A"}, "price": 1}


def test_a_record_is_added_by_its_rows(catalog: Pages) -> None:
    """The empty form has them too."""
    page = catalog.get(f"{BUNDLE}add/")
    number = {label: f"data_{place}" for place, label in enumerate(rows(page))}
    sent = {**form_of_text(page), number["Title"]: "T", number["Receiver / Name"]: "A"}
    assert catalog.post(f"{BUNDLE}add/", sent).status_code == 302
    assert Bundle.objects.get().data == {"title": "T", "receiver": {"name": "A"}}


def test_somebody_elses_change_of_the_map_is_noticed(catalog: Pages) -> None:
    """Any other field behaves the same way."""
    bundle = Bundle.objects.create(data={"title": "T", "receiver": {"name": "A"}})
    address = f"{BUNDLE}{bundle.pk}/change/"
    page = catalog.get(address)
    place = [*rows(page)].index("Title")
    Bundle.objects.filter(pk=bundle.pk).update(data={"title": "Theirs", "receiver": {"name": "A"}})
    answer = catalog.post(address, {**form_of_text(page), f"data_{place}": "Mine"})
    assert "Someone else has changed this to" in text_of(answer)
