"""Objects with given complete primary keys are read by these keys, and sorted in memory for any order."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F, Prefetch, Q
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynamo_single import models
from dynamo_single.exceptions import NoAccessPattern, NotSupported
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests
from tests.catalog.service import Visit
from tests.deep import examples
from tests.unit.declaring import declare, forgotten

ONE = ["BatchGetItem"]


@pytest.fixture
def model(table: Table) -> Iterator[Any]:
    """Sailors, whose model has an order in which missing ranks come last, and ships with crews of them."""
    with forgotten():
        found: Any = declare(
            "Sailor",
            ("SAILOR#{sailor_id}", "#METADATA"),
            {
                "by_rank": models.IndexKey("gs1", "SAILOR", "{rank:last}#{name}#{sailor_id}"),
                "by_port": models.IndexKey("gs2", "SAILORS#{port}", "{name}#{sailor_id}"),
            },
            bases=(models.SoftDeleteModel,),
            options={"ordering": ("rank",)},
            sailor_id=models.UnicodeAttribute(),
            name=models.UnicodeAttribute(default="n"),
            rank=models.IntegerAttribute(null=True),
            age=models.IntegerAttribute(null=True),
            port=models.UnicodeAttribute(default="p"),
            notes=models.JSONAttribute(null=True),
            expires_at=models.TTLAttribute(),
        )
        ship: Any = declare(
            "Ship",
            ("SHIP#{ship_id}", "#METADATA"),
            ship_id=models.UnicodeAttribute(),
            crew=models.ManyToMany(found, related_name="ships"),
        )
        found.ship = ship
        yield found


@pytest.fixture
def sailors(model: Any) -> Any:
    """Six sailors: two of no rank, two of the same one."""
    for key, name, rank, age in [("a", "n", 3, 9), ("b", "n", None, 8), ("c", "z", 1, 10), ("d", "b", 1, 9)]:
        model.objects.create(sailor_id=key, name=name, rank=rank, age=age)
    model.objects.create(sailor_id="e", name="m", age=8)
    return model.objects.filter(pk__in=list("edcbax"))


def pks(found: Any) -> str:
    """The identities, in order."""
    return "".join(each.pk for each in found)


ORDERS: list[tuple[str, tuple[Any, ...], str]] = [
    ("as the model's key, with missing values last", ("rank",), "dcaeb"),
    ("as the key backwards", ("-rank",), "beacd"),
    ("missing values where they are wanted", (F("rank").asc(nulls_first=True),), "becda"),
    ("by no key, ties by the identity", ("age",), "beadc"),
    ("by no key, backwards", ("-age",), "cdaeb"),
    ("as a key of other partitions", ("port", "name"), "deabc"),
    ("in two directions", ("-rank", "name"), "adceb"),
]


@pytest.mark.parametrize(("order", "expected"), [each[1:] for each in ORDERS], ids=[each[0] for each in ORDERS])
def test_whole_keys_are_sorted_in_any_order(sailors: Any, order: tuple[Any, ...], expected: str) -> None:
    """A single BatchGetItem is enough, and ``reverse()`` is the exact opposite."""
    with assert_requests(ONE):
        assert pks(sailors.order_by(*order)) == expected
    with assert_requests(ONE):
        assert pks(sailors.order_by(*order).reverse()) == expected[::-1]


WAYS: list[tuple[str, Any, Any, list[str]]] = [
    ("the model's own order", pks, "dcaeb", ONE),
    ("a slice", lambda found: pks(found[1:3]), "ca", ONE),
    ("first()", lambda found: found.first().pk, "d", ONE),
    ("last()", lambda found: found.last().pk, "b", ONE),
    ("latest()", lambda found: found.latest("age").pk, "c", ONE),
    ("count()", lambda found: found.count(), 5, ONE),
    ("exists()", lambda found: found.exists(), True, ONE),
    ("iterator()", lambda found: pks(found.iterator()), "dcaeb", ONE),
    ("values()", lambda found: [row["name"] for row in found.values("name")], ["b", "z", "n", "m", "n"], ONE),
    ("values_list()", lambda found: "".join(found.values_list("pk", flat=True)), "dcaeb", ONE),
    ("only()", lambda found: pks(found.only("pk")), "dcaeb", ONE),
    ("a filter beside the keys", lambda found: pks(found.filter(name="n")), "ab", ONE),
    ("consistently", lambda found: pks(found.consistent()), "dcaeb", ONE),
    ("in_bulk() in an order", lambda found: "".join(found.order_by("rank").in_bulk(list("abcde"))), "dcaeb", ONE),
    ("a bound of what is sorted", lambda found: pks(found.order_by("age").allow_in_memory(9)), "beadc", ONE),
    ("joined by |", lambda found: pks(found.filter(pk="b") | found.filter(pk__in=[*"ca"])), "cab", ["GetItem", *ONE]),
]


@pytest.mark.parametrize(("ask", "expected", "requests"), [each[1:] for each in WAYS], ids=[each[0] for each in WAYS])
def test_every_way_to_ask_reads_the_keys(sailors: Any, ask: Any, expected: Any, requests: list[str]) -> None:
    """Every method reads only these keys."""
    with assert_requests(requests):
        assert ask(sailors) == expected


def test_each_hundred_keys_are_one_request(model: Any) -> None:
    """A slice of sorted objects reads all of them."""
    model.objects.bulk_create([model(sailor_id=f"s{n:03}", rank=-n) for n in range(201)])
    asked = model.objects.filter(pk__in=[f"s{n:03}" for n in range(201)])
    with assert_requests(ONE * 3):
        assert [each.pk for each in asked[:2]] == ["s200", "s199"]


def test_trash_and_expired_objects_are_left_out(model: Any, sailors: Any) -> None:
    """The managers of the trash, and of everything, sort by the same rule."""
    model.objects.get(pk="c").delete()
    model.objects.filter(pk="a").update(expires_at=timezone.now() - timedelta(hours=1))
    assert pks(sailors) == "deb"
    with assert_requests(ONE):
        assert pks(model.deleted_objects.filter(pk__in=list("abcde"))) == "c"
    with assert_requests(ONE):
        assert pks(model.all_objects.filter(pk__in=list("abcde"))) == "dceb"
    with assert_requests(ONE):
        assert pks(model.deleted_objects.filter(pk__in=list("abcde")).order_by("-deleted_at")) == "c"


def test_more_than_ten_thousand_keys_are_an_error(model: Any) -> None:
    """Past the limit, an error before any request names the alternative."""
    with assert_requests([]), pytest.raises(NotSupported, match=r"10001 values; .* Send several queries: for start"):
        list(model.objects.filter(pk__in=[str(n) for n in range(10_001)]))


def test_pages_are_read_by_the_key_of_the_order(sailors: Any) -> None:
    """A page cannot be sorted, so it needs a key with the order."""
    page = sailors.page(2)
    assert pks(page) == "dc"
    assert pks(sailors.page(3, page.next_cursor)) == "aeb"
    with pytest.raises(NoAccessPattern, match="a page starts at the end of the previous page"):
        sailors.order_by("age").page(2)


def test_values_without_an_order_are_refused(sailors: Any) -> None:
    with pytest.raises(NoAccessPattern, match="the values of notes have no order"):
        list(sailors.order_by("notes"))


def test_explain_says_what_is_sorted(sailors: Any) -> None:
    assert "order     sorted by rank, name, sailor_id in memory, as by_rank has them" in sailors.explain()
    assert "order     sorted by age, sailor_id in memory\n" in sailors.order_by("age").explain()


def test_alternatives_with_whole_keys_are_merged(sailors: Any, model: Any) -> None:
    """Objects with complete keys are sorted before they are merged with the others."""
    found = model.objects.filter(Q(pk__in=list("dca")) | Q(port="p", name="n"), rank__isnull=False)
    with assert_requests(["BatchGetItem", "Query"]):
        assert pks(found.order_by("name")) == "dac"


@pytest.fixture
def ships(model: Any, sailors: Any) -> Any:
    """Two ships with crews that overlap."""
    first, second = (model.ship.objects.create(ship_id=key) for key in "12")
    first.crew.add(*"abcd")
    second.crew.add(*"ecb")
    return model.ship.objects.order_by().filter(pk__in=["1", "2"])


def test_many_to_many_is_sorted(ships: Any) -> None:
    """The edges by one Query, and the objects by their keys."""
    with assert_requests([*ONE, "Query", *ONE]):
        assert pks(ships[0].crew.all()) == "dcab"
    with assert_requests([*ONE, "Query", *ONE]):
        assert pks(ships[0].crew.order_by("-name")[:2]) == "cb"


def test_prefetched_many_to_many_is_sorted(ships: Any) -> None:
    """Each owner's objects come as its manager would give them."""
    with assert_requests([*ONE, "Query", "Query", *ONE]):
        assert [pks(ship.crew.all()) for ship in ships.prefetch_related("crew")] == ["dcab", "ceb"]
    model = ships.model.crew.field.related_model
    named = Prefetch("crew", model.objects.order_by("-name"), "named")
    assert [pks(ship.named) for ship in ships.prefetch_related(named)] == ["cbad", "cbe"]
    backwards = Prefetch("crew", model.objects.reverse(), "named")
    assert [pks(ship.named) for ship in ships.prefetch_related(backwards)] == ["bacd", "bec"]


def test_references_as_parts_of_whole_keys(table: Table) -> None:
    """The keys combine each given reference with each other part."""
    with forgotten():
        owner: Any = declare("Harbor", ("HARBOR#{harbor_id}", "#METADATA"), harbor_id=models.UnicodeAttribute())
        berth: Any = declare(
            "Berth",
            ("HARBOR#{harbor_id}", "BERTH#{number}"),
            {"by_depth": models.IndexKey("gs1", "BERTH", "{depth}#{harbor_id}#{number}")},
            options={"ordering": ("-depth",)},
            harbor=models.ReferenceAttribute(owner),
            number=models.IntegerAttribute(),
            depth=models.IntegerAttribute(),
        )
        harbors = [owner.objects.create(harbor_id=key) for key in "ab"]
        for number in range(6):
            berth.objects.create(harbor=harbors[number % 2], number=number // 2, depth=number)
        asked = berth.objects.filter(harbor__in=harbors, number__in=[0, 2])
        with assert_requests(ONE):
            assert [each.depth for each in asked] == [5, 4, 1, 0]
        with assert_requests(ONE):
            assert [each.pk for each in asked.order_by("-number")] == ["b~~2", "a~~2", "b~~0", "a~~0"]
        with assert_requests([*ONE, *ONE]):
            assert {each.harbor.pk for each in asked.select_related("harbor")} == {"a", "b"}


def test_references_are_read_by_their_keys(model: Any, sailors: Any) -> None:
    """The order of the model that a reference leads to, or of a ``Prefetch``, does not turn a batch into a listing."""
    logbook: Any = declare(
        "Logbook",
        ("LOGBOOK#{logbook_id}", "#METADATA"),
        {"listed": models.IndexKey("gs1", "LOGBOOK", "{logbook_id}")},
        logbook_id=models.UnicodeAttribute(),
        sailor=models.ReferenceAttribute(model, on_delete=models.DO_NOTHING),
    )
    for key in "ab":
        logbook.objects.create(logbook_id=key, sailor_id=key)
    ordered = Prefetch("sailor", model.objects.order_by("age"))
    for read in (logbook.objects.select_related("sailor"), logbook.objects.prefetch_related(ordered)):
        with assert_requests(["Query", *ONE]):
            assert "".join(each.sailor.pk for each in read) == "ab"


def test_sharded_objects_are_sorted(table: Table) -> None:
    now = timezone.now()
    Visit.objects.bulk_create([Visit(visit_id=str(n), at=now - timedelta(seconds=n)) for n in range(4)])
    with assert_requests(ONE):
        assert "".join(each.pk for each in Visit.objects.filter(pk__in=list("0312")).order_by("at")) == "3210"


def test_unique_values_are_sorted(table: Table) -> None:
    """The claims have no order, so the objects are sorted too."""
    now = timezone.now()
    for number in range(3):
        Visit.objects.create(visit_id=str(number), at=now - timedelta(seconds=number), ticket=f"t{number}")
    with assert_requests([*ONE, *ONE]):
        found = Visit.objects.filter(ticket__in=["t0", "t1", "t2"]).order_by("at")
        assert "".join(each.pk for each in found) == "210"


VALUES = st.none() | st.integers(-3, 3)
ROWS = st.lists(st.tuples(VALUES, VALUES, st.sampled_from(["", "a", "a#", "a!", "b", "é"])), min_size=2, max_size=8)


@pytest.fixture(scope="module")
def sorted_by_keys() -> Iterator[Any]:
    """A model with keys that have missing values first and last, one after the other."""
    with forgotten():
        yield declare(
            "Sortable",
            ("SORTABLE#{number}", "#METADATA"),
            {
                "first": models.IndexKey("gs1", "SORTABLE", "{one:first}#{two:last}#{text:first}#{number}"),
                "last": models.IndexKey("gs2", "SORTABLE", "{two:last}#{text:first}#{number}"),
                "text": models.IndexKey("gs3", "SORTABLE", "{text:last}#{one:first}#{number}"),
            },
            number=models.IntegerAttribute(),
            one=models.IntegerAttribute(null=True),
            two=models.IntegerAttribute(null=True),
            text=models.UnicodeAttribute(null=True, blank=True),
        )


@given(rows=ROWS, order=st.sampled_from([("one",), ("one", "two"), ("two",), ("text",)]), descending=st.booleans())
@settings(max_examples=examples(8, 300), suppress_health_check=list(HealthCheck))
def test_sorted_items_come_as_a_key_has_them(
    table: Table, sorted_by_keys: Any, rows: list[Any], order: tuple[str, ...], descending: bool
) -> None:
    """Missing values, empty strings and ties have the same order as in a list with the key of the order."""
    model = sorted_by_keys
    objects = [model(number=n, one=one, two=two, text=text or None) for n, (one, two, text) in enumerate(rows)]
    model.objects.bulk_create(objects, update_conflicts=True, update_fields=["one", "two", "text"])
    names = [f"-{name}" for name in order] if descending else order
    of_rows = model.objects.filter(number__lt=len(rows)).order_by(*names)
    expected = [each.pk for each in of_rows]
    with assert_requests(ONE):
        assert [each.pk for each in model.objects.filter(pk__in=range(len(rows))).order_by(*names)] == expected
    model.objects.filter(pk__in=range(len(rows))).delete()
