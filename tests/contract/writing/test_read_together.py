"""One Query reads all kinds of children that are adjacent in their parent's partition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dynamo_single import models, transactions
from dynamo_single.exceptions import PendingWrite, UnexpectedItem
from dynamo_single.orm.write.cascade import DELETION, TRASH
from dynamo_single.table import Table
from dynamo_single.table.flow import run
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Office, Person
from tests.other_names import typed
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.usefixtures("table")


@pytest.fixture
def company() -> Company:
    """A company with three people and two offices."""
    made = Company.objects.create(company_id="c1", name="Acme")
    for number in range(3):
        Person.objects.create(company=made, person_id=f"p{number}", name=f"P{number}")
    for number in range(2):
        Office.objects.create(company=made, office_id=f"o{number}", city=f"C{number}")
    return made


@pytest.fixture
def extra() -> Iterator[None]:
    """Unregister the test's models afterwards."""
    with forgotten():
        yield


def beside(label: str, sort: str) -> Any:
    """Return a model in the company's partition without a cascade."""
    attributes = {"company_id": models.UnicodeAttribute(), "number": models.UnicodeAttribute()}
    return declare(label, ("COMPANY#{company_id}", sort), **attributes)


def keys(objects: list[Any]) -> list[str]:
    """Return the keys of objects."""
    return [obj.pk for obj in objects]


# operations on a parent


def test_a_soft_delete_reads_the_partition_once(company: Company) -> None:
    """A Query reads people and offices before the transaction, and another one finds later children."""
    with assert_requests(["Query", "TransactWriteItems", "Query"]):
        assert company.delete() == (6, {"directory.Company": 1, "directory.Person": 3, "directory.Office": 2})


def test_a_restore_reads_the_partition_once(company: Company) -> None:
    """One Query finds the objects to restore; a second one finds objects that another deletion has added since."""
    company.delete()
    with assert_requests(["Query", "TransactWriteItems", "Query"]):
        assert company.restore()[0] == 6


def test_an_interrupted_deletion_is_completed_by_one_query(company: Company) -> None:
    """One Query reads live and deleted children."""
    company.delete()
    Person.objects.create(company=company, person_id="late", name="Late")
    with assert_requests(["GetItem", "Query", "TransactWriteItems"]):
        assert company.delete() == (1, {"directory.Company": 0, "directory.Person": 1})


def test_a_deletion_for_good_reads_the_partition_once(company: Company) -> None:
    """One Query before and one after the deletion find live, deleted and new children."""
    Person.objects.get(company=company, person_id="p0").delete()
    with assert_requests(["Query", "TransactWriteItems", "Query"]):
        assert company.hard_delete()[0] == 6


def test_the_admin_is_told_what_goes_along_by_one_query(company: Company) -> None:
    """This applies to the trash and to permanent deletion."""
    with assert_requests(["Query"]):
        assert keys(run(TRASH.below([company]))) == ["c1~~p0", "c1~~p1", "c1~~p2", "c1~~o0", "c1~~o1"]
    with assert_requests(["Query"]):
        assert len(run(DELETION.below([company]))) == 5


# what lies between


def test_other_models_between_them_are_not_read(company: Company, extra: None) -> None:
    """If other models can be between two kinds, each kind takes a separate Query."""
    between = beside("Between", "ORDER#{number}")
    between.objects.create(company_id="c1", number="1")
    with assert_requests(["Query", "Query"]):
        assert len(run(TRASH.below([company]))) == 5


@pytest.mark.parametrize("sort", ["AAA#{number}", "QQQ#{number}"])
def test_other_models_beside_them_are_no_matter(company: Company, extra: None, sort: str) -> None:
    """They are outside the range of the Query."""
    beside("Outside", sort).objects.create(company_id="c1", number="1")
    with assert_requests(["Query"]) as sent:
        assert len(run(TRASH.below([company]))) == 5
    assert sent[0].response["ScannedCount"] == 5


def test_a_single_item_between_them_is_read_and_left_out(company: Company, extra: None) -> None:
    """A partition has one of it at the most."""
    beside("Single", "ORDER").objects.create(company_id="c1", number="1")
    with assert_requests(["Query"]) as sent:
        assert len(run(TRASH.below([company]))) == 5
    assert sent[0].response["ScannedCount"] == 6


@typed
def test_a_foreign_item_among_the_children_is_named(company: Company, table: Table) -> None:
    """If another program writes an item with a person's key, the read raises an error, as everywhere."""
    key = {"pk": {"S": "COMPANY#c1"}, "sk": {"S": "PEOPLE#p0"}}
    change = {"UpdateExpression": "SET itemType = :type", "ExpressionAttributeValues": {":type": {"S": "Stranger"}}}
    table.call("UpdateItem", {"TableName": table.name, "Key": key, **change})
    with pytest.raises(UnexpectedItem, match="Stranger"):
        company.delete()


# querysets by themselves


def fetched(*querysets: Any) -> list[list[str]]:
    """Return the results of querysets that share a read."""
    querysets[0]._fetch_with(querysets[1:])
    return [keys(list(queryset)) for queryset in querysets]


def test_each_queryset_has_its_own_order(company: Company) -> None:
    """Descending ones too."""
    people, offices = Person.objects.filter(company=company), Office.objects.filter(company=company)
    with assert_requests(["Query"]):
        found = fetched(people.using_index("primary").reverse(), offices.using_index("primary"))
    assert found == [["c1~~p2", "c1~~p1", "c1~~p0"], ["c1~~o0", "c1~~o1"]]


def test_several_parents_are_one_query_each(company: Company) -> None:
    """The results have the requested order of parents."""
    other = Company.objects.create(company_id="c2", name="Other")
    Person.objects.create(company=other, person_id="q", name="Q")
    asked = {"company__in": [other, company]}
    with assert_requests(["Query", "Query"]):
        found = fetched(Person.objects.filter(**asked), Office.objects.filter(**asked))
    assert found == [keys(list(Person.objects.filter(**asked))), keys(list(Office.objects.filter(**asked)))]


def test_conditions_and_visibility_are_each_querysets_own(company: Company) -> None:
    """One queryset can contain objects that another one excludes."""
    Person.objects.get(company=company, person_id="p1").delete()
    people = Person.all_objects.filter(company=company).using_index("primary")
    with assert_requests(["Query"]):
        found = fetched(
            people.with_visibility("deleted"),
            people.with_visibility("live"),
            Office.objects.filter(company=company, opened__isnull=True),
        )
    assert found == [["c1~~p1"], ["c1~~p0", "c1~~p2"], ["c1~~o0", "c1~~o1"]]


@pytest.mark.parametrize(
    "asked",
    [
        lambda company: Person.objects.filter(company=company)[:2],
        lambda company: Person.objects.filter(company=company).values_list("name"),
        lambda company: Person.objects.filter(company=company).only("name"),
        lambda company: Person.objects.filter(company=company).prefetch_related("company"),
        lambda company: Person.objects.filter(company=company, person_id__gt="p0"),
        lambda company: Person.objects.filter(name__startswith="P"),
        lambda company: Person.objects.none(),
    ],
    ids=["slice", "rows", "part", "prefetched", "range", "index", "none"],
)
def test_what_is_no_whole_kind_is_read_by_itself(company: Company, asked: Any) -> None:
    """Such a queryset is read only when it is evaluated."""
    with assert_requests([]):
        asked(company)._fetch_with([Office.objects.filter(company=company)])


# in a transaction


def test_a_block_reads_them_together(company: Company) -> None:
    """The block sends the Query immediately, and the writes at its end."""
    with assert_requests(["Query", "TransactWriteItems"]), transactions.atomic():
        company.delete()


def test_a_pending_write_between_them_is_not_met(company: Company, extra: None) -> None:
    """Each kind is then read separately, since neither contains the pending object."""
    single = beside("Single", "ORDER")
    with assert_requests(["Query", "Query", "TransactWriteItems"]), transactions.atomic():
        single(company_id="c1", number="1").save()
        company.delete()


def test_a_pending_write_of_a_child_is_refused_as_ever(company: Company) -> None:
    """A read would return the former value."""
    person = Person.objects.get(company=company, person_id="p0")
    person.name = "Other"
    with pytest.raises(PendingWrite, match="is written in this atomic"), transactions.atomic():
        person.save()
        company.delete()
