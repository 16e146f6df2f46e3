"""``bulk_create()`` with INSERT statements: 25 objects per request, with separate errors."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import Context
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings
from moto import mock_aws

from dynamo_single import models
from dynamo_single.costs import measure_requests
from dynamo_single.exceptions import (
    AccessDenied,
    AlreadyExists,
    BulkError,
    BulkIntegrityError,
    ItemTooLarge,
    OutcomeUnknown,
    Throttled,
)
from dynamo_single.orm.schema import bindings
from dynamo_single.orm.schema.bindings import Rollout
from dynamo_single.orm.schema.layout import Twin
from dynamo_single.orm.write import bulk_insert
from dynamo_single.table import Table, batches, get_table, request, schema
from dynamo_single.testing import assert_requests, capture_requests, fault, intercept, refuse
from project.directory.models import Company
from tests.catalog.chat import ChatMembership, ChatUser
from tests.catalog.models import Coupon, Member, Order, Resident, Sample, Ticket
from tests.catalog.seats import Essay
from tests.catalog.service import Visit
from tests.catalog.studios import Play
from tests.contract.inserting import answered, lose_next
from tests.contract.table.test_stand_ins import AWS
from tests.contract.table.test_transports import Transport, transport
from tests.rollouts import begin_rollout
from tests.strict import in_front_of
from tests.unit.declaring import declare, forgotten

__all__ = ["transport"]

pytestmark = pytest.mark.usefixtures("attempts_at_once")

INSERTS, PUT, READ = "BatchExecuteStatement", "PutItem", "BatchGetItem"


def companies(numbers: Sequence[int], **values: Any) -> list[Company]:
    """Return unsaved companies with timestamps and a trash."""
    return [Company(company_id=f"c{number:04d}", name="New", **values) for number in numbers]


def pks(objects: Any) -> list[str]:
    """The keys of some objects, in order."""
    return sorted(obj.pk for obj in objects)


# requests


def test_thousand_objects_are_forty_requests() -> None:
    """Timestamps and the trash of a model do not prevent statements."""
    given = companies(range(1000))
    with assert_requests([INSERTS] * 40):
        made = Company.objects.bulk_create(given)
    assert (made.skipped, {obj._state.adding for obj in made}) == ([], {False})
    assert Company.objects.count() == 1000


def test_inserted_objects_are_as_created_ones(table: Table) -> None:
    """The stored items and the objects' state are the same as after ``create()``."""
    made = Company.objects.bulk_create(companies([1, 2], stock="N'Y", public=True))
    for obj in made:
        stored = Company.objects.get(pk=obj.pk)
        assert dict(stored._stored) == dict(obj._stored)
        assert stored.created_at == obj.created_at
    made[0].name = "Newer"
    with assert_requests(["UpdateItem"]):
        made[0].save()


def test_values_are_parameters_only() -> None:
    """No statement contains a value, whatever it looks like."""
    text = '\'} ; DELETE FROM "single-table" -- ?'
    with capture_requests() as sent:
        Sample.objects.bulk_create([Sample(sample_id=f"s{n}", text=text, words={"a'"}) for n in range(3)])
    assert {text} == {sample.text for sample in Sample.objects.all()}
    (only,) = sent
    assert len({each["Statement"] for each in only.params["Statements"]}) == 1
    assert "DELETE" not in only.params["Statements"][0]["Statement"]


def test_batch_size_limits_statements_of_request() -> None:
    """A single object is a plain PutItem, and its error contains the stored item."""
    with capture_requests() as sent:
        Company.objects.bulk_create(companies(range(10)), batch_size=3)
    assert sorted(request.operation for request in sent) == [INSERTS] * 3 + [PUT]
    with assert_requests([PUT]):
        Company.objects.bulk_create(companies([99]))


def test_cost_of_statements_is_that_of_puts() -> None:
    """A batch costs the write units of its items."""
    with measure_requests() as one_by_one:
        Company.objects.bulk_create(companies(range(25)), batch_size=1)
    with measure_requests() as together:
        Company.objects.bulk_create(companies(range(25, 50)))
    assert together.write_units == one_by_one.write_units > 0
    assert (together.requests, one_by_one.requests) == (1, 25)


def test_awaited_bulk_create_sends_statements() -> None:
    """In an event loop too."""

    async def create() -> None:
        await Company.objects.abulk_create(companies(range(30)))

    with assert_requests([INSERTS] * 2):
        asyncio.run(create())
    assert Company.objects.count() == 30


def test_transports_send_the_same(transport: Transport, table: Table) -> None:
    """Both ways of sending, to a server that checks requests as AWS does."""
    with in_front_of(table) as server:
        with _by(transport):
            Company.objects.bulk_create(companies(range(30), stock="é"))
        assert [each.operation for each in server.taken].count(INSERTS) == 2
        assert server.refused == []
    assert {company.stock for company in Company.objects.all()} == {"é"}


@contextmanager
def _by(transport: Transport, **options: Any) -> Iterator[None]:
    declared = settings.DYNAMO_SINGLE
    changed = {**declared["default"], "TRANSPORT": transport.name, **options}
    with override_settings(DYNAMO_SINGLE={**declared, "default": changed}):
        yield


@pytest.mark.parametrize(
    ("objects", "operation"),
    [
        (lambda: [Member(member_id=f"m{n}", email=f"{n}@example.org") for n in range(3)], "TransactWriteItems"),
        (lambda: [Coupon(code=f"c{n}", email=f"{n}@example.org") for n in range(3)], "TransactWriteItems"),
    ],
    ids=["unique values", "expiry"],
)
def test_dependent_models_are_written_one_by_one(objects: Callable[[], list[Any]], operation: str) -> None:
    """An INSERT would not claim a value, nor overwrite what has expired."""
    given = objects()
    with assert_requests([operation] * 3):
        type(given[0]).objects.bulk_create(given)


#: Models by the property that decides whether statements insert them.
INSERTED = {"time stamps and trash": Company, "every type": Sample, "index keys": Order, "folded copies": Resident}
NOT_INSERTED = {
    "unique values": Member,
    "expiry": Ticket,
    "copies and counted children": ChatMembership,
    "sources of copies": ChatUser,
    "checked references": Play,
    "derived objects": Essay,
    "shards": Visit,
}


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        *(pytest.param(model, True, id=name) for name, model in INSERTED.items()),
        *(pytest.param(model, False, id=name) for name, model in NOT_INSERTED.items()),
    ],
)
def test_only_models_without_dependent_items_are_inserted(model: type[Any], expected: bool) -> None:
    """And none whose items expire: a put overwrites an expired item."""
    assert bulk_insert.is_inserted(bindings.binding_of(model)) is expected


def test_large_items_are_cut_at_four_megabytes() -> None:
    """A batch is not larger than a transaction may be."""
    with assert_requests([INSERTS] * 3):
        Sample.objects.bulk_create([Sample(sample_id=f"s{n}", data={"x": "y" * 390_000}) for n in range(25)])
    assert Sample.objects.count() == 25


def test_too_large_item_is_told_by_name() -> None:
    """The other objects of the batch are written."""
    given = [Sample(sample_id=f"s{n}", data={"x": "y" * (410_000 if n == 3 else 5)}) for n in range(6)]
    with pytest.raises(BulkError) as raised:
        Sample.objects.bulk_create(given)
    assert [*raised.value.failed] == ["s3"]
    assert isinstance(raised.value.failed["s3"], ItemTooLarge)
    assert pks(Sample.objects.all()) == ["s0", "s1", "s2", "s4", "s5"]


def test_long_statement_is_written_by_put(monkeypatch: pytest.MonkeyPatch) -> None:
    """DynamoDB takes 8,192 characters; the others of the batch are statements."""
    monkeypatch.setattr(request, "MAX_STATEMENT", 150)
    given = [*companies([1, 2]), *companies([3], stock="N", public=True)]
    with capture_requests() as sent:
        Company.objects.bulk_create(given)
    assert [request.operation for request in sent] == [PUT] * 3
    assert Company.objects.count() == 3


# what exists


def test_existing_object_is_refused_alone() -> None:
    """The other objects of the batch are written, and one read provides the messages of all errors."""
    Company.objects.bulk_create(companies([3, 5]))
    Company.objects.get(pk="c0005").delete()
    given = companies(range(8))
    with assert_requests([INSERTS, READ]), pytest.raises(BulkIntegrityError) as raised:
        Company.objects.bulk_create(given)
    assert pks(obj for obj in given if obj._state.adding) == ["c0003", "c0005"]
    assert len(raised.value.written) == 6
    assert type(raised.value.failed["c0003"]) is AlreadyExists
    assert "in the trash: restore it" in str(raised.value.failed["c0005"])


def test_failure_stops_further_batches() -> None:
    """No further batch is started."""
    Company.objects.create(company_id="c0003", name="Old")
    with assert_requests([INSERTS, READ]), pytest.raises(BulkIntegrityError) as raised:
        Company.objects.bulk_create(companies(range(100)))
    assert (len(raised.value.written), len(raised.value.not_tried)) == (24, 75)
    assert Company.objects.count() == 25


def test_ignored_conflicts_are_not_read() -> None:
    """Existing objects are skipped without a request."""
    Company.objects.bulk_create(companies(range(0, 30, 2)))
    with assert_requests([INSERTS] * 2):
        made = Company.objects.bulk_create(companies(range(30)), ignore_conflicts=True)
    assert pks(made.skipped) == [f"c{n:04d}" for n in range(0, 30, 2)]
    assert Company.objects.count() == 30


def test_conflicts_are_updated_after_one_read() -> None:
    """Each existing object takes one conditional update; new objects are inserted."""
    old = Company.objects.create(company_id="c0001", name="Old", stock="OLD")
    with assert_requests([INSERTS, READ, "UpdateItem"]):
        Company.objects.bulk_create(companies(range(3)), update_conflicts=True, update_fields=["name"])
    found = {company.pk: company for company in Company.objects.all()}
    assert (found["c0001"].name, found["c0001"].stock) == ("New", "OLD")
    assert found["c0001"].created_at == old.created_at
    assert len(found) == 3


def test_object_deleted_before_read_is_created() -> None:
    """Between the statement and the read another process deletes it."""
    old = Company.objects.create(company_id="c0001", name="Old")

    def interceptor(operation: str, params: Mapping[str, Any]) -> None:
        if operation == READ:
            Context().run(old.hard_delete)

    with intercept(interceptor):
        Company.objects.bulk_create(companies(range(3)))
    assert {company.name for company in Company.objects.all()} == {"New"}


# throttling


def test_throttled_statements_are_sent_again_alone() -> None:
    """Throttling codes of statements are retried, also next to other errors."""
    Company.objects.create(company_id="c0002", name="Old")
    first = {"0003": "ThrottlingError", "0004": "ProvisionedThroughputExceeded", "0005": "RequestLimitExceeded"}
    with answered(first, {"0004": "TransactionConflict"}) as seen:
        Company.objects.bulk_create(companies(range(8)), ignore_conflicts=True)
    ends = [[key[-1] for key in keys] for keys in seen]
    assert ends == [[*"01234567"], [*"345"], ["4"]]
    assert Company.objects.count() == 8


def test_statement_throttled_for_good_is_an_error() -> None:
    """The statement fails after eight requests; the other objects are written."""
    given = companies(range(8))
    with answered(*[{"0003": "ThrottlingError"}] * 99) as seen, pytest.raises(BulkError) as raised:
        Company.objects.bulk_create(given)
    assert len(seen) == batches.BATCH_ATTEMPTS
    assert {pk: type(error) for pk, error in raised.value.failed.items()} == {"c0003": Throttled}
    assert pks(Company.objects.all()) == pks(obj for obj in given if not obj._state.adding)
    assert Company.objects.count() == 7


def test_throttled_request_is_sent_again() -> None:
    """DynamoDB rejects a batch if it cannot write any of its items."""
    with refuse("ProvisionedThroughputExceededException", operation=INSERTS, times=3):
        Company.objects.bulk_create(companies(range(8)))
    assert Company.objects.count() == 8


# lost responses


def test_retried_batch_recognizes_its_own_items(transport: Transport, table: Table) -> None:
    """The first response is lost, the second reports existing objects, and one read recognizes the call's own."""
    Company.objects.create(company_id="c0003", name="Old")
    given = companies(range(8))
    with in_front_of(table) as server, _by(transport):
        lose_next(server)
        with pytest.raises(BulkIntegrityError) as raised:
            Company.objects.bulk_create(given)
        sent = [each.operation for each in server.taken]
    assert [each for each in sent if each not in {"GetItem", "Query", "UpdateItem"}] == [INSERTS, INSERTS, READ]
    assert ([*raised.value.failed], len(raised.value.written)) == (["c0003"], 7)
    assert Company.objects.get(pk="c0003").name == "Old"
    for obj in given:
        assert obj._state.adding == (obj.pk == "c0003")


def test_ignored_conflicts_keep_own_items_of_lost_answer(table: Table) -> None:
    """An object that this call has written is not skipped."""
    Company.objects.create(company_id="c0003", name="Old")
    with in_front_of(table) as server:
        lose_next(server)
        made = Company.objects.bulk_create(companies(range(8)), ignore_conflicts=True)
    assert pks(made.skipped) == ["c0003"]


def test_batch_without_answer_is_settled_object_by_object() -> None:
    """If no attempt gets a response, each object is created if it is missing, and compared if it exists."""
    Company.objects.create(company_id="c0003", name="Old")
    given = companies(range(5))
    with fault("lost answer", operation=INSERTS), assert_requests([INSERTS] + [PUT] * 5):
        made = Company.objects.bulk_create(given, ignore_conflicts=True)
    assert pks(made.skipped) == ["c0003"]
    assert Company.objects.count() == 5


def test_dead_endpoint_is_asked_once_more() -> None:
    """If the first object has no outcome either, the others are not tried, and all outcomes are unknown."""
    dead = fault("lost answer", operation=INSERTS), fault("unreachable", operation=PUT)
    with dead[0], dead[1], capture_requests() as sent, pytest.raises(BulkError) as raised:
        Company.objects.bulk_create(companies(range(40)))
    assert [request.operation for request in sent] == [INSERTS, PUT]
    assert (len(raised.value.failed), len(raised.value.not_tried)) == (25, 15)
    assert sum(isinstance(error, OutcomeUnknown) for error in raised.value.failed.values()) == 24


def test_failed_statement_recognizes_its_own_item() -> None:
    """InternalServerError: DynamoDB may have executed it, or not."""
    with answered({"0002": "InternalServerError!", "0003": "InternalServerError"}) as seen:
        Company.objects.bulk_create(companies(range(5)))
    assert [len(keys) for keys in seen] == [5, 2]
    assert Company.objects.count() == 5


def test_statement_that_always_fails_leaves_doubt() -> None:
    """A separate put settles the outcome of the object."""
    given = companies(range(5))
    with answered(*[{"0002": "InternalServerError!"}] * 99), capture_requests() as sent:
        Company.objects.bulk_create(given)
    assert [request.operation for request in sent][-1] == PUT
    assert {obj._state.adding for obj in given} == {False}
    assert Company.objects.count() == 5


# rights and engines


def test_missing_right_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """Objects are created separately, and later calls do not try statements."""
    with refuse("AccessDeniedException", operation=INSERTS), caplog.at_level(logging.WARNING):
        with assert_requests([INSERTS] + [PUT] * 30):
            Company.objects.bulk_create(companies(range(30)))
        with assert_requests([PUT] * 3):
            Company.objects.bulk_create(companies(range(30, 33)))
    (record,) = [each for each in caplog.records if each.name == "dynamo_single.requests"]
    assert "dynamodb:PartiQLInsert" in record.getMessage()
    assert Company.objects.count() == 33


def test_right_lost_midway_writes_nothing_twice() -> None:
    """Between two batches, and within one."""
    denied = dict.fromkeys([f"{n:04d}" for n in range(30, 50)], "AccessDenied")
    with answered({}, denied), capture_requests() as sent:
        Company.objects.bulk_create(companies(range(100)))
    wrote = [each.params["Item"]["pk"]["S"][-4:] for each in sent if each.operation == PUT]
    assert len(wrote) == len({*wrote})
    assert {*denied} <= {*wrote}
    assert {f"{n:04d}" for n in range(30)}.isdisjoint(wrote)
    assert Company.objects.count() == 100


def test_right_lost_after_lost_answer_is_compared(table: Table) -> None:
    """The first attempt has written them; then the role has lost its right."""
    given = companies(range(3))
    for obj in Company.objects.bulk_create(companies(range(2))):
        obj.hard_delete()
    failing = dict.fromkeys(["0000", "0001", "0002"], "InternalServerError!")
    with answered(failing, dict.fromkeys(failing, "AccessDenied")):
        Company.objects.bulk_create(given)
    assert {obj._state.adding for obj in given} == {False}


def test_missing_right_to_put_too_is_an_error() -> None:
    """The table does not change, and no further batch is started."""
    with refuse("AccessDeniedException"), capture_requests() as sent, pytest.raises(AccessDenied):
        Company.objects.bulk_create(companies(range(50)))
    assert [request.operation for request in sent] == [INSERTS, PUT]


def test_engine_without_partiql_gets_puts(caplog: pytest.LogCaptureFixture) -> None:
    """Other engines with DynamoDB's protocol may lack PartiQL."""
    with refuse("UnknownOperationException", operation=INSERTS), caplog.at_level(logging.WARNING):
        Company.objects.bulk_create(companies(range(5)))
    assert Company.objects.count() == 5
    assert "does not support PartiQL" in caplog.text


def test_moto_gets_puts(caplog: pytest.LogCaptureFixture) -> None:
    """Its PartiQL raises ``TypeError`` for parameters."""
    with mock_aws(), override_settings(DYNAMO_SINGLE={"default": AWS}), caplog.at_level(logging.WARNING):
        schema.apply(get_table())
        with assert_requests(["UpdateItem", "GetItem", "UpdateItem"] + [PUT] * 3):
            Company.objects.bulk_create(companies(range(3)))
        assert get_table().takes_statements
    assert "PartiQL" in caplog.text


def test_refused_batch_is_written_one_by_one() -> None:
    """An engine may refuse all statements because of one value; each object then has its own outcome."""
    with refuse("ValidationException", operation=INSERTS), assert_requests([INSERTS] + [PUT] * 5):
        Company.objects.bulk_create(companies(range(5)))
    assert get_table().takes_statements


# pairs


def test_migration_begun_meanwhile_writes_items_anew() -> None:
    """Items that were built for another generation are not inserted."""
    begun: list[str] = []

    def interceptor(operation: str, params: Mapping[str, Any]) -> None:
        if not begun:
            begun.append(operation)
            bindings.begin_generation()

    with intercept(interceptor), capture_requests() as sent:
        Company.objects.bulk_create(companies(range(30)))
    operations = [request.operation for request in sent if request.operation in {INSERTS, PUT}]
    assert operations == [INSERTS] + [PUT] * 5
    assert Company.objects.count() == 30


def test_open_rename_writes_both_names() -> None:
    """Old code reads one name, and new code the other."""
    twin = Twin("name", "title")
    begin_rollout(Company, Rollout((twin,)))
    try:
        with capture_requests() as sent:
            Company.objects.bulk_create(companies(range(3)))
    finally:
        begin_rollout(Company, None)
    (insert,) = [request for request in sent if request.operation == INSERTS]
    for statement in insert.params["Statements"]:
        assert "'name': ?" in statement["Statement"]
        assert "'title': ?" in statement["Statement"]
        assert statement["Parameters"].count({"S": "New"}) == 2


def test_secret_key_is_not_told() -> None:
    """The errors of one object and of several do not contain the key."""
    with forgotten():
        vault = declare("Vault", ("VAULT#{code}", "#METADATA"), code=models.UnicodeAttribute(secret=True))
        vault.objects.bulk_create([vault(code=f"swordfish-{n}") for n in range(3)])
        with pytest.raises(BulkError) as raised:
            vault.objects.bulk_create([vault(code=f"swordfish-{n}") for n in range(6)])
    assert "swordfish" not in str(raised.value)
    assert not any("swordfish" in str(error) for error in raised.value.failed.values())
    assert len(raised.value.written) == 3


def test_versions_begin_with_one() -> None:
    """Statements insert objects with a version, and an update then checks the version."""
    with forgotten():
        draft = declare(
            "Draft",
            ("DRAFT#{draft_id}", "#METADATA"),
            draft_id=models.UnicodeAttribute(),
            version=models.VersionAttribute(),
        )
        with assert_requests([INSERTS]):
            made = draft.objects.bulk_create([draft(draft_id=f"d{n}") for n in range(3)])
        stored = draft.objects.get(pk="d1")
        assert (made[1].version, stored.version) == (1, 1)
        stored.save(force_update=True)
        assert stored.version == 2


def test_racing_calls_create_each_object_once() -> None:
    """If two calls create one key, one call writes the object and the other skips it."""
    numbers = range(60)
    given = [companies(numbers, stock=stock) for stock in ("A", "B", "C")]
    begin = threading.Barrier(len(given), timeout=20)

    def create(objects: list[Company]) -> list[str]:
        begin.wait()
        made = Company.objects.bulk_create(objects, ignore_conflicts=True)
        return pks({*objects} - {*made.skipped})

    with ThreadPoolExecutor(len(given)) as threads:
        written = [*threads.map(create, given)]
    assert sorted(pk for some in written for pk in some) == [f"c{number:04d}" for number in numbers]
    stocks = {company.pk: company.stock for company in Company.objects.all()}
    assert all(stocks[pk] == stock for some, stock in zip(written, "ABC", strict=True) for pk in some)


def test_right_refused_by_test_is_not_remembered() -> None:
    """Another test sends statements again."""
    with fault("denied", operation=INSERTS), assert_requests([INSERTS] + [PUT] * 2):
        Company.objects.bulk_create(companies(range(2)))
    with assert_requests([INSERTS]):
        Company.objects.bulk_create(companies(range(2, 4)))
