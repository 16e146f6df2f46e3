"""PynamoDB's readers leave out what is in the trash or has expired, as querysets do; ``all_objects`` reads it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pynamodb.attributes import UnicodeAttribute
from pynamodb.exceptions import TransactWriteError
from pynamodb.indexes import AllProjection, GlobalSecondaryIndex
from pynamodb.transactions import TransactGet, TransactWrite

from dynamo_single import models
from dynamo_single.exceptions import NotSupported
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests, capture_requests, frozen_time
from project.directory.models import Company
from tests.catalog.models import Entry, Order, Product, Ticket
from tests.unit.declaring import declare, forgotten

SHELF = "SHELF#s"


@pytest.fixture(autouse=True)
def entries(table: Table) -> None:
    """Create two live entries, and between them a deleted entry, an expired entry, and a deleted and expired entry."""
    later, before = timezone.now() + timedelta(days=1), timezone.now() - timedelta(seconds=1)
    for slot in range(5):
        Entry.objects.create(shelf="s", slot=slot, title=f"t{slot}", expires_at=later)
    Entry.objects.filter(shelf="s", slot__in=[1, 3]).delete()
    Entry.all_objects.filter(shelf="s", slot__in=[2, 3]).update(expires_at=before)
    assert {each.slot for each in Entry.objects.filter(shelf="s")} == {0, 4}


def key(slot: int) -> tuple[str, str]:
    """The key of an entry."""
    return Entry(shelf="s", slot=slot).partition_key, Entry(shelf="s", slot=slot).sort_key


READS: list[tuple[str, Any, Any]] = [
    ("query", lambda: [each.slot for each in Entry.query(SHELF)], [0, 4]),
    ("query backwards", lambda: [each.slot for each in Entry.query(SHELF, scan_index_forward=False)], [4, 0]),
    ("query with a filter", lambda: [each.slot for each in Entry.query(SHELF, None, Entry.slot > 0)], [4]),
    (
        "query with a named filter",
        lambda: [each.slot for each in Entry.query(SHELF, filter_condition=(Entry.slot < 2) | (Entry.slot == 3))],
        [0],
    ),
    (
        "query of a range",
        lambda: [each.slot for each in Entry.query(SHELF, Entry.sort_key.startswith("ENTRY#"))],
        [0, 4],
    ),
    ("rate limited query", lambda: [each.slot for each in Entry.query(SHELF, rate_limit=100)], [0, 4]),
    ("consistent query", lambda: [each.slot for each in Entry.query(SHELF, None, None, True)], [0, 4]),
    ("scan", lambda: sorted(each.slot for each in Entry.scan()), [0, 4]),
    ("scan with a filter", lambda: [each.slot for each in Entry.scan(Entry.slot > 0)], [4]),
    ("rate limited scan", lambda: sorted(each.slot for each in Entry.scan(rate_limit=100)), [0, 4]),
    ("parallel scan", lambda: sorted(e.slot for n in (0, 1) for e in Entry.scan(segment=n, total_segments=2)), [0, 4]),
    ("count", lambda: Entry.count(SHELF), 2),
    ("count with a filter", lambda: Entry.count(SHELF, None, Entry.slot > 0), 1),
    ("rate limited count", lambda: Entry.count(SHELF, rate_limit=100), 2),
    ("batch_get", lambda: sorted(each.slot for each in Entry.batch_get([key(slot) for slot in range(5)])), [0, 4]),
    ("batch_get of nothing live", lambda: list(Entry.batch_get([key(1), key(2)])), []),
    ("get", lambda: Entry.get(*key(0)).slot, 0),
]


@pytest.mark.parametrize(("read", "expected"), [row[1:] for row in READS], ids=[row[0] for row in READS])
def test_pynamodbs_readers_leave_out_what_is_hidden(read: Any, expected: Any) -> None:
    """The other arguments do not matter."""
    assert read() == expected


@pytest.mark.parametrize("slot", [1, 2, 3])
def test_get_raises_for_what_is_hidden(slot: int) -> None:
    """The error is the same as for a missing object."""
    with pytest.raises(Entry.DoesNotExist):
        Entry.get(*key(slot))
    with pytest.raises(Entry.DoesNotExist):
        Entry.get(*key(slot), consistent_read=True)
    assert Entry.all_objects.filter(shelf="s", slot=slot).count() == (slot == 1)


def test_transactions_read_what_is_live() -> None:
    """Each future by itself."""
    with TransactGet(connection=Entry._get_connection().connection) as read:
        futures = [read.get(Entry, *key(slot)) for slot in range(5)]
    found = []
    for slot, future in enumerate(futures):
        try:
            found.append(future.get().slot == slot)
        except Entry.DoesNotExist:
            found.append(False)
    assert found == [True, False, False, False, True]


@pytest.mark.parametrize(("slot", "passes"), [(0, True), (1, False), (2, False)])
def test_a_condition_on_another_object_holds_of_live_ones(slot: int, passes: bool) -> None:
    """Otherwise, nothing is written."""

    def write() -> None:
        with TransactWrite(connection=Entry._get_connection().connection) as transaction:
            transaction.condition_check(Entry, *key(slot), condition=Entry.title == f"t{slot}")
            transaction.save(Company(company_id="new", name="New"))

    if passes:
        write()
    else:
        with pytest.raises(TransactWriteError):
            write()
    assert Company.objects.filter(pk="new").exists() is passes


def test_pages_stay_pynamodbs() -> None:
    """``limit``, ``page_size`` and ``last_evaluated_key`` mean what they did: a page may have fewer objects."""
    with capture_requests() as sent:
        assert [each.slot for each in Entry.query(SHELF, limit=2)] == [0, 4]
    assert [request.params["Limit"] for request in sent] == [2, 2, 2]
    pages = Entry.query(SHELF, page_size=2)
    assert next(pages).slot == 0
    after = pages.last_evaluated_key
    assert after is not None
    assert (after["sk"]["S"], [each.slot for each in Entry.query(SHELF, last_evaluated_key=after)]) == (key(1)[1], [4])


def test_what_expires_is_hidden_from_its_time_on() -> None:
    """Also of a model without a trash."""
    Ticket.objects.create(code="a", expires_at=timezone.now() + timedelta(hours=1))
    assert [each.code for each in Ticket.scan()] == ["a"]
    with frozen_time(timezone.now() + timedelta(hours=2)):
        assert list(Ticket.scan()) == []
        assert Ticket.count("TICKET#a") == 0
        with pytest.raises(Ticket.DoesNotExist):
            Ticket.get("TICKET#a", "#METADATA")


def test_a_model_without_trash_and_expiry_is_read_as_before() -> None:
    """Its requests have no further condition."""
    Order.objects.create(customer="c", number=1)
    with capture_requests() as sent:
        assert [each.number for each in Order.query("CUSTOMER#c")] == [1]
    assert sent[0].params["FilterExpression"] == "#1 IN (:1)"


def test_a_record_in_the_trash_is_hidden() -> None:
    """After its restoration, it can be read again."""
    made = Product.objects.create(data={})
    where = (made.partition_key, made.sort_key)
    made.delete()
    assert list(Product.query(where[0])) == []
    with pytest.raises(Product.DoesNotExist):
        Product.get(*where)
    Product.deleted_objects.get(pk=made.pk).restore()
    assert Product.get(*where).pk == made.pk


def test_refresh_reads_an_object_that_is_in_the_trash() -> None:
    """PynamoDB's name for ``refresh_from_db()`` applies to an existing object."""
    entry = Entry.deleted_objects.get(shelf="s", slot=1)
    entry.title = "other"
    entry.refresh()
    assert entry.title == "t1"


def test_counting_a_whole_table_is_refused() -> None:
    """The result would be the number of all models' items."""
    with assert_requests(0), pytest.raises(NotSupported, match=r"Entry\.objects\.count\(\)"):
        Entry.count()


class ByTitle(GlobalSecondaryIndex[Any]):
    """An index as PynamoDB declares it."""

    class Meta:
        index_name = "gs1"
        projection = AllProjection()

    gs1pk = UnicodeAttribute(hash_key=True)
    gs1sk = UnicodeAttribute(range_key=True)


def test_an_index_class_reads_what_is_live(table: Table) -> None:
    """By query, count and scan, at any rate."""
    with forgotten():
        model = declare(
            "Leaf",
            ("LEAF#{leaf_id}", "#METADATA"),
            {"listed": models.IndexKey("gs1", "LEAF", "{leaf_id}")},
            bases=(models.SoftDeleteModel,),
            leaf_id=models.UnicodeAttribute(),
            expires_at=models.TTLAttribute(null=True),
            by_title=ByTitle(),
        )
        for number in range(3):
            model.objects.create(leaf_id=str(number))
        model.objects.get(pk="1").delete()
        model.objects.filter(pk="2").update(expires_at=timezone.now() - timedelta(hours=1))
        assert [each.leaf_id for each in model.by_title.query("LEAF")] == ["0"]
        assert [each.leaf_id for each in model.by_title.query("LEAF", rate_limit=100, limit=5)] == ["0"]
        assert model.by_title.count("LEAF") == 1
        assert model.by_title.count("TRASH#Leaf") == 0
        assert [each.leaf_id for each in model.by_title.scan(rate_limit=100)] == ["0"]
