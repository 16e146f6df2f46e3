"""PynamoDB's API on these models: reads and batch writes use the app's request path, and keep every key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pynamodb.exceptions import DoesNotExist, QueryError
from pynamodb.transactions import TransactGet, TransactWrite

from dynamo_single import models
from dynamo_single.exceptions import NotSupported
from dynamo_single.table import SentRequest, Table
from dynamo_single.testing import assert_requests, refuse
from project.directory.models import Company, Person
from tests.catalog.models import Member, Order
from tests.unit.declaring import declare, forgotten


@pytest.fixture(autouse=True)
def people(table: Table) -> None:
    """Create a company with two people, and another company."""
    Company.objects.create(company_id="c1", name="Acme", stock="ACM")
    Company.objects.create(company_id="c2", name="Beta")
    for name in ("Anna", "Mike"):
        Person.objects.create(company_id="c1", person_id=name.lower(), name=name)


READS: list[tuple[str, Any, Any]] = [
    ("query", lambda: [p.name for p in Person.query("COMPANY#c1")], ["Anna", "Mike"]),
    (
        "query with a condition",
        lambda: [p.name for p in Person.query("COMPANY#c1", None, Person.name == "Mike")],
        ["Mike"],
    ),
    (
        "query of a range",
        lambda: [p.name for p in Person.query("COMPANY#c1", Person.sort_key.startswith("PEOPLE#m"))],
        ["Mike"],
    ),
    ("query of another model", lambda: [c.name for c in Company.query("COMPANY#c1")], ["Acme"]),
    ("scan", lambda: sorted(p.name for p in Person.scan()), ["Anna", "Mike"]),
    ("count", lambda: Person.count("COMPANY#c1"), 2),
    ("get", lambda: Company.get("COMPANY#c1", "#METADATA").stock, "ACM"),
    (
        "batch_get",
        lambda: sorted(c.name for c in Company.batch_get([("COMPANY#c1", "#METADATA"), ("COMPANY#c2", "#METADATA")])),
        ["Acme", "Beta"],
    ),
    ("exists", lambda: Company.exists(), True),
]


@pytest.mark.parametrize(("read", "expected"), [row[1:] for row in READS], ids=[row[0] for row in READS])
def test_pynamodbs_reads_give_objects_of_this_model(read: Any, expected: Any) -> None:
    """PynamoDB's reads return objects of this model, without items of other models."""
    assert read() == expected


def test_pynamodbs_requests_pass_the_seam(sent: list[SentRequest]) -> None:
    """They are captured and counted like the app's own."""
    list(Person.query("COMPANY#c1"))
    assert [request.operation for request in sent] == ["Query"]


def test_an_object_that_pynamodb_read_saves_like_any_other() -> None:
    """Its next save sends what changed."""
    company = Company.get("COMPANY#c1", "#METADATA")
    company.name = "Acme Corp"
    with assert_requests(["UpdateItem"]):
        company.save()
    assert Company.objects.get(name="Acme Corp").pk == "c1"


def test_a_missing_object_is_the_models_does_not_exist() -> None:
    """PynamoDB's ``get`` raises the model's own exception."""
    with pytest.raises(Company.DoesNotExist):
        Company.get("COMPANY#c9", "#METADATA")
    assert issubclass(Company.DoesNotExist, DoesNotExist)


def test_pynamodbs_errors_stay_pynamodbs() -> None:
    """On its own path a failure is the exception that PynamoDB documents."""
    with refuse("ValidationException"), pytest.raises(QueryError):
        list(Person.query("COMPANY#c1"))


def test_batch_write_puts_whole_items_with_their_keys() -> None:
    """Indexes find items of PynamoDB's batch writer."""
    with Order.batch_write() as batch:
        batch.save(Order(customer="c", number=1, coupon="SAVE"))
        batch.save(Order(customer="c", number=2))
    assert [order.number for order in Order.objects.filter(coupon="SAVE")] == [1]
    with Order.batch_write() as batch:
        batch.delete(Order.objects.get(customer="c", number=1))
    assert Order.objects.filter(customer="c").count() == 1


def test_transactions_of_pynamodb_read_and_write() -> None:
    """``TransactWrite`` and ``TransactGet`` take these models and pass the seam."""
    connection = Company._get_connection().connection
    with assert_requests(["TransactWriteItems", "TransactGetItems"]):
        with TransactWrite(connection=connection) as write:
            write.save(Company(company_id="c3", name="Gamma"))
        with TransactGet(connection=connection) as read:
            future = read.get(Company, "COMPANY#c3", "#METADATA")
    assert future.get().name == "Gamma"


@pytest.mark.parametrize("name", ["create_table", "delete_table", "update_ttl"])
def test_a_model_neither_makes_nor_deletes_the_table(name: str) -> None:
    """The table belongs to all models, so the error names the command that creates it."""
    with assert_requests(0), pytest.raises(NotSupported, match=r"manage\.py dynamo_setup"):
        getattr(Company, name)()


@pytest.mark.parametrize("method", ["save", "delete"])
def test_conditions_of_pynamodb_are_not_dropped_in_silence(method: str) -> None:
    """A positional condition, as in PynamoDB, raises a TypeError before any write."""
    company = Company.objects.get(pk="c1")
    with assert_requests(0), pytest.raises(TypeError):
        getattr(company, method)(Company.name == "Other")


@pytest.mark.parametrize("write", ["batch", "transaction save", "transaction delete", "transaction update"])
def test_pynamodbs_writers_do_not_leave_unique_values_behind(write: str) -> None:
    """A model with dependent items raises an error before any write."""
    member = Member.objects.create(member_id="m1", email="a@example.org")
    transaction = TransactWrite(connection=Company._get_connection().connection)
    steps: dict[str, Any] = {
        "batch": lambda: Member.batch_write(),
        "transaction save": lambda: transaction.save(member),
        "transaction delete": lambda: transaction.delete(member),
        "transaction update": lambda: transaction.update(member, actions=[Member.name.set("x")]),
    }
    with assert_requests(0), pytest.raises(NotSupported, match=r"save\(\)"):
        steps[write]()


@pytest.fixture(params=["CASCADE", "PROTECT", "SET_NULL", "many to many"])
def referred(request: Any) -> Iterator[Any]:
    """An object that others follow, or are to keep."""
    with forgotten():
        edges = {"friends": models.ManyToMany("self", symmetrical=False)} if request.param == "many to many" else {}
        inn = declare("Inn", ("INN#{inn_id}", "#METADATA"), inn_id=models.UnicodeAttribute(), **edges)
        declare(
            "Lodger",
            ("LODGER#{lodger_id}", "#METADATA"),
            {"by_inn": models.IndexKey("gs1", "LODGERS#{inn_id}", "{lodger_id}")},
            lodger_id=models.UnicodeAttribute(),
            inn=models.ReferenceAttribute(inn, null=True, on_delete=getattr(models, request.param, models.DO_NOTHING)),
        )
        yield inn.objects.create(inn_id="i")


@pytest.mark.parametrize("write", ["batch", "transaction"])
def test_pynamodbs_deletion_is_refused_where_others_follow(write: str, referred: Any) -> None:
    """The deletion would leave references to the object, such as edges of many-to-many relations."""
    transaction = TransactWrite(connection=Company._get_connection().connection)
    delete = type(referred).batch_write().delete if write == "batch" else transaction.delete
    with assert_requests(0), pytest.raises(NotSupported, match=r"follow the references to it: .*Use delete\(\)"):
        delete(referred)


@pytest.mark.parametrize(
    "call",
    [
        lambda: Company.query("COMPANY", index_name="gs1"),
        lambda: Company.query("COMPANY", None, None, False, "gs1"),
        lambda: Company.count("COMPANY", index_name="by_name"),
    ],
    ids=["query", "query by position", "count"],
)
def test_an_index_is_asked_by_a_queryset(call: Any) -> None:
    """PynamoDB looks for a class of its own for an index; the error names the method of querysets."""
    with assert_requests(0), pytest.raises(NotSupported, match=r"Company\.objects\.using_index\('(gs1|by_name)'\)"):
        call()
