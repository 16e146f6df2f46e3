"""Documents, sets and numbers in forms are readable and exact, and unchanged ones are not written."""

from __future__ import annotations

import html
import json
from decimal import Decimal
from typing import Any
from unittest import mock

import pytest
from django.contrib.admin.sites import all_sites
from django.test import override_settings
from django.urls import path

from dynamo_single.admin import DynamoAdminSite, DynamoModelAdmin
from dynamo_single.admin.log import LogEntry
from dynamo_single.table import get_table
from tests.catalog.models import Resident, Sample
from tests.contract.admin.test_admin_merging import form_of
from tests.contract.conftest import Pages, text_of

CHANGE = "catalog/sample/one/change/"
FIELDS = ("text", "json", "data", "things", "words", "numbers", "number", "decimal", "moment")

site = DynamoAdminSite()
site.register(Sample, type("SampleAdmin", (DynamoModelAdmin,), {"fields": FIELDS}))
site.register(Resident, DynamoModelAdmin)
all_sites.discard(site)  # the checks look at all of them
urlpatterns = [path("admin/", site.urls)]


def item() -> Any:
    """Return the sample's stored item."""
    table = get_table()
    key = {"pk": {"S": "SAMPLE#one"}, "sk": {"S": "#METADATA"}}
    return table.call("GetItem", {"TableName": table.name, "Key": key, "ConsistentRead": True})["Item"]


def errors_of(answer: Any) -> Any:
    """The errors of the form's fields."""
    return answer.context_data["adminform"].form.errors


EXACT = {
    "json": ["a text", {"deep": [1, Decimal("0.1234567890123456789012345678901234")]}],
    "data": {
        "price": Decimal("0.10000000000000000000000000000000001"),
        "tags": {"b", "a"},
        "key": b"\x00\xff",
        "$dynamodb": {"$dynamodb": "a key like the mark"},
        "none": None,
    },
    "things": [{"ports": {1, 2}}, [], {}, True, 10**37],
    "words": {" spaces ", "two\nlines", '"quoted"', "plain", "\u2028", "ä"},
    "numbers": {10**37 + 1, Decimal("0.12345678901234567890123456789")},
    "number": 10**37 + 1,
    "decimal": Decimal("1234567890.12"),
}


def test_whoever_changes_nothing_changes_nothing(catalog: Pages) -> None:
    """A submission of the unchanged form does not write any attribute."""
    Sample.objects.create(sample_id="one", text="x", **EXACT)
    before = item()
    sent = form_of_text(catalog.get(CHANGE))
    assert catalog.post(CHANGE, sent, sends=["GetItem", "PutItem"]).status_code == 302
    assert item() == before


def form_of_text(answer: Any) -> dict[str, str]:
    """Return a browser's submission of a page's form, with the text of each field."""

    sent = {name: html.unescape(str(value)) for name, value in form_of(answer).items()}
    # A browser skips the first line end of a text area, and submits line ends as two characters.
    return {name: value.replace("\n", "\r\n") for name, value in sent.items()}


@pytest.mark.parametrize("name", sorted({*EXACT} - {"decimal"}))
def test_what_is_shown_is_what_is_stored(catalog: Pages, name: str) -> None:
    """The same text creates the same value in a new object."""
    Sample.objects.create(sample_id="one", **{name: EXACT[name]})
    shown = form_of_text(catalog.get(CHANGE))[name]
    Sample.objects.get(pk="one").delete()
    Sample.objects.create(sample_id="one", text="y")
    assert catalog.post(CHANGE, {name: shown}).status_code == 302
    assert getattr(Sample.objects.get(pk="one"), name) == EXACT[name]


def test_a_document_is_indented(catalog: Pages) -> None:
    """A key a line; the log has it on one."""
    Sample.objects.create(sample_id="one", data={"a": {"b": 1}})
    page = form_of_text(catalog.get(CHANGE))
    assert page["data"].split() == ["{", '"a":', "{", '"b":', "1", "}", "}"]
    assert page["data"].count("\n") == 4
    catalog.post(CHANGE, {"data": '{"a": {"b": 2}}'})
    (entry,) = LogEntry.objects.filter(object_type="catalog.sample", object_id="one")
    assert '{"a": {"b": 1}}' in entry.get_change_message()


def test_a_secret_inside_a_document_is_not_in_the_log(catalog: Pages) -> None:
    """At any depth, before and after."""
    Sample.objects.create(sample_id="one", data={"a": [{"api_key": "old"}]}, things=[{"token": "old"}])
    sent = {"data": '{"a": [{"api_key": "new"}], "b": 1}', "things": '[{"token": "new"}]'}
    assert catalog.post(CHANGE, sent).status_code == 302
    (entry,) = LogEntry.objects.filter(object_type="catalog.sample", object_id="one")
    assert '"b": 1' in entry.get_change_message()
    assert [text for text in ("old", "new") if text in entry.change_message] == []


def test_a_secret_by_its_name_in_the_item_is_not_in_the_log(catalog: Pages) -> None:
    """The log masks it, like the table's pages."""
    person = Resident.objects.create(last_name="Old", room=1)
    with mock.patch.object(site, "is_secret", lambda model, name: name == "lastName"):
        sent = {"last_name": "New", "nickname": "", "room": "2"}
        assert catalog.post(f"catalog/resident/{person.pk}/change/", sent).status_code == 302
    (entry,) = LogEntry.objects.filter(object_type="catalog.resident", object_id=person.pk)
    assert entry.get_change_message().endswith('Last name: from "•••" to "•••"; Room: from "1" to "2".')


def test_who_may_only_look_reads_it_indented(catalog: Pages, staff: Any) -> None:
    """And sets in maps, which Django cannot show."""
    Sample.objects.create(sample_id="one", data={"a": {"b": {"c"}}})
    page = staff("catalog.view_sample").get(CHANGE).content.decode()
    assert "&quot;$dynamodb&quot;: {\n" in page


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("data", '{"a": 1,\n "b": }', "Enter valid JSON: see line 2, column 7."),
        ("data", "[1]", 'Enter an object of JSON, such as {"key": "value"}.'),
        ("things", "{}x", "Enter valid JSON: see line 1, column 3."),
        ("things", '{"a": 1}', "Enter a list of JSON, such as [1, 2]."),
        ("data", '{"a": 1, "a": 2}', 'The key "a" occurs twice in one object.'),
        ("data", '{"a": [NaN]}', "NaN is not a valid JSON number."),
        (
            "data",
            '{"a": [{"$dynamodb": 1}]}',
            "a[0]: a map whose only key is $dynamodb represents a value in DynamoDB's JSON.",
        ),
        (
            "data",
            '{"b": {"$dynamodb": {"B": "AA==!"}}}',
            "b: a map whose only key is $dynamodb represents a value in DynamoDB's JSON.",
        ),
        ("numbers", "1\nx", 'Line 2: "x" is no number.'),
        ("words", 'a\n"b\\"', 'Line 2: "b\\" is not a string in quotation marks. Write its content as in JSON.'),
    ],
)
def test_an_error_says_where(catalog: Pages, name: str, text: str, error: str) -> None:
    """The error contains the line and column or the path, and the input is kept."""
    Sample.objects.create(sample_id="one")
    answer = catalog.post(CHANGE, {name: text})
    assert errors_of(answer) == {name: [error]}
    assert form_of_text(answer)[name].replace("\r\n", "\n").strip() == text.strip()


def test_a_path_names_what_cannot_be_stored(catalog: Pages) -> None:
    """A number of more digits than DynamoDB has."""
    Sample.objects.create(sample_id="one")
    answer = catalog.post(CHANGE, {"data": json.dumps({"a": {"b": [10**40 + 1]}})})
    assert "data.a.b[0]" in str(errors_of(answer)["data"])


def test_attributes_that_the_model_does_not_know_are_shown_and_kept(catalog: Pages) -> None:
    """Another program's attributes are on the page, secrets masked, and in the item after a save."""
    Sample.objects.create(sample_id="one", text="x")
    table = get_table()
    before = {
        **item(),
        "legacyNote": {"S": "<b>old</b>"},
        "legacyMap": {"M": {"n": {"N": "1.5"}, "s": {"SS": ["a"]}, "api_key": {"S": "hidden"}}},
        "legacyPassword": {"S": "hidden"},
    }
    table.call("PutItem", {"TableName": table.name, "Item": before})
    page = catalog.get(CHANGE, sends=["GetItem"])
    assert "Additional stored attributes" in text_of(page)
    further = text_of(page).partition("Additional stored attributes")[2].partition("Save")[0]
    assert [
        text for text in ("legacyNote", "<b>old</b>", "legacyMap", "1.5", "legacyPassword") if text not in further
    ] == []
    assert "hidden" not in further
    assert catalog.post(CHANGE, {**form_of_text(page), "text": "changed"}).status_code == 302
    assert item() == {**before, "text": {"S": "changed"}}


def test_an_object_without_such_attributes_has_no_such_part(catalog: Pages) -> None:
    """The page that adds an object does not have it either."""
    Sample.objects.create(sample_id="one", text="x")
    for page in (CHANGE, "catalog/sample/add/"):
        assert "Additional stored attributes" not in text_of(catalog.get(page))


@pytest.mark.parametrize(
    "kept",
    [
        {"copiesDue": {"SS": ["Card.text"]}},
        {"movedFrom": {"S": "two"}},
        {"counting": {"S": "mark"}},
        {"refs:Card.sample_id": {"N": "1"}},
    ],
    ids=lambda kept: next(iter(kept)),
)
def test_what_the_app_keeps_beside_the_attributes_is_none_of_them(catalog: Pages, kept: Any) -> None:
    """A save keeps these values, and the page does not show them."""
    Sample.objects.create(sample_id="one", text="x")
    table, before = get_table(), {**item(), **kept}
    table.call("PutItem", {"TableName": table.name, "Item": before})
    page = catalog.get(CHANGE)
    assert "Additional stored attributes" not in text_of(page)
    catalog.post(CHANGE, {**form_of_text(page), "text": "changed"})
    assert item() == {**before, "text": {"S": "changed"}}


def test_unknown_attributes_are_nobodys_who_may_not_view(catalog: Pages, staff: Any) -> None:
    """They belong to the object."""
    Sample.objects.create(sample_id="one", text="x")
    assert staff("directory.view_company").get(CHANGE).status_code == 403


def test_the_page_says_in_which_zone_its_times_are(catalog: Pages) -> None:
    """The zone that is active for the request."""
    Sample.objects.create(sample_id="one")
    with override_settings(TIME_ZONE="Europe/Berlin"):
        assert "Times are shown and entered in the time zone Europe/Berlin." in text_of(catalog.get(CHANGE))
    with override_settings(USE_TZ=False):
        assert "Times are shown" not in text_of(catalog.get(CHANGE))


def test_no_style_or_script_is_in_the_page_itself(catalog: Pages) -> None:
    """A content security policy may forbid both."""
    Sample.objects.create(sample_id="one", data={"a": 1})
    page = catalog.get(CHANGE).content.decode()
    assert " style=" not in page
    assert "<style" not in page
    assert "dynamo_single/admin/forms.css" in page
