"""Records in a table whose key is ``id`` alone, and the same in one of two parts: every way to read and write them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from django.db.models import Q

from dynamo_single import models, transactions
from dynamo_single.contrib.doctor import repair, verify
from dynamo_single.exceptions import AlreadyExists, StaleObject, UniqueViolation
from dynamo_single.table import Request, Table
from dynamo_single.testing import assert_requests
from tests.contract.tables import as_stored, assert_consistent
from tests.unit.declaring import forgotten

pytestmark = pytest.mark.usefixtures("kept")


@pytest.fixture
def several(goods: Any) -> list[Any]:
    """Twelve products of three authors."""
    return list(goods.objects.bulk_create(goods(data={"author": "abc"[n % 3], "n": n}) for n in range(12)))


def keys_stored(kept: Table) -> set[str]:
    """Return the stored keys of all items, with a space between the parts."""
    parts = ("id",) if kept.settings.key == "id" else ("pk", "sk")
    return {" ".join(item[name]["S"] for name in parts) for item in as_stored(kept)}


def test_a_unique_value_is_claimed_beside_the_record(goods: Any, kept: Table) -> None:
    with assert_requests(["TransactWriteItems"]):
        one = goods.objects.create(data={}, isbn="1~|#")
    claim, own = ("#UNIQUE#Goods#isbn#1~0~1$s|#CLAIM", one.id)
    if kept.settings.key == "pk":
        claim, own = ("UNIQUE#Goods#isbn#1~|$s #CLAIM", f"{one.id} #PRODUCT")
    assert keys_stored(kept) == {claim, own}
    with assert_requests(["GetItem", "GetItem"]):
        assert goods.objects.get(isbn="1~|#") == one
    with pytest.raises(UniqueViolation, match="has isbn"):
        goods.objects.create(data={}, isbn="1~|#")
    one.isbn = "2"
    with assert_requests(["TransactWriteItems"]):
        one.save()
    assert goods.objects.create(data={}, isbn="1~|#").isbn == "1~|#"
    assert_consistent(goods._options.alias)


def test_what_expired_from_the_trash_gives_its_claim_up(goods: Any, kept: Table) -> None:
    one = goods.objects.create(data={}, isbn="1")
    one.delete()
    assert len(keys_stored(kept)) == 1
    one.restore()
    assert len(keys_stored(kept)) == 2
    one.hard_delete()
    assert keys_stored(kept) == set()


def test_a_block_writes_several_at_once(goods: Any) -> None:
    with assert_requests(["TransactWriteItems"]), transactions.atomic():
        one = goods.objects.create(data={"author": "a"}, isbn="1")
        two = goods.objects.create(data={"author": "b"})
    with assert_requests(["TransactWriteItems"]), transactions.atomic():
        one.data["author"] = "c"
        one.save()
        two.delete()
    with assert_requests(["BatchGetItem"]):
        assert goods.objects.in_bulk([one.pk, two.pk]) == {one.pk: one}
    assert goods.objects.get(pk=one.pk).author == "c"
    with pytest.raises(AlreadyExists), transactions.atomic():
        goods.objects.create(id=one.id, data={})


def test_reads_as_of_one_moment(goods: Any, several: list[Any]) -> None:
    with assert_requests(["TransactGetItems"]):
        found = transactions.read(*(goods.objects.filter(pk=each.pk) for each in several[:2]))
    assert [[each.data["n"] for each in one] for one in found] == [[0], [1]]


def test_a_record_that_is_there_is_not_made_again(goods: Any) -> None:
    one = goods.objects.create(data={})
    with assert_requests(["PutItem"]), pytest.raises(AlreadyExists):
        goods.objects.create(id=one.id, data={})


def test_what_somebody_else_has_deleted_is_stale(goods: Any) -> None:
    one = goods.objects.create(data={})
    goods.objects.get(pk=one.pk).hard_delete()
    one.data["n"] = 1
    with pytest.raises(StaleObject):
        one.save()
    with pytest.raises(goods.DoesNotExist):
        one.refresh_from_db()


def test_pages_go_on_where_the_one_before_ended(goods: Any, several: list[Any]) -> None:
    found: list[Any] = []
    cursor = None
    with assert_requests(["Query", "Query", "Query"]):
        for _ in range(3):
            page = goods.objects.order_by("-created_at").page(4, cursor)
            found += page
            cursor = page.next_cursor
    assert not page.has_next
    assert {each.pk for each in found} == {each.pk for each in several}
    before = goods.objects.order_by("-created_at").page(4, goods.objects.order_by("-created_at").cursor_for(found[4]))
    assert [each.pk for each in before] == [each.pk for each in found[5:9]]


def test_pages_of_several_partitions_go_on_too(goods: Any, several: list[Any]) -> None:
    asked = goods.objects.filter(Q(author="a") | Q(author="b"))
    first = asked.page(5)
    rest = asked.page(5, first.next_cursor)
    assert {each.data["n"] for each in (*first, *rest)} == {n for n in range(12) if n % 3 < 2}
    assert len(first) + len(rest) == 8


def test_rows_and_parts_of_objects_are_read(goods: Any, several: list[Any]) -> None:
    with assert_requests(["Query"]):
        rows = goods.objects.filter(author="a").values_list("id", "data__n")
        assert sorted(rows) == sorted((each.id, each.data["n"]) for each in several[::3])
    with assert_requests(["Query"]):
        (one, *_) = goods.objects.filter(author="a").only("author")
    with assert_requests(["GetItem"]):
        assert one.data["n"] % 3 == 0
    rest = goods.objects.filter(author="a").exclude(id=one.id).filter(id__contains="-")
    with assert_requests(["Query"]):
        assert rest.count() == 3
    assert goods.objects.values("pk").get(pk=one.pk) == {"pk": one.pk}
    assert goods.objects.filter(author="a").count() == 4
    assert len(list(goods.objects.iterator())) == 12


def test_many_are_changed_deleted_and_restored(goods: Any, several: list[Any], kept: Table) -> None:
    for each in several[:2]:
        each.data["n"] += 100
    assert goods.objects.bulk_update(several[:2], ["data"]) == 2
    assert goods.objects.filter(author="a").update(data__n=7) == 4
    goods.objects.filter(author="a").delete()
    assert (goods.objects.count(), goods.deleted_objects.count()) == (8, 4)
    assert_consistent(goods._options.alias)
    goods.deleted_objects.all().restore()
    assert sorted(each.data["n"] for each in goods.objects.filter(author="a")) == [7, 7, 7, 7]
    goods.all_objects.all().hard_delete()
    assert as_stored(kept) == []


def test_a_record_gets_another_identifier_by_moving(goods: Any, kept: Table) -> None:
    one = goods.objects.create(data={"author": "a"}, isbn="1")
    one.move(id="product-other")
    assert goods.objects.get(isbn="1").id == "product-other"
    assert_consistent(goods._options.alias)


def test_an_update_of_another_types_identifier_finds_nothing(goods: Any) -> None:
    with assert_requests(["UpdateItem"]):
        assert goods.objects.filter(pk="user-1").update(data__n=1) == 0
    with pytest.raises(goods.DoesNotExist):
        goods.objects.get(pk="user-1")


def test_coroutines_do_the_same(goods: Any) -> None:
    asyncio.run(in_coroutines(goods))


def test_a_condition_may_name_the_identifier_too(goods: Any) -> None:
    one = goods.objects.create(data={})
    with assert_requests(["UpdateItem"]):
        assert goods.objects.filter(pk=one.pk, id__startswith="product-").update(data__n=1) == 1
    with assert_requests(["UpdateItem"]):
        assert goods.objects.filter(pk=one.pk).exclude(id__contains="-").update(data__n=2) == 0


async def in_coroutines(goods: Any) -> None:
    """Each step as a coroutine."""
    one = await goods.objects.acreate(data={"author": "a"}, isbn="1")
    found = await goods.objects.aget(pk=one.pk)
    found.data["n"] = 1
    await found.asave()
    with pytest.raises(UniqueViolation):
        await goods.objects.acreate(data={}, isbn="1")
    with pytest.raises(AlreadyExists):
        await goods.objects.acreate(id=one.id, data={})
    assert [each.data["n"] async for each in goods.objects.filter(author="a")] == [1]
    await found.ahard_delete()
    assert await goods.objects.acount() == 0


def test_what_is_derived_of_a_record_is_repaired(place: str, kept: Table) -> None:
    """The condition of such a repair is on all attributes of an item."""
    with forgotten():

        class Headword(models.Model):
            id = models.IdAttribute(prefix="word")
            of = models.UnicodeAttribute()

            class Keys:
                primary = models.Key("{id}", "#WORD")
                listed = models.IndexKey("gs1", "WORD", "{id}")

            class Meta:
                app_label = "catalog"
                table = place

        class Text(models.Record):
            derived_from: ClassVar[tuple[str, ...]] = ("data",)

            def derived_objects(self) -> Iterator[Any]:
                for word in self.data.get("words", ()):
                    yield Headword(id=f"word-{word}", of=self.id)

            class Meta:
                app_label = "catalog"
                table = place

        one = Text.objects.create(data={"words": ["a", "b"]})
        (item,) = (each for each in as_stored(kept) if each["id"] == {"S": "word-a"})
        Table(kept.settings).send(Request("PutItem", {"Item": {**item, "of": {"S": "nobody"}}}))
        (found,) = verify(place)
        assert found.kind == "derived item"
        assert repair(found, place)
        assert_consistent(place)
        one.data["words"] = ["b"]
        one.save()
        assert [each.id for each in Headword.objects.all()] == ["word-b"]


def test_pynamodbs_own_calls_go_by_the_same_key(goods: Any) -> None:
    one = goods.objects.create(data={})
    assert [each.pk for each in goods.batch_get([(one.id, "#PRODUCT")])] == [one.pk]
    assert [each.pk for each in goods.scan()] == [one.pk]
