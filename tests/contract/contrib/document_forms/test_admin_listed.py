"""Lists with declared elements in the admin's forms: a row per element, and everything else unchanged."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.admin.sites import all_sites
from django.urls import path

from dynamo_single.admin import DynamoAdminSite, DynamoModelAdmin, DynamoStackedInline, DynamoTabularInline
from dynamo_single.admin.log import LogEntry
from tests.catalog.records import Receipt, Slip, Till
from tests.contract.admin.test_admin_documents import form_of_text
from tests.contract.conftest import Pages, text_of

CHANGE = "catalog/receipt/r/change/"
TEA, JAM = {"name": "Tea", "price": Decimal("1.5")}, {"name": "Jam", "colour": {"red": [1]}, "marks": ["a", "b"]}
#: Possible contents of such attributes: values of other types were there before the declaration.
HELD: list[dict[str, Any]] = [
    {},
    {"lines": [TEA, JAM], "points": [1, Decimal("2.5"), 10**37 + 1], "other": [1]},
    {"lines": [{"name": " Tea\nJam ", "price": 1}], "points": []},
    {"data": {"note": "N", "steps": [TEA, JAM], "more": [1]}},
    {"data": {"steps": []}},
]

site = DynamoAdminSite()
site.register(Receipt, type("ReceiptAdmin", (DynamoModelAdmin,), {}))
inlines = [type("SlipInline", (base,), {"model": Slip}) for base in (DynamoTabularInline, DynamoStackedInline)]
site.register(Till, type("TillAdmin", (DynamoModelAdmin,), {"inlines": inlines}))
all_sites.discard(site)  # the checks look at all of them
urlpatterns = [path("admin/", site.urls)]


def receipt(**given: Any) -> Any:
    """A stored one."""
    return Receipt.objects.create(receipt_id="r", **given)


def sent(catalog: Pages, **changed: str) -> Any:
    """Return a submission of the shown form with some changed inputs; ``lines__0__remove`` is ``lines.0.remove``."""
    page = form_of_text(catalog.get(CHANGE))
    given = {name.replace("__", "."): text for name, text in changed.items()}
    assert not {name for name in given if name not in page and not name.endswith("remove")}
    return catalog.post(CHANGE, {**page, **given})


def lines(**given: Any) -> Any:
    """Return the stored lines."""
    return Receipt.objects.get(pk="r").lines


@pytest.mark.parametrize("held", HELD)
def test_whoever_changes_nothing_changes_nothing(catalog: Pages, held: Any) -> None:
    """This includes any list, and the log names no field."""
    before = receipt(**held)
    assert sent(catalog).status_code == 302
    assert Receipt.objects.get(pk="r")._stored == before._stored
    (entry,) = LogEntry.objects.filter(object_type="catalog.receipt", object_id="r")
    assert entry.get_change_message() == "No fields changed."


@pytest.mark.parametrize(
    "held", [{"lines": ["old", TEA]}, {"points": [1, "two"]}, {"points": list(range(300))}, {"data": {"steps": [1]}}]
)
def test_what_rows_cannot_show_is_shown_as_json_and_stays(catalog: Pages, held: Any) -> None:
    """A stored list of other elements than the declared ones, or of very many."""
    receipt(**{name: [] if name != "data" else {} for name in held})
    (name,) = held
    item = Receipt.objects.get(pk="r")
    attribute = Receipt._meta.get_field(name).attribute
    shape, attribute.shape = attribute.shape, None
    try:
        setattr(item, name, held[name])
        item.save()
    finally:
        attribute.shape = shape
    page = catalog.get(CHANGE)
    assert ("This list cannot be shown as rows" in text_of(page)) == (name != "data")
    assert catalog.post(CHANGE, {**form_of_text(page), "other": "[5]"}).status_code == (
        302 if len(held[name]) == 300 else 200
    )
    assert getattr(Receipt.objects.get(pk="r"), name) == held[name]


def test_an_element_has_a_row_with_inputs_by_its_types(catalog: Pages) -> None:
    """Undeclared parts of it are JSON next to them."""
    receipt(lines=[TEA, JAM], points=[7])
    page = form_of_text(catalog.get(CHANGE))
    assert [page[f"lines.0_{number}"] for number in (0, 1)] == ["Tea", "1.50"]
    assert [page[name] for name in ("lines.1_2.0", "lines.1_2.1")] == ["a", "b"]
    assert page["lines.1_3"].split() == ["{", '"colour":', "{", '"red":', "[", "1", "]", "}", "}"]
    assert [page[name] for name in ("points.0", "points.0.position", "points.1", "points.count")] == ["7", "1", "", "4"]


def test_a_row_changes_its_element_alone(catalog: Pages) -> None:
    """The schema determines the type."""
    receipt(lines=[TEA, JAM])
    assert sent(catalog, lines__0_1="2.25", lines__1_2__0="c").status_code == 302
    assert lines() == [{"name": "Tea", "price": Decimal("2.25")}, {**JAM, "marks": ["c", "b"]}]


def test_a_row_that_is_filled_in_is_added_at_the_end(catalog: Pages) -> None:
    """The other empty rows are ignored."""
    receipt(lines=[TEA])
    assert sent(catalog, lines__2_0="New").status_code == 302
    assert lines() == [TEA, {"name": "New"}]


def test_a_row_is_removed(catalog: Pages) -> None:
    """By its box, whatever it holds."""
    receipt(lines=[TEA, JAM])
    assert sent(catalog, lines__0__remove="on", lines__0_1="dear").status_code == 302
    assert lines() == [JAM]


def test_the_last_row_is_removed(catalog: Pages) -> None:
    """An empty list remains, or no value if the attribute is optional."""
    receipt(lines=[TEA], points=[1])
    assert sent(catalog, lines__0__remove="on", points__0__remove="on").status_code == 302
    found = Receipt.objects.get(pk="r")
    assert (found.lines, found.points) == ([], None)


@pytest.mark.parametrize(
    ("row", "place", "order"),
    [(2, "1", [3, 1, 2]), (0, "3", [2, 3, 1]), (0, "2", [2, 1, 3]), (1, "", [1, 3, 2]), (0, "99999", [2, 3, 1])],
)
def test_a_row_is_moved_to_the_place_that_is_typed(catalog: Pages, row: int, place: str, order: list[int]) -> None:
    """The others keep their order."""
    receipt(points=[1, 2, 3])
    assert sent(catalog, **{f"points__{row}__position": place}).status_code == 302
    assert Receipt.objects.get(pk="r").points == order


def test_a_new_row_goes_to_its_place(catalog: Pages) -> None:
    """The new row comes before the existing rows."""
    receipt(points=[1, 2, 3])
    assert sent(catalog, points__3="9", points__3__position="2").status_code == 302
    assert Receipt.objects.get(pk="r").points == [1, 9, 2, 3]


def test_lists_within_a_map_have_rows_too(catalog: Pages) -> None:
    """And all else of the map stays."""
    receipt(data={"steps": [TEA], "more": 1})
    assert sent(catalog, data_1__0_0="Coffee", data_1__1_0="Jam").status_code == 302
    assert Receipt.objects.get(pk="r").data == {"steps": [{**TEA, "name": "Coffee"}, {"name": "Jam"}], "more": 1}


#: An input, and its error message.
WRONG: list[tuple[dict[str, str], str]] = [
    ({"lines__1_1": "dear"}, "Row 2: Price: Enter a number."),
    ({"lines__1_0": ""}, "Row 2: Name: This field is required."),
    ({"lines__2_1": "3"}, "Row 3: Name: This field is required."),
    ({"lines__1_3": "{"}, "Row 2: Enter valid JSON: see line 1, column 2."),
    ({"lines__1_3": '{"name": "Other"}'}, "Row 2: Name: the JSON contains another value of name."),
    ({"lines__0__position": "first"}, "Row 1: Enter the position of the row as an integer."),
    ({"lines__json": "[1]"}, "The JSON contains a different list than the rows."),
    ({"lines__json": "{}"}, "Enter a list of JSON, such as [1, 2]."),
    ({"points__0": "-1"}, "Row 1: Ensure this value is greater than or equal to 0."),
    ({"points__0": "many"}, "Row 1: Enter a number."),
    ({"data_1__0_1": "dear"}, "Steps: Row 1: Price: Enter a number."),
    ({"lines__count": "many"}, "The rows of this list arrived incomplete."),
    ({"lines__count": "-1"}, "The rows of this list arrived incomplete."),
    ({"lines__count": "99999999999"}, "The rows of this list arrived incomplete."),
]


def test_an_error_names_its_row(catalog: Pages) -> None:
    """The page keeps the input, and does not save the object."""
    before = receipt(lines=[TEA, JAM], points=[1], data={"steps": [TEA]})
    page = form_of_text(catalog.get(CHANGE))
    for changed, message in WRONG:
        given = {name.replace("__", "."): text for name, text in changed.items()}
        assert given.keys() <= page.keys()
        answer = catalog.post(CHANGE, {**page, **given})
        assert answer.status_code == 200, changed
        assert message in text_of(answer), changed
        again = form_of_text(answer)
        assert {name: again[name].strip() for name in given if "count" not in name} == {
            name: text for name, text in given.items() if "count" not in name
        }
        assert Receipt.objects.get(pk="r")._stored == before._stored, changed


def test_a_list_is_sent_as_one_text(catalog: Pages) -> None:
    """A map is submitted the same way."""
    receipt(lines=[TEA])
    assert catalog.post(CHANGE, {"lines": '[{"name": "Jam"}]', "data": "{}"}).status_code == 302
    assert lines() == [{"name": "Jam"}]


@pytest.mark.parametrize("typed", ["[]", "null"])
def test_an_empty_list_that_is_typed_beside_rows_is_an_error(catalog: Pages, typed: str) -> None:
    """This applies to any list: otherwise, the rows would stay silently."""
    receipt(points=[1, 2])
    answer = sent(catalog, points__json=typed)
    assert "The JSON contains a different list than the rows." in text_of(answer)
    assert Receipt.objects.get(pk="r").points == [1, 2]


def test_a_list_that_is_stored_empty_gets_rows(catalog: Pages) -> None:
    """Its JSON is shown next to them."""
    receipt(points=[])
    assert sent(catalog, points__0="3").status_code == 302
    assert Receipt.objects.get(pk="r").points == [3]


def test_an_object_is_added_by_its_rows(catalog: Pages) -> None:
    """The empty form has some."""
    page = form_of_text(catalog.get("catalog/receipt/add/"))
    filled = {"receipt_id": "r", "lines.0_0": "Tea", "lines.1_0": "Jam", "points.2": "5"}
    assert catalog.post("catalog/receipt/add/", {**page, **filled}).status_code == 302
    found = Receipt.objects.get(pk="r")
    assert (found.lines, found.points) == ([{"name": "Tea"}, {"name": "Jam"}], [5])


def test_every_input_has_a_label_and_there_is_no_script_in_it(catalog: Pages) -> None:
    """Each row is a group with its number; stored markup is text."""
    receipt(lines=[{"name": "<script>x</script>"}], points=[1])
    content = catalog.get(CHANGE).content.decode()
    part = content[content.index('class="dynamo-list"') : content.index("submit-row")]
    labelled = {*re.findall(r'<label for="([^"]*)"', part)}
    for tag in re.findall(r"<(?:input|select|textarea) [^>]*>", part):
        known = dict(re.findall(r'([\w-]+)="([^"]*)"', tag))
        assert known.get("type") == "hidden" or known["id"] in labelled or "aria-label" in known, tag
    assert "<script>x" not in content
    assert not re.search(r'<script|style="|\son\w+="', part)


def test_somebody_elses_change_of_the_list_is_noticed(catalog: Pages) -> None:
    """A list that only the other user has changed is updated as rows, like any field."""
    receipt(lines=[TEA], points=[1], data={"steps": [JAM]})
    page = form_of_text(catalog.get(CHANGE))
    Receipt.objects.filter(pk="r").update(lines=[TEA, JAM], points=[1, 2], data={"steps": [TEA]})
    answer = catalog.post(CHANGE, {**page, "points.0": "5"})
    assert text_of(answer).count("Someone else has changed this to") == 3
    again = form_of_text(answer)
    assert (again["points.0"], again["lines.1_0"], again["data_1.0_0"]) == ("5", "Jam", "Tea")
    assert catalog.post(CHANGE, again).status_code == 302
    found = Receipt.objects.get(pk="r")
    assert (found.lines, found.points, found.data) == ([TEA, JAM], [5], {"steps": [TEA]})


def test_who_may_only_look_sees_json(catalog: Pages, staff: Any) -> None:
    """Other documents are shown the same way."""
    receipt(lines=[TEA])
    found = staff("catalog.view_receipt").get(CHANGE)
    assert '"name": "Tea"' in text_of(found)
    assert "lines.count" not in found.content.decode()


@pytest.mark.parametrize("number", [0, 1])
def test_the_rows_of_an_inline_have_them_too(catalog: Pages, number: int) -> None:
    """This includes existing and added children; untouched ones are not written."""
    till = Till.objects.create(till_id="t")
    one = Slip.objects.create(till=till, slip_id="one", lines=[TEA], data={"steps": [JAM], "more": 1})
    two = Slip.objects.create(till=till, slip_id="two", lines=[])
    address = "catalog/till/t/change/"
    page = catalog.get(address)
    prefix = "slip_set" if number == 0 else "slip_set-2"
    given = {**form_of_text(page), f"{prefix}-0-lines.0_0": "Coffee", f"{prefix}-0-data_1.1_0": "More"}
    answer = catalog.post(address, given)
    assert answer.status_code == 302, text_of(answer)
    found = Slip.objects.get(pk=one.pk)
    assert (found.lines, found.data) == ([{**TEA, "name": "Coffee"}], {"steps": [JAM, {"name": "More"}], "more": 1})
    assert Slip.objects.get(pk=two.pk)._stored == two._stored


def test_an_empty_row_of_an_inline_adds_nothing(catalog: Pages) -> None:
    """Its lists and maps are unchanged; a row with input is added."""
    Till.objects.create(till_id="t")
    address = "catalog/till/t/change/"
    page = form_of_text(catalog.get(address))
    more = {name.replace("__prefix__", "0"): text for name, text in page.items() if name.startswith("slip_set-__pre")}
    given = {**page, **more, "slip_set-TOTAL_FORMS": "1"}
    assert catalog.post(address, given).status_code == 302
    assert not Slip.objects.filter(till="t").exists()
    catalog.post(address, {**given, "slip_set-0-slip_id": "s", "slip_set-0-lines.0_0": "Tea"})
    assert Slip.objects.filter(till="t").get().lines == [{"name": "Tea"}]


def test_an_empty_row_of_an_inline_whose_list_is_required_adds_nothing(
    catalog: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list is required only if the row has other input, like a required string."""
    monkeypatch.setattr(Slip._meta.get_field("lines"), "blank", False)
    Till.objects.create(till_id="t")
    address = "catalog/till/t/change/"
    page = form_of_text(catalog.get(address))
    more = {name.replace("__prefix__", "0"): text for name, text in page.items() if name.startswith("slip_set-__pre")}
    given = {**page, **more, "slip_set-TOTAL_FORMS": "1"}
    assert catalog.post(address, given).status_code == 302
    assert "This field is required." in text_of(catalog.post(address, {**given, "slip_set-0-slip_id": "s"}))


def test_an_inlines_row_says_what_is_wrong_by_its_row(catalog: Pages) -> None:
    """In the form of its own child."""
    till = Till.objects.create(till_id="t")
    Slip.objects.create(till=till, slip_id="one", lines=[TEA])
    address = "catalog/till/t/change/"
    answer = catalog.post(address, {**form_of_text(catalog.get(address)), "slip_set-0-lines.0_1": "dear"})
    assert "Row 1: Price: Enter a number." in text_of(answer)
