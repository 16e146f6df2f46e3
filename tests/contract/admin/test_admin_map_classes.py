"""The rows of a map class in the admin: its attributes, nested maps and lists, and secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

from dynamo_single import models
from dynamo_single.table import Table
from tests.contract.conftest import Pages, Registering, text_of
from tests.unit.declaring import declare, forgotten


class Geo(models.MapAttribute):
    lat: Any = models.DecimalAttribute(decimal_places=2)


class Address(models.MapAttribute):
    street: Any = models.UnicodeAttribute("street or square")
    city: Any = models.UnicodeAttribute(attr_name="c", default="Ulm")
    since: Any = models.DateAttribute(null=True)
    done: Any = models.BooleanAttribute(stored_as="number", null=True)
    pin: Any = models.UnicodeAttribute(null=True)
    geo: Any = Geo(null=True)


@pytest.fixture
def house(table: Table) -> Iterator[Any]:
    with forgotten():
        yield declare(
            "House",
            ("HOUSE#{house_id}", "#METADATA"),
            {"all": models.IndexKey("gs1", "HOUSE", "{house_id}")},
            house_id=models.UnicodeAttribute(),
            address=Address(null=True),
            places=models.ListAttribute(of=Address, null=True),
        )


@pytest.fixture
def opened(registered: Registering, house: Any) -> Pages:
    return registered(house)


CHANGE = "catalog/house/1/change/"


def sent(page: Any) -> dict[str, str]:
    """Return a browser's submission of the unchanged form."""
    content = page.content.decode()
    tags = [dict(re.findall(r'([a-z]+)="([^"]*)"', tag)) for tag in re.findall(r"<input ([^>]*)>", content)]
    found = {
        tag["name"]: tag["value"]
        for tag in tags
        if "name" in tag and "value" in tag and tag["type"] not in ("submit", "checkbox")
    }
    for name, inside in re.findall(r'<select name="([^"]+)"[^>]*>(.*?)</select>', content, re.DOTALL):
        (chosen,) = re.findall(r'<option value="([^"]*)" selected', inside) or [""]
        found[name] = chosen
    return {name: text for name, text in found.items() if name != "csrfmiddlewaretoken"}


def test_each_attribute_has_a_row(opened: Pages, house: Any) -> None:
    house.objects.create(house_id="1", address=Address(street="Main", since=date(2024, 5, 1), geo=Geo(lat=1)))
    page = opened.get(CHANGE)
    said = text_of(page)
    assert [label in said for label in ("Street or square", "City", "Geo / Lat")] == [True, True, True]
    assert {"Main", "Ulm", "2024-05-01", "1.00"} <= set(sent(page).values())


def test_a_row_changes_one_attribute(opened: Pages, house: Any) -> None:
    house.objects.create(house_id="1", address=Address(street="Main", done=True, geo=Geo(lat=1)), places=[])
    data = sent(opened.get(CHANGE))
    (row,) = [name for name, text in data.items() if text == "Main"]
    assert opened.post(CHANGE, {**data, row: "Side"}).status_code == 302
    found = house.objects.get(pk="1").address
    assert (found.street, found.done, found.geo.lat, found.city) == ("Side", True, 1, "Ulm")


def test_an_error_names_the_row(opened: Pages, house: Any) -> None:
    house.objects.create(house_id="1", address=Address(street="Main", geo=Geo(lat=1)))
    data = sent(opened.get(CHANGE))
    (row,) = [name for name, text in data.items() if text == "1.00"]
    answer = opened.post(CHANGE, {**data, row: "north"})
    assert "Geo / Lat: Enter a number" in text_of(answer)


def test_a_missing_attribute_is_an_error(opened: Pages, house: Any) -> None:
    answer = opened.post("catalog/house/add/", {"house_id": "1", "address": '{"c": "Ulm"}'})
    assert "address__street: This field must have a value." in text_of(answer)


def test_a_secret_inside_is_not_listed(registered: Registering, house: Any) -> None:
    house.objects.create(
        house_id="1", address=Address(street="Main", pin="4711"), places=[Address(street="A", pin="4712")]
    )
    pages = registered(house, list_display=("house_id", "address", "places"))
    content = pages.get("catalog/house/").content.decode()
    assert "Main" in content
    assert "4711" not in content and "4712" not in content


def test_elements_of_a_list_have_rows(opened: Pages, house: Any) -> None:
    house.objects.create(house_id="1", places=[Address(street="First"), Address(street="Second")])
    data = sent(opened.get(CHANGE))
    (row,) = [name for name, text in data.items() if text == "Second"]
    answer = opened.post(CHANGE, {**data, row: "Third"})
    assert answer.status_code == 302
    assert [each.street for each in house.objects.get(pk="1").places] == ["First", "Third"]
