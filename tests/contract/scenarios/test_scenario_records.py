"""S1, records of any shape, as the scenario's user declares them: its items, and the requests of every operation."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from dynamo_single import clock, models
from dynamo_single.authorship import acting_as
from dynamo_single.exceptions import ImmutableAttribute, NotSupported
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests, moved_time
from tests.contract.tables import as_stored, assert_consistent
from tests.unit.declaring import forgotten, messages

pytestmark = pytest.mark.usefixtures("kept")

BOOK = {
    "title": "A Title",
    "author": {"firstname": "Ann", "lastname": "Example"},
    "price": Decimal("456.67"),
    "discount": Decimal("3.5"),
    "publisher": "Press",
}
STORED = {
    "title": {"S": "A Title"},
    "author": {"M": {"firstname": {"S": "Ann"}, "lastname": {"S": "Example"}}},
    "price": {"N": "456.67"},
    "discount": {"N": "3.5"},
    "publisher": {"S": "Press"},
}
PERSON = {"firstname": "Mike", "lastname": "Example", "email": "mike@example.com", "age": 40}
#: The app's own attributes in addition to the scenario's: the type, and index keys.
OWN = {"itemType", "gs1pk", "gs1sk", "gs2pk", "gs2sk"}
#: A table's key, where it is none of the scenario's attributes.
KEY = {"pk", "sk"}


@pytest.fixture(scope="module")
def product(place: str) -> Iterator[Any]:
    """The product as the scenario's user writes it."""
    with forgotten():

        class Goods(models.Record):
            author = models.ExtractedAttribute("data__author__lastname")

            class Keys(models.Record.Keys):
                by_author = models.IndexKey("gs1", "PRODUCT#{author}", "{id}")

            class Meta:
                app_label = "catalog"
                id_prefix = "product"
                table = place

        yield Goods


@pytest.fixture
def user(kept: Table) -> Any:
    """The author."""
    return get_user_model()._default_manager.create_user("mike", "mike@example.com", "secret")


@pytest.fixture
def book(product: Any, user: Any) -> Any:
    """The sample."""
    with acting_as(user):
        return product.objects.create(data=BOOK)


def item_of(kept: Table, obj: Any) -> dict[str, Any]:
    """Return the object's stored item."""
    return next(item for item in as_stored(kept) if item.get("id") == {"S": obj.id})


def milliseconds(moment: Any) -> dict[str, str]:
    """Return the stored form of a datetime."""
    return {"N": str((moment - clock.EPOCH) // timedelta(milliseconds=1))}


def test_the_item_equals_the_scenarios(book: Any, user: Any, kept: Table, place: str) -> None:
    item = item_of(kept, book)
    key = {name: item.pop(name)["S"] for name in KEY & item.keys()}
    assert key == ({"pk": book.id, "sk": "#PRODUCT"} if place == "default" else {})
    assert {name: value for name, value in item.items() if name not in OWN} == {
        "id": {"S": book.id},
        "data": {"M": STORED},
        "author": {"S": "Example"},
        "createdAt": milliseconds(book.created_at),
        "updatedAt": milliseconds(book.updated_at),
        "createdBy": {"S": user.pk},
    }
    assert {name: item[name]["S"] for name in OWN - {"gs2sk"}} == {
        "itemType": "Goods",
        "gs1pk": "PRODUCT#Example",
        "gs1sk": book.id,
        "gs2pk": "PRODUCT",
    }
    kind, *uuid = book.id.split("-")
    assert (kind, uuid[2][0], len("-".join(uuid))) == ("product", "1", 36)


def test_a_record_that_nobody_made_has_no_author_and_one_of_another_type_another_prefix(
    kept: Table, place: str
) -> None:
    with forgotten():

        class Persona(models.Record):
            class Meta:
                app_label = "catalog"
                id_prefix = "user"
                table = place

        with assert_requests(["PutItem"]):
            person = Persona.objects.create(data=PERSON)
        item = item_of(kept, person)
        assert item.keys() - OWN - KEY == {"id", "data", "createdAt", "updatedAt"}
        assert person.id.startswith("user-")
        assert item["data"]["M"]["age"] == {"N": "40"}


def test_each_operation_is_one_request(product: Any, user: Any) -> None:
    with assert_requests(["PutItem"]), acting_as(user):
        book = product.objects.create(data=BOOK)
    with assert_requests(["GetItem"]):
        assert product.objects.get(pk=book.id).data == BOOK
    with assert_requests(["Query"]):
        assert [each.id for each in product.objects.filter(author="Example")] == [book.id]
    with assert_requests(["Query"]):
        assert [each.id for each in product.objects.order_by("-created_at")] == [book.id]
    with assert_requests(["Query"]):
        assert product.objects.filter(created_at__gte=clock.now() - timedelta(days=1)).count() == 1
    with assert_requests(["UpdateItem"]):
        book.delete()
    with assert_requests(["Query"]):
        assert [each.id for each in product.deleted_objects.all()] == [book.id]
    with assert_requests(["UpdateItem"]):
        book.restore()
    with assert_requests(["DeleteItem"]):
        book.hard_delete()


def test_a_nested_value_is_updated_in_place_under_conditions(
    product: Any, book: Any, user: Any, kept: Table, place: str
) -> None:
    """The request is ``SET data.price``, if the record exists with this author, without other elements of the map."""
    mine = product.objects.filter(pk=book.pk, created_by=user)
    with assert_requests(["UpdateItem"]) as sent:
        assert mine.update(data__price=Decimal("389.50")) == 1
    params = sent[0].params
    places = params["ExpressionAttributeNames"]
    key = "pk" if place == "default" else "id"
    assert sorted(places.values()) == sorted(["createdBy", "data", "deletedAt", "itemType", key, "price", "updatedAt"])
    assert {"M": STORED} not in params["ExpressionAttributeValues"].values()
    assert item_of(kept, book)["data"] == {"M": {**STORED, "price": {"N": "389.5"}}}
    with assert_requests(["UpdateItem"]):
        assert product.objects.filter(pk=book.pk, created_by_id="somebody").update(data__price=0) == 0
    with assert_requests(["UpdateItem"]):
        assert product.objects.filter(pk="product-none", created_by=user).update(data__price=0) == 0
    assert item_of(kept, book)["data"]["M"]["price"] == {"N": "389.5"}


def test_saving_sends_the_places_that_differ(product: Any, book: Any) -> None:
    book.data["price"] = Decimal("1.10")
    with assert_requests(["UpdateItem"]) as sent:
        book.save()
    assert "author" not in sent[0].params["ExpressionAttributeNames"].values()
    assert product.objects.get(pk=book.pk).data == {**BOOK, "price": Decimal("1.1")}


def test_what_a_key_is_made_of_is_read_before_it_changes(product: Any, book: Any, kept: Table, place: str) -> None:
    with assert_requests(["GetItem", "UpdateItem"]):
        product.objects.filter(pk=book.pk).update(data__author__lastname="Writer")
    item = item_of(kept, book)
    assert (item["author"], item["gs1pk"]) == ({"S": "Writer"}, {"S": "PRODUCT#Writer"})
    assert_consistent(place)


@pytest.mark.parametrize(
    "write",
    [
        lambda book: book.save(force_update=True),
        lambda book: type(book).objects.filter(pk=book.pk).update(data__price=1),
        lambda book: type(book).objects.filter(pk=book.pk).update(data={}),
        lambda book: type(book).objects.bulk_update([book], ["data"]),
        lambda book: book.delete(),
    ],
    ids=["save", "update of a place", "update", "bulk_update", "delete"],
)
def test_created_at_is_set_once_and_every_update_sets_updated_at(write: Any, book: Any, kept: Table) -> None:
    created = item_of(kept, book)["createdAt"]
    with moved_time(timedelta(hours=1)):
        write(book)
    item = item_of(kept, book)
    assert item["createdAt"] == created
    assert int(item["updatedAt"]["N"]) - int(created["N"]) >= 3_600_000


def test_created_at_cannot_be_set_to_another_moment(product: Any, book: Any) -> None:
    with assert_requests(0), pytest.raises(ImmutableAttribute):
        product.objects.filter(pk=book.pk).update(created_at=clock.now())
    book.created_at = clock.now() - timedelta(days=1)
    with assert_requests(0), pytest.raises(ImmutableAttribute):
        book.save()


def test_a_deletion_leaves_the_core_as_it_is(product: Any, book: Any, kept: Table) -> None:
    book.delete()
    item = item_of(kept, book)
    assert item["deletedAt"] == milliseconds(book.deleted_at)
    assert item["data"] == {"M": STORED}
    with assert_requests(["Query"]):
        assert not product.objects.filter(author="Example").exists()


def test_nested_values_are_filtered_by_and_no_key_can_be_made_of_them(product: Any, book: Any) -> None:
    with assert_requests(["Query"]):
        assert product.objects.filter(data__price__lt=500, data__author__firstname="Ann").count() == 1
    with forgotten():

        class Misled(models.Record):
            class Keys(models.Record.Keys):
                by_price = models.IndexKey("gs1", "WRONG", "{data__price}")

            class Meta:
                app_label = "catalog"

        ((identifier, said),) = messages(Misled)
    assert identifier == "dynamo_single.E003"
    assert 'price = models.ExtractedAttribute("data__price")' in said


def test_who_made_it_never_changes(book: Any) -> None:
    book.created_by_id = "somebody"
    with pytest.raises(NotSupported, match="gets its value at creation and cannot change"):
        book.save()
