"""Map classes: ``class Address(MapAttribute)`` with attributes, in objects, in lists and inside each other."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pynamodb.attributes as pynamodb
import pytest
from django.core import serializers
from django.core.validators import MinValueValidator
from django.forms import modelform_factory
from django.template import Context, Template
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_single import models
from dynamo_single.exceptions import ConfigurationError, InvalidValue, MissingValue, UnreadableItem
from dynamo_single.models import Append
from dynamo_single.table import Request, Table
from dynamo_single.testing import assert_requests
from tests.deep import examples
from tests.unit.declaring import declare, forgotten, messages

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


class Geo(models.MapAttribute):
    """A map inside of a map."""

    lat: Any = models.DecimalAttribute(decimal_places=2)
    lon: Any = models.DecimalAttribute(null=True)


class Address(models.MapAttribute):
    """A map with a value of each kind."""

    street: Any = models.UnicodeAttribute(max_length=20)
    city: Any = models.UnicodeAttribute(attr_name="c", default="Ulm")
    number: Any = models.IntegerAttribute(null=True, validators=[MinValueValidator(1)])
    since: Any = models.DateAttribute(null=True)
    seen: Any = models.TimestampAttribute(stored_as="pynamodb", null=True)
    at: Any = models.TimestampAttribute(stored_as="seconds", null=True)
    done: Any = models.BooleanAttribute(stored_as="number", null=True)
    body: Any = models.JSONAttribute(null=True)
    pin: Any = models.UnicodeAttribute(null=True)
    code: Any = models.UnicodeAttribute(null=True, secret=True, attr_name="k")
    geo: Any = Geo(null=True)
    stops: Any = models.ListAttribute(of=Geo, null=True)
    days: Any = models.ListAttribute(of=models.DateAttribute(), null=True)
    items: Any = models.UnicodeSetAttribute()

    def label(self) -> str:
        """A method of the values."""
        return f"{self.street}, {self.city}"


class Home(Address):
    """A map class that inherits attributes and methods."""

    floor: Any = models.IntegerAttribute(null=True)


@pytest.fixture(autouse=True)
def house(table: Table) -> Iterator[Any]:
    """A model with a map, a list of maps, and a map that each object has."""
    with forgotten():
        yield declare(
            "House",
            ("HOUSE#{house_id}", "#METADATA"),
            house_id=models.UnicodeAttribute(),
            address=Address(null=True),
            home=Home(null=True),
            places=models.ListAttribute(of=Address, null=True),
            name=models.UnicodeAttribute(null=True),
        )


def raw(table: Table) -> dict[str, Any]:
    """Return the stored item."""
    key = {"pk": {"S": "HOUSE#1"}, "sk": {"S": "#METADATA"}}
    found: dict[str, Any] = table.send(Request("GetItem", {"Key": key, "ConsistentRead": True}))["Item"]
    return found


FULL: dict[str, Any] = {
    "street": "S",
    "city": "Bern",
    "number": 5,
    "since": date(2024, 5, 1),
    "seen": NOON,
    "at": NOON,
    "done": True,
    "body": {"a": [1]},
    "geo": Geo(lat=1, lon=2),
    "stops": [Geo(lat=3)],
    "days": [date(2024, 5, 2)],
}
STORED = {
    "street": {"S": "S"},
    "c": {"S": "Bern"},
    "number": {"N": "5"},
    "since": {"S": "2024-05-01"},
    "seen": {"S": "2024-05-01T12:00:00.000000+0000"},
    "at": {"N": "1714564800"},
    "done": {"N": "1"},
    "body": {"S": '{"a": [1]}'},
    "geo": {"M": {"lat": {"N": "1"}, "lon": {"N": "2"}}},
    "stops": {"L": [{"M": {"lat": {"N": "3"}}}]},
    "days": {"L": [{"S": "2024-05-02"}]},
    "items": {"SS": ["a"]},
}


def values_of(address: Any) -> dict[str, Any]:
    """The Python values of an address."""
    return {name: getattr(address, name) for name in FULL} | {
        "days": [date.fromisoformat(each) for each in address.days]
    }


def test_values_are_stored_by_their_attributes(table: Table, house: Any) -> None:
    house.objects.create(house_id="1", address=Address(**FULL, items={"a"}))
    assert raw(table)["address"] == {"M": STORED}


@pytest.mark.parametrize(
    "read",
    [
        lambda house: house.objects.get(pk="1").address,
        lambda house: house.objects.allow_scan().get().address,
        lambda house: house.objects.allow_scan().values_list("address", flat=True).get(),
        lambda house: house.objects.only("address").get(pk="1").address,
        lambda house: next(iter(house.scan())).address,
    ],
)
def test_stored_values_are_read_as_attributes(house: Any, read: Callable[[Any], Any]) -> None:
    house.objects.create(house_id="1", address=Address(**FULL))
    found = read(house)
    assert values_of(found) == FULL
    assert isinstance(found, Address) and isinstance(found.geo, Geo) and isinstance(found.stops[0], Geo)
    assert (found.label(), found.geo.lat.as_tuple().exponent) == ("S, Bern", -2)


def test_elements_of_a_list_are_objects(house: Any) -> None:
    house.objects.create(house_id="1", places=[Address(street="A"), {"street": "B"}])
    found = house.objects.get(pk="1").places
    assert [(each.street, each.city) for each in found] == [("A", "Ulm"), ("B", "Ulm")]
    found[1].city = "Bern"
    assert found[1]["c"] == "Bern"


def test_a_dict_becomes_an_object_at_once(house: Any) -> None:
    one = house(house_id="1", address={"street": "S", "geo": {"lat": 1}}, places=[{"street": "B"}])
    assert (one.address.geo.lat, one.places[0].street) == (Decimal("1.00"), "B")


def test_values_are_dicts() -> None:
    address = Address(street="S", geo=Geo(lat=1))
    assert address == {"street": "S", "c": "Ulm", "geo": {"lat": 1}}
    assert json.loads(json.dumps(address, default=float)) == {"street": "S", "c": "Ulm", "geo": {"lat": 1.0}}
    assert type(address.as_dict()["geo"]) is dict


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each)), dict.copy]
)
def test_copies_are_equal(duplicate: Callable[[Any], Any]) -> None:
    address = Home(street="S", geo=Geo(lat=1), floor=2)
    found = duplicate(address)
    assert found == address
    assert found is not address


def test_copies_are_objects_of_the_same_class() -> None:
    address = Home(street="S", geo=Geo(lat=1))
    for found in (copy.deepcopy(address), pickle.loads(pickle.dumps(address)), address.copy()):
        assert isinstance(found, Home) and isinstance(found.geo, Geo) and isinstance(found, Address)
    copy.deepcopy(address).geo.lat = 5
    assert address.geo.lat == 1


def test_an_attribute_set_to_none_is_removed() -> None:
    address = Address(street="S", number=5)
    address.number = None
    del address.street
    assert (address, address.number) == ({"c": "Ulm"}, None)


def test_defaults_are_those_of_new_values(table: Table, house: Any) -> None:
    assert (Address(street="S")["c"], Address(street="S", city=None)) == ("Ulm", {"street": "S"})
    item = {"pk": {"S": "HOUSE#1"}, "sk": {"S": "#METADATA"}, "itemType": {"S": "House"}, "house_id": {"S": "1"}}
    table.send(Request("PutItem", {"Item": {**item, "address": {"M": {"street": {"S": "S"}}}}}))
    found = house.objects.get(pk="1")
    assert (found.address.city, "c" in found.address) == ("Ulm", False)
    with assert_requests(0):
        found.save()
    found.address.street = "T"
    found.save()
    assert raw(table)["address"] == {"M": {"street": {"S": "T"}}}


def test_an_attribute_without_values_is_an_empty_value(house: Any) -> None:
    one = house(house_id="1", address=Address(), places=[Address()])
    one.address.street = one.places[0].street = "S"
    one.save()
    found = house.objects.get(pk="1")
    assert (found.address, found.places) == ({"street": "S", "c": "Ulm"}, [{"street": "S", "c": "Ulm"}])


@pytest.mark.parametrize(
    ("values", "error", "said"),
    [
        ({"city": "Ulm"}, MissingValue, "address__street is missing"),
        ({"street": 5}, InvalidValue, "address__street must be a string"),
        ({"street": "S" * 21}, InvalidValue, "address__street: Ensure this value has at most 20"),
        ({"street": "S", "number": 0}, InvalidValue, "address__number: Ensure this value is greater"),
        ({"street": "S", "since": "soon"}, InvalidValue, "address__since must be a date"),
        ({"street": "S", "done": 2}, InvalidValue, "address__done must be True or False"),
        ({"street": "S", "geo": Geo(lon=1)}, MissingValue, "address__geo__lat is missing"),
        ({"street": "S", "stops": [Geo(lat="x")]}, InvalidValue, "address__stops__0__lat must be a decimal number"),
        ({"street": "S", "days": [date(2024, 1, 1), 5]}, InvalidValue, "address__days__1 must be a date"),
        ({"street": "S", "city": 5}, InvalidValue, "address__c must be a string"),
    ],
)
def test_a_write_is_held_to_the_attributes(house: Any, values: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        house.objects.create(house_id="1", address=Address(**values))
    assert not house.objects.filter(pk="1").exists()


def test_a_secret_is_not_in_the_error(house: Any) -> None:
    with pytest.raises(InvalidValue) as caught:
        house.objects.create(house_id="1", address=Address(street="S", code=4711))
    assert "4711" not in str(caught.value)


def test_secrets_inside_are_masked_by_both_names(house: Any) -> None:
    attribute = house.address
    assert [attribute.hides((name,)) for name in ("pin", "code", "k", "street", "c")] == [
        True,
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("lookup", "value"),
    [
        ("city", "Bern"),
        ("c", "Bern"),
        ("since", date(2024, 5, 1)),
        ("since__lt", date(2024, 5, 2)),
        ("since__in", [date(2024, 5, 1)]),
        ("since__range", (date(2024, 1, 1), date(2024, 12, 31))),
        ("seen", NOON),
        ("at__gte", NOON),
        ("done", True),
        ("geo__lat", 1),
        ("stops__0__lat__gt", 2),
        ("days__contains", "2024-05-02"),
    ],
)
def test_filters_by_a_path_compare_python_values(house: Any, lookup: str, value: object) -> None:
    house.objects.create(house_id="1", address=Address(**FULL))
    house.objects.create(house_id="2", address=Address(street="T"))
    assert [each.pk for each in house.objects.allow_scan().filter(**{f"address__{lookup}": value})] == ["1"]


def test_columns_and_orders_name_paths(house: Any) -> None:
    house.objects.create(house_id="1", address=Address(**FULL))
    house.objects.create(house_id="2", address=Address(street="T", city="Aarau"))
    found = house.objects.allow_scan().allow_in_memory().order_by("address__city").values_list("pk", "address__city")
    assert [*found] == [("2", "Aarau"), ("1", "Bern")]


def test_one_place_is_updated_by_one_request(table: Table, house: Any) -> None:
    house.objects.create(house_id="1", address=Address(**FULL), places=[Address(street="A")])
    with assert_requests(["UpdateItem"]):
        house.objects.filter(pk="1").update(
            address__city="Ulm", address__since=date(2025, 1, 1), address__geo=Geo(lat=9), places__0__street="B"
        )
    address = raw(table)["address"]["M"]
    assert (address["c"], address["since"], address["geo"]) == (
        {"S": "Ulm"},
        {"S": "2025-01-01"},
        {"M": {"lat": {"N": "9"}}},
    )
    house.objects.filter(pk="1").update(places=Append([Address(street="C")]))
    assert [each.street for each in house.objects.get(pk="1").places] == ["B", "C"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"address__city": 5}, "address__city must be a string"),
        ({"address__geo": Geo(lon=1)}, "address__geo__lat is missing"),
        ({"places": Append([Address(city="x")])}, "street is missing"),
    ],
)
def test_an_update_of_a_place_is_held_to_it(house: Any, given: dict[str, Any], said: str) -> None:
    house.objects.create(house_id="1", address=Address(street="S"), places=[])
    with pytest.raises(InvalidValue, match=said):
        house.objects.filter(pk="1").update(**given)


def test_a_save_writes_the_difference(house: Any) -> None:
    one = house.objects.create(house_id="1", address=Address(**FULL))
    other = house.objects.get(pk="1")
    other.address.city = "Ulm"
    other.save()
    one.address.geo.lat = 7
    one.save()
    found = house.objects.get(pk="1").address
    assert (found.city, found.geo.lat) == ("Ulm", 7)


def test_foreign_values_inside_stay(table: Table, house: Any) -> None:
    house.objects.create(house_id="1", address=Address(street="S"))
    foreign = {"street": {"S": "S"}, "seen": {"S": "2024-05-01T12:00:00Z"}, "theirs": {"S": "x"}}
    table.send(Request("PutItem", {"Item": {**raw(table), "address": {"M": foreign}}}))
    found = house.objects.get(pk="1")
    assert found.address.seen == NOON
    found.address.street = "T"
    found.save()
    assert raw(table)["address"] == {"M": {**foreign, "street": {"S": "T"}}}


def test_a_wrong_stored_value_is_named_when_it_is_read(table: Table, house: Any) -> None:
    house.objects.create(house_id="1", address=Address(street="S"))
    table.send(Request("PutItem", {"Item": {**raw(table), "address": {"M": {"number": {"S": "five"}}}}}))
    address = house.objects.get(pk="1").address
    with pytest.raises(UnreadableItem, match="number"):
        _ = address.number


@pytest.mark.parametrize("form", ["json", "xml", "yaml", "jsonl"])
def test_fixtures_give_the_value_back(house: Any, form: str) -> None:
    text = serializers.serialize(form, [house(house_id="1", address=Address(**FULL), places=[Address(street="A")])])
    for each in serializers.deserialize(form, text):
        each.save()
    found = house.objects.get(pk="1")
    assert (values_of(found.address), found.places[0].street) == (FULL, "A")


def test_a_template_reads_attributes() -> None:
    text = Template("{{ a.street }} {{ a.city }} {{ a.geo.lat }}").render(
        Context({"a": Address(street="S", geo=Geo(lat=1))})
    )
    assert text.split() == ["S", "Ulm", "1.00"]


def test_a_form_has_a_row_for_each_attribute(house: Any) -> None:
    form_class: Any = modelform_factory(house, fields=["name", "address"])
    empty = form_class()
    labels = [place.label for place in getattr(empty.fields["address"], "places", [])]
    assert labels == [] or "Geo / Lat" in labels


def test_pynamodbs_conditions_name_attributes(house: Any) -> None:
    house.objects.create(house_id="1", address=Address(**FULL))
    condition = (house.address.city == "Bern") & (house.address.since == date(2024, 5, 1)) & (house.address.geo.lat > 0)
    assert [each.pk for each in house.scan(condition)] == ["1"]
    assert [*house.scan(house.address.city == "Ulm")] == []


def test_a_map_class_is_no_mistake(house: Any) -> None:
    assert messages(house) == []


# Declarations.


@pytest.mark.parametrize("name", ["default", "null", "choices", "secret", "schema"])
def test_the_name_of_an_option_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        type(models.MapAttribute)("Bad", (models.MapAttribute,), {name: models.UnicodeAttribute()})


@pytest.mark.parametrize(
    "attribute",
    [
        models.UnicodeAttribute(unique=True),
        models.DateAttribute(auto_now=True),
        models.UnicodeAttribute(immutable=True),
        models.VersionAttribute(),
    ],
)
def test_attributes_that_follow_others_are_refused(attribute: Any) -> None:
    with pytest.raises(ConfigurationError, match="cannot be"):
        type(models.MapAttribute)("Bad", (models.MapAttribute,), {"bad": attribute})


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: Address(street="S", stret="x"), "no attributes stret"),
        (lambda: Address(street="S", null=True), "no attributes null"),
    ],
)
def test_a_misspelt_attribute_is_refused(call: Callable[[], object], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        call()


def test_setting_an_unknown_attribute_is_refused() -> None:
    with pytest.raises(AttributeError, match="stret"):
        Address(street="S").stret = "x"


def test_a_schema_is_refused_beside_attributes() -> None:
    with pytest.raises(ConfigurationError, match="omit schema"):
        Address(schema=Geo)


def test_the_name_of_a_method_of_dicts_is_a_key_only() -> None:
    address = Address(street="S", items={"a"})
    assert (address["items"], dict(address.items())["street"]) == ({"a"}, "S")


# Next to PynamoDB, with the same stored map.


class TheirGeo(pynamodb.MapAttribute):
    lat = pynamodb.NumberAttribute()


class TheirAddress(pynamodb.MapAttribute):
    street = pynamodb.UnicodeAttribute()
    city = pynamodb.UnicodeAttribute(attr_name="c")
    seen = pynamodb.UTCDateTimeAttribute(null=True)
    body = pynamodb.JSONAttribute(null=True)
    flag = pynamodb.BooleanAttribute(null=True)
    geo = TheirGeo(null=True)
    stops = pynamodb.ListAttribute(of=TheirGeo, null=True)


class OurAddress(models.MapAttribute):
    street: Any = models.UnicodeAttribute()
    city: Any = models.UnicodeAttribute(attr_name="c")
    seen: Any = models.TimestampAttribute(stored_as="pynamodb", null=True)
    body: Any = models.JSONAttribute(null=True)
    flag: Any = models.BooleanAttribute(null=True)
    geo: Any = Geo(null=True)
    stops: Any = models.ListAttribute(of=Geo, null=True)


def plain(value: Any) -> Any:
    """PynamoDB's maps as dicts."""
    if isinstance(value, pynamodb.MapAttribute):
        value = value.as_dict()
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return [*map(plain, value)] if isinstance(value, list) else value


NUMBERS = st.integers(-(10**6), 10**6)
GIVEN = st.fixed_dictionaries(
    {"street": st.text(), "city": st.text()},
    optional={
        "seen": st.datetimes(timezones=st.just(UTC)),
        "body": st.dictionaries(st.text("ab"), st.integers() | st.text() | st.booleans(), max_size=3),
        "flag": st.booleans(),
        "geo": NUMBERS,
        "stops": st.lists(NUMBERS, max_size=3),
    },
)


@given(values=GIVEN)
@settings(max_examples=examples(25, 1000))
def test_both_libraries_read_each_others_maps(values: dict[str, Any]) -> None:
    def made(address: Any, geo: Any) -> Any:
        inside = {"geo": lambda each: geo(lat=each), "stops": lambda each: [geo(lat=one) for one in each]}
        return address(**{name: inside.get(name, lambda one: one)(each) for name, each in values.items()})

    attribute = OurAddress()
    attribute.name = attribute.attr_name = "address"
    ours, theirs = made(OurAddress, Geo), made(TheirAddress, TheirGeo)
    read = attribute.deserialize(theirs.serialize(theirs))
    assert read == ours or "body" in values
    assert {name: getattr(read, name) for name in values} == {name: getattr(ours, name) for name in values}
    attribute.check_whole(read)
    back = TheirAddress().deserialize(attribute.serialize(ours))
    assert plain(back.as_dict()) == plain(theirs.as_dict())
