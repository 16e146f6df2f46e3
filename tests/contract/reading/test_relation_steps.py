"""Steps of a query over relations: their cost, memory and visibility."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from django.db.models import Count, Exists, F, OuterRef, Prefetch
from django.utils import timezone

from dynamo_single import models, transactions
from dynamo_single.exceptions import (
    DisallowedLookup,
    NoAccessPattern,
    NotSupported,
    PendingWrite,
    TooManyMatches,
    UnknownField,
)
from dynamo_single.orm.schema.keys.values import item_size
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests
from tests.unit.declaring import declare, forgotten


@pytest.fixture
def zoo(table: Table) -> Iterator[Any]:
    """Create two houses with animals, by house and by kind; one house is heated."""
    with forgotten():
        house = declare(
            "House",
            ("HOUSE#{house_id}", "#METADATA"),
            {"listed": models.IndexKey("gs1", "HOUSE", "{name}")},
            bases=(models.SoftDeleteModel,),
            house_id=models.UnicodeAttribute(),
            name=models.UnicodeAttribute(),
            is_heated=models.BooleanAttribute(default=False),
            code=models.UnicodeAttribute(null=True, secret=True),
            pin=models.EncryptedAttribute(null=True)
            if hasattr(models, "EncryptedAttribute")
            else models.UnicodeAttribute(null=True),
        )
        animal = declare(
            "Animal",
            ("HOUSE#{house_id}", "ANIMAL#{animal_id}"),
            {"by_kind": models.IndexKey("gs2", "ANIMAL#{kind}", "{animal_id}")},
            bases=(models.SoftDeleteModel,),
            house=models.ReferenceAttribute(house, on_delete=models.CASCADE, related_name="animals"),
            animal_id=models.UnicodeAttribute(),
            kind=models.UnicodeAttribute(),
            remark=models.UnicodeAttribute(null=True),
            gone=models.TTLAttribute(null=True),
        )
        for name, is_heated in (("North", False), ("South", True)):
            house.objects.create(house_id=name[0], name=name, is_heated=is_heated, code="swordfish")
        for number, (place, kind) in enumerate((("N", "owl"), ("N", "fox"), ("S", "owl"), ("S", "newt"))):
            animal.objects.create(house_id=place, animal_id=str(number), kind=kind)
        yield SimpleNamespace(house=house, animal=animal)


def houses(zoo: Any, **conditions: Any) -> list[str]:
    return sorted(each.pk for each in zoo.house.objects.allow_in_memory().filter(**conditions))


def test_each_side_is_read_by_a_key(zoo: Any) -> None:
    with assert_requests(["Query", "BatchGetItem"]):
        assert houses(zoo, animals__kind="owl") == ["N", "S"]


def test_reference_is_followed_by_the_key_of_the_objects(zoo: Any) -> None:
    with assert_requests(["Query", "Query"]):
        found = zoo.animal.objects.allow_in_memory().filter(house__name="North")
        assert sorted(each.kind for each in found) == ["fox", "owl"]


def test_unbounded_query_names_both_ways_out(zoo: Any) -> None:
    with assert_requests([]), pytest.raises(NotSupported, match=r"Query Animal first: .*allow_in_memory\(limit=1000\)"):
        list(zoo.house.objects.filter(animals__kind="owl"))


def test_slice_bounds_a_query_over_relations(zoo: Any) -> None:
    assert [each.pk for each in zoo.house.objects.filter(animals__kind="newt")[:5]] == ["S"]


def test_steps_and_matches_share_one_limit(zoo: Any) -> None:
    query = zoo.animal.objects.filter(house__name="South").order_by("kind")
    assert len(query.allow_in_memory(3)) == 2
    with pytest.raises(TooManyMatches, match=r"1 keys and objects of other steps.*allow_in_memory\(limit=2\)"):
        list(query.allow_in_memory(2))


def test_step_over_the_limit_says_how_many(zoo: Any) -> None:
    with pytest.raises(TooManyMatches, match="finds more than 1 keys or objects, and other steps found 0"):
        list(zoo.house.objects.allow_in_memory(1).filter(animals__kind="owl"))


def by_house(zoo: Any) -> Any:
    """Four animals, in the order of two houses."""
    return zoo.animal.objects.filter(kind__in=["owl", "fox", "newt"]).order_by("house__name")


def animals_of_houses(zoo: Any) -> Any:
    """Two houses with two animals each."""
    return zoo.house.objects.prefetch_related(Prefetch("animals", zoo.animal.objects.order_by("-kind")))


def named(zoo: Any) -> Any:
    """Four animals with the names of two houses."""
    return by_house(zoo).values("house__name")


HELD: dict[str, tuple[Any, int]] = {
    "order": (by_house, 6),
    "rows in an order": (named, 8),  # the houses are read for the order, and for the rows
    "rows by a key": (lambda zoo: zoo.animal.objects.filter(kind="owl").values("house__name"), 2),
    "prefetch": (animals_of_houses, 6),
    "two of one kind": (
        lambda zoo: animals_of_houses(zoo).prefetch_related(
            Prefetch("animals", zoo.animal.objects.filter(kind="owl"), to_attr="owls")
        ),
        8,
    ),
    "prefetch below": (
        lambda zoo: zoo.house.objects.prefetch_related(
            Prefetch("animals", zoo.animal.objects.prefetch_related(Prefetch("house", zoo.house.objects.all(), "home")))
        ),
        8,
    ),
    "prefetch with a value": (
        lambda zoo: zoo.house.objects.prefetch_related(Prefetch("animals", zoo.animal.objects.annotate(n=F("kind")))),
        6,
    ),
}


@pytest.mark.parametrize("name", HELD)
def test_all_objects_share_one_limit(zoo: Any, name: str) -> None:
    made, needed = HELD[name]
    assert list(made(zoo).allow_in_memory(needed))
    with pytest.raises(
        TooManyMatches, match=rf"The limit for all steps is {needed - 1}\.|allow_in_memory\(limit={needed - 1}\)"
    ):
        list(made(zoo).allow_in_memory(needed - 1))


@pytest.mark.parametrize("name", ["order", "prefetch", "rows by a key"])
def test_all_objects_share_one_limit_of_bytes(zoo: Any, name: str) -> None:
    """To the byte."""
    made, _ = HELD[name]
    held = [*zoo.house.objects.all(), *(() if name == "rows by a key" else by_house(zoo).order_by().allow_in_memory())]
    size = sum(item_size(each._stored) for each in held)
    assert list(made(zoo).allow_in_memory(max_bytes=size))
    with pytest.raises(TooManyMatches, match=rf"have {size} bytes.*allow_in_memory\(max_bytes={size - 1}\)"):
        list(made(zoo).allow_in_memory(max_bytes=size - 1))


def test_prefetch_keeps_a_limit_of_its_own(zoo: Any) -> None:
    own = Prefetch("animals", zoo.animal.objects.order_by("-kind").allow_in_memory(9))
    assert len(zoo.house.objects.prefetch_related(own).allow_in_memory(2)) == 2


def test_awaited_prefetch_shares_the_limit(zoo: Any) -> None:
    async def read() -> list[Any]:
        return [each async for each in animals_of_houses(zoo).allow_in_memory(5)]

    with pytest.raises(TooManyMatches, match=r"2 keys and objects of other steps.*limit=5"):
        asyncio.run(read())


def test_objects_of_rows_are_read_once_for_all_pages(zoo: Any) -> None:
    zoo.animal.objects.bulk_create(
        [zoo.animal(house_id="N", animal_id=f"b{n:04}", kind="bat", remark="x" * 30_000) for n in range(50)]
    )
    with assert_requests(["Query", "GetItem", "Query"]):
        assert len(zoo.animal.objects.filter(kind="bat").values("house__name", "remark").allow_in_memory()) == 50


def test_explain_describes_each_step(zoo: Any) -> None:
    text = zoo.house.objects.allow_in_memory().filter(animals__kind="owl").explain()
    step, last = text.split("catalog.House: ")
    assert "catalog.Animal: filter(kind='owl')" in step
    assert "found     2 keys" in step
    assert "BatchGetItem on primary" in last


def test_condition_without_a_key_reads_the_outer_objects_first(zoo: Any) -> None:
    """No key lists all animals, but each house's own."""
    with assert_requests(["Query", "BatchGetItem", "GetItem"]):
        assert houses(zoo, animals__animal_id="3") == ["S"]


def test_child_in_the_trash_meets_no_condition(zoo: Any) -> None:
    zoo.animal.objects.get(house="S", animal_id="2").delete()
    assert houses(zoo, animals__kind="owl") == ["N"]


def test_parent_in_the_trash_meets_no_condition(zoo: Any) -> None:
    zoo.house.objects.get(pk="S").delete()
    found = zoo.animal.objects.allow_in_memory().filter(kind="owl", house__is_heated=True)
    assert list(found) == []


def test_expired_child_meets_no_condition(zoo: Any) -> None:
    animal = zoo.animal.objects.get(house="S", animal_id="2")
    animal.gone = timezone.now() - timedelta(days=1)
    animal.save()
    assert houses(zoo, animals__kind="owl") == ["N"]


def test_consistent_query_reads_no_step_by_an_index(zoo: Any) -> None:
    with pytest.raises(NoAccessPattern):
        list(zoo.house.objects.consistent().allow_in_memory().filter(animals__kind="owl"))


def test_pending_child_is_an_error_in_a_block(zoo: Any) -> None:
    with transactions.atomic():
        zoo.animal.objects.create(house_id="N", animal_id="9", kind="newt")
        with pytest.raises(PendingWrite):
            houses(zoo, animals__kind="newt")


def living(zoo: Any, animals: Any) -> list[str]:
    """The houses with an animal, by a subquery."""
    inner = animals.filter(house=OuterRef("pk"))
    return sorted(each.pk for each in zoo.house.objects.allow_in_memory().filter(Exists(inner)))


def test_subquery_finds_no_child_in_the_trash(zoo: Any) -> None:
    zoo.animal.objects.get(house="S", animal_id="2").delete()
    assert living(zoo, zoo.animal.objects.filter(kind="owl")) == ["N"]


def test_subquery_of_all_objects_finds_the_trash(zoo: Any) -> None:
    zoo.animal.objects.get(house="S", animal_id="2").delete()
    assert living(zoo, zoo.animal.all_objects.filter(kind="owl")) == ["N", "S"]


def test_subquery_of_a_parent_in_the_trash_is_not_read(zoo: Any) -> None:
    zoo.house.objects.get(pk="S").delete()
    assert living(zoo, zoo.animal.objects.filter(kind="owl")) == ["N"]


def test_subquery_finds_no_expired_child(zoo: Any) -> None:
    animal = zoo.animal.objects.get(house="S", animal_id="2")
    animal.gone = timezone.now() - timedelta(days=1)
    animal.save()
    assert living(zoo, zoo.animal.objects.filter(kind="owl")) == ["N"]


def test_subquery_reads_children_by_their_keys(zoo: Any) -> None:
    """No key lists all animals; each key contains a house and the animal."""
    with assert_requests(["Query", "BatchGetItem"]):
        assert living(zoo, zoo.animal.objects.filter(animal_id="3")) == ["S"]


def test_consistent_query_reads_no_subquery_by_an_index(zoo: Any) -> None:
    outer = zoo.house.objects.filter(pk__in=["N", "S"]).consistent().allow_in_memory()
    with pytest.raises(NoAccessPattern):
        list(outer.filter(Exists(zoo.animal.objects.filter(kind="owl"))))
    assert len(outer.filter(Exists(zoo.animal.objects.filter(kind="owl", house=OuterRef("pk"))))) == 2


def test_pending_child_of_a_subquery_is_an_error_in_a_block(zoo: Any) -> None:
    with transactions.atomic():
        zoo.animal.objects.create(house_id="N", animal_id="9", kind="newt")
        with pytest.raises(PendingWrite):
            living(zoo, zoo.animal.objects.filter(kind="newt"))


@pytest.mark.parametrize("name", ["house__code", "house__code__startswith"])
def test_secret_of_another_model_is_no_condition(zoo: Any, name: str) -> None:
    with assert_requests([]), pytest.raises(DisallowedLookup):
        list(zoo.animal.objects.allow_in_memory().without_secrets().filter(**{name: "swordfish"}))


def test_value_of_a_secret_is_in_no_explanation(zoo: Any) -> None:
    text = zoo.animal.objects.allow_in_memory().filter(house__code="swordfish", kind="owl").explain()
    assert "swordfish" not in text


def test_update_changes_what_a_relation_finds(zoo: Any) -> None:
    assert zoo.house.objects.allow_in_memory().filter(animals__kind="newt").update(name="Warm") == 1
    assert zoo.house.objects.get(pk="S").name == "Warm"


def test_deletion_finds_objects_over_a_relation(zoo: Any) -> None:
    zoo.animal.objects.allow_in_memory().filter(kind="owl", house__name="South").delete()
    assert houses(zoo, animals__kind="owl") == ["N"]


def test_steps_are_read_in_an_event_loop(zoo: Any) -> None:
    async def found() -> list[str]:
        return [each.pk async for each in zoo.house.objects.allow_in_memory().filter(animals__kind="newt")]

    assert asyncio.run(found()) == ["S"]


def test_count_and_exists_follow_relations(zoo: Any) -> None:
    query = zoo.house.objects.allow_in_memory().filter(animals__kind="owl")
    assert (query.count(), query.exists(), query.filter(animals__kind="newt").count()) == (2, True, 1)


def test_unknown_attribute_of_another_model_is_reported_at_once(zoo: Any) -> None:
    with pytest.raises(UnknownField, match=r"catalog\.Animal: Cannot resolve keyword 'colour'"):
        zoo.house.objects.filter(animals__colour="red")


# crossings


@pytest.fixture
def lapsed(table: Table) -> Iterator[Any]:
    """Two halls with a seat each; one hall has expired, and one has an expired seat too."""
    with forgotten():
        hall = declare(
            "Hall",
            ("HALL#{hall_id}", "#METADATA"),
            {"all": models.IndexKey("gs1", "HALL", "{hall_id}")},
            hall_id=models.UnicodeAttribute(),
            name=models.UnicodeAttribute(default="Big"),
            gone=models.TTLAttribute(null=True),
        )
        seat = declare(
            "Seat",
            ("HALL#{hall_id}", "SEAT#{number}"),
            hall=models.ReferenceAttribute(hall, on_delete=models.CASCADE, related_name="seats"),
            number=models.UnicodeAttribute(),
            gone=models.TTLAttribute(null=True),
        )
        yesterday, tomorrow = (timezone.now() + timedelta(days=days) for days in (-1, 1))
        for name, gone in (("a", tomorrow), ("b", yesterday)):
            hall.objects.create(hall_id=name, gone=gone)
            seat.objects.create(hall_id=name, number="1")
        seat.objects.create(hall_id="a", number="2", gone=yesterday)
        yield SimpleNamespace(hall=hall, seat=seat)


def seats(lapsed: Any) -> Any:
    return lapsed.seat.objects.allow_in_memory().filter(hall__in=["a", "b"])


LAPSED: dict[str, tuple[Any, list[str]]] = {
    "expired outer object": (
        lambda x: x.hall.objects.allow_in_memory().filter(Exists(x.seat.objects.filter(hall=OuterRef("pk")))),
        ["a"],
    ),
    "expired object of the subquery": (
        lambda x: seats(x).filter(Exists(x.hall.objects.filter(pk=OuterRef("hall_id")))),
        ["a~~1"],
    ),
    "expired object of a filter": (lambda x: seats(x).filter(hall__name="Big"), ["a~~1"]),
    "expired child of a filter": (lambda x: x.hall.objects.allow_in_memory().filter(seats__number="2"), []),
    "expired child of an aggregate": (
        lambda x: x.hall.objects.allow_in_memory().annotate(n=Count("seats")).filter(n=1),
        ["a"],
    ),
}


@pytest.mark.parametrize("name", LAPSED)
def test_expired_objects_are_in_no_step(lapsed: Any, name: str) -> None:
    made, wanted = LAPSED[name]
    assert [each.pk for each in made(lapsed)] == wanted


def test_steps_ignore_the_default_manager(zoo: Any) -> None:
    """A manager that hides objects is for lists; ``base_manager_name`` is for relations, as in Django's joins."""
    hiding = type("Hiding", (models.Manager,), {"get_queryset": lambda self: models.Manager.get_queryset(self).none()})
    with patch.object(zoo.house._meta, "default_manager", hiding()):
        assert sorted(each.kind for each in zoo.animal.objects.allow_in_memory().filter(house__name="North")) == [
            "fox",
            "owl",
        ]


def test_steps_read_by_the_base_manager(zoo: Any) -> None:
    """Its conditions hold for related objects, in filters as in values."""
    heated = zoo.house._base_manager.filter(is_heated=True)
    with patch.object(type(zoo.house._base_manager), "get_queryset", lambda self: heated.all()):
        assert [*zoo.animal.objects.allow_in_memory().filter(house__name="North")] == []


def test_related_objects_are_made_by_from_db(zoo: Any) -> None:
    """A ``from_db()`` that was assigned to the class after a read is used too."""
    list(zoo.animal.objects.filter(kind="owl").select_related("house"))
    made: list[str] = []

    def from_db(cls: Any, *args: Any) -> Any:
        made.append(cls.__name__)
        return super(zoo.house, cls).from_db(*args)

    zoo.house.from_db = classmethod(from_db)
    owls = zoo.animal.objects.filter(kind="owl")
    for each in (owls.select_related("house"), owls.prefetch_related("house"), owls.order_by("house__name")):
        list(each.allow_in_memory())
    assert made == ["House"] * 6
