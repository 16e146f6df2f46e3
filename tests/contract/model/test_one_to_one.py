"""One-to-one relations: unique, with one object on the other side, found by its claim or by its key."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest
from django import forms
from django.db.models import RESTRICT, OneToOneField
from django.forms import modelform_factory

from dynamo_single import models
from dynamo_single.exceptions import ConfigurationError, NotSupported, UniqueViolation, UnknownField
from dynamo_single.testing import assert_requests
from tests.catalog.places import Bar, Kitchen, Place, Restaurant

pytestmark = pytest.mark.usefixtures("table")

CLAIMED = ["GetItem", "GetItem"]


@pytest.fixture
def place() -> Iterator[Place]:
    """A place with a restaurant, which has a kitchen; it has no bar."""
    made = Place.objects.create(place_id="p", name="Dock")
    restaurant = Restaurant.objects.create(restaurant_id="r", place=made, name="Demon Dogs")
    Kitchen.objects.create(restaurant=restaurant, stoves=2)
    yield Place.objects.get(pk="p")


def test_the_other_side_is_one_object_by_its_claim(place: Place) -> None:
    """Read once, and each knows the other afterwards."""
    with assert_requests(CLAIMED):
        restaurant = place.restaurant
    with assert_requests(0):
        assert (restaurant.pk, place.restaurant, restaurant.place) == ("r", restaurant, place)


def test_where_it_is_the_primary_key_the_other_side_is_read_by_it(place: Place) -> None:
    with assert_requests(["GetItem"]):
        kitchen = Restaurant(restaurant_id="r").kitchen
    assert (kitchen.stoves, kitchen.pk) == (2, "r")


def test_without_one_it_is_djangos_error(place: Place) -> None:
    """``hasattr()`` handles Django's error, and the claim is read only once."""
    with assert_requests(["GetItem"]):
        assert not hasattr(place, "bar")
    with assert_requests(0), pytest.raises(Place.bar.RelatedObjectDoesNotExist, match="Place has no bar"):
        assert place.bar
    with pytest.raises(Bar.DoesNotExist):
        assert place.bar
    with assert_requests(["GetItem"]), pytest.raises(Kitchen.DoesNotExist):
        assert Restaurant(restaurant_id="none").kitchen


def test_a_second_object_is_refused(place: Place) -> None:
    with pytest.raises(UniqueViolation, match=r"Another catalog\.Restaurant has place_id 'p'"):
        Restaurant.objects.create(restaurant_id="s", place=place, name="Second")
    form = modelform_factory(Restaurant, fields=["place", "name"])({"place": "p", "name": "Second"})
    assert form.errors == {"place": ["Restaurant with this Place already exists."]}


def test_to_forms_it_is_djangos_field() -> None:
    field = Restaurant._meta.get_field("place")
    assert isinstance(field, OneToOneField)
    assert (field.one_to_one, field.many_to_one, field.remote_field.multiple) == (True, False, False)
    assert isinstance(field.formfield(), forms.ModelChoiceField)


def test_the_other_side_is_set_and_saved(place: Place) -> None:
    """Only the referring object has to be saved, as in Django."""
    other = Place.objects.create(place_id="q", name="Pier")
    restaurant = place.restaurant
    other.restaurant = restaurant
    assert restaurant.place_id == "q"
    restaurant.save()
    assert Place.objects.get(pk="q").restaurant == restaurant
    with pytest.raises(Restaurant.DoesNotExist):
        assert Place.objects.get(pk="p").restaurant
    with pytest.raises(ValueError, match='must be a "Restaurant" instance'):
        other.restaurant = place
    with pytest.raises(ValueError, match='must be a "Place" instance'):
        restaurant.place = restaurant


def test_a_place_is_free_again_once_its_restaurant_is_deleted(place: Place) -> None:
    place.restaurant.delete()
    place.refresh_from_db()
    assert not hasattr(place, "restaurant")
    Restaurant.objects.create(restaurant_id="s", place=place, name="Second")
    assert Place.objects.get(pk="p").restaurant.pk == "s"


def test_reading_again_forgets_the_other_side(place: Place) -> None:
    """A refresh clears the whole cache, or this relation by name, without a request."""
    assert place.restaurant.name == "Demon Dogs"
    Restaurant.objects.filter(pk="r").update(name="Changed")
    with assert_requests(0):
        place.refresh_from_db(fields=["restaurant"])
    assert place.restaurant.name == "Changed"
    Restaurant.objects.filter(pk="r").update(name="Again")
    with assert_requests(["GetItem"]):
        place.refresh_from_db()
    assert place.restaurant.name == "Again"
    assert pickle.loads(pickle.dumps(place)).restaurant == place.restaurant


def test_prefetching_reads_the_other_sides_by_key_or_by_claim() -> None:
    """A BatchGetItem reads complete primary keys; otherwise, the first reads claims and the second reads objects."""
    for place_id in ("p", "q", "x"):
        made = Place.objects.create(place_id=place_id, name=place_id)
        Restaurant.objects.create(restaurant_id=place_id, place=made, name=place_id)
    for restaurant_id in ("p", "q"):
        Kitchen.objects.create(restaurant_id=restaurant_id, stoves=1)
    with assert_requests(["Query", "BatchGetItem"]):
        found = {each.pk: each for each in Restaurant.objects.prefetch_related("kitchen")}
        assert [found[pk].kitchen.stoves for pk in ("p", "q")] == [1, 1]
        assert not hasattr(found["x"], "kitchen")
    Restaurant.objects.get(pk="x").delete()
    with assert_requests(["Query", "BatchGetItem", "BatchGetItem"]):
        places = {each.pk: each for each in Place.objects.prefetch_related("restaurant")}
        assert [places[pk].restaurant.pk for pk in ("p", "q")] == ["p", "q"]
        assert not hasattr(places["x"], "restaurant")


def test_a_join_from_the_other_side_is_refused_with_the_way_out(place: Place) -> None:
    with pytest.raises(UnknownField, match=r"prefetch_related\('restaurant'\)"):
        list(Place.objects.select_related("restaurant"))
    with pytest.raises(NotSupported, match=r"filter\(pk__in=Restaurant.objects.filter\(name=...\)"):
        list(Place.objects.filter(restaurant__name="x"))
    with assert_requests(["Query", "GetItem"]):
        (restaurant,) = Restaurant.objects.select_related("place")
    assert restaurant.place.name == "Dock"


def test_it_is_unique_or_another_attribute() -> None:
    with pytest.raises(ConfigurationError, match="a ReferenceAttribute need not be"):
        models.OneToOneAttribute(Place, on_delete=models.DO_NOTHING, unique=False)
    with pytest.raises(ConfigurationError, match="on_delete=RESTRICT cannot be kept"):
        models.OneToOneAttribute(Place, RESTRICT)
