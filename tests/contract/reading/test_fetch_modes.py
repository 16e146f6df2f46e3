"""Missing references and attributes can be read for one object or for all its peers."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.exceptions import FieldError
from django.test import override_settings

from dynamo_single import models, transactions
from dynamo_single.exceptions import ConfigurationError, FetchBlocked, NotSupported
from dynamo_single.table import SentRequest, Table
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Person
from tests.catalog.models import Sample
from tests.catalog.places import Place, Restaurant

pytestmark = pytest.mark.usefixtures("table")

PEERS, RAISE = models.FETCH_PEERS, models.FETCH_RAISE


def stored(number: int) -> None:
    """So many people, each of a company of its own."""
    numbers = range(number)
    companies = [Company(company_id=f"c{n:03}", name=f"Company {n:03}") for n in numbers]
    Company.objects.bulk_create(companies, update_conflicts=True)
    everybody = [Person(company_id=f"c{n:03}", person_id=f"p{n:03}", name=f"Person {n:03}") for n in numbers]
    Person.objects.bulk_create(everybody, update_conflicts=True)


@pytest.fixture
def hundred() -> None:
    """Create as many people as one BatchGetItem reads."""
    stored(100)


@pytest.fixture
def four() -> None:
    """Some people."""
    stored(4)


def people() -> Any:
    """All people, by name."""
    return Person.objects.using_index("by_name")


# references


def test_one_touch_reads_the_reference_of_all_objects(hundred: None) -> None:
    """The first access reads the hundred companies in one BatchGetItem."""
    with assert_requests(["Query"]):
        found = list(people().fetch_mode(PEERS))
    with assert_requests(["BatchGetItem"]):
        assert [each.company.name for each in found] == [f"Company {n:03}" for n in range(100)]


def test_without_it_each_object_reads_its_own(four: None) -> None:
    """By default, each object takes one GetItem."""
    found = list(people()[:3])
    with assert_requests(["GetItem"] * 3):
        assert len({each.company.pk for each in found}) == 3


def test_objects_that_many_refer_to_are_read_once() -> None:
    """The company of many people is read as a single key."""
    company = Company.objects.create(company_id="c", name="C")
    Person.objects.bulk_create([Person(company=company, person_id=f"p{n}", name="P") for n in range(3)])
    found = list(people().fetch_mode(PEERS))
    with assert_requests(["GetItem"]):
        assert {each.company.name for each in found} == {"C"}


def keys_of(sent: SentRequest) -> list[Any]:
    """The keys of a BatchGetItem."""
    ((_, asked),) = sent.params["RequestItems"].items()
    found: list[Any] = asked["Keys"]
    return found


@pytest.mark.parametrize(
    "read",
    [
        lambda queryset: list(queryset),
        lambda queryset: list(queryset.iterator()),
        lambda queryset: list(queryset.page(3)),
        lambda queryset: async_to_sync(_listed)(queryset),
        lambda queryset: list(queryset.in_bulk(["c000~~p000", "c001~~p001", "c002~~p002"]).values()),
    ],
    ids=["list", "iterator", "page", "awaited", "in_bulk"],
)
def test_peers_are_what_one_reading_gave(four: None, read: Any) -> None:
    """This applies to every kind of read."""
    queryset = Person.objects.fetch_mode(PEERS)
    found = read(queryset if "bulk" in str(read) else queryset.filter(company_id__in=["c000", "c001", "c002"]))
    assert len(found) == 3
    with assert_requests(["BatchGetItem"]):
        assert len({each.company.name for each in found}) == 3


async def _listed(queryset: Any) -> list[Any]:
    return [each async for each in queryset]


def test_the_objects_that_are_read_have_the_mode_too(four: None) -> None:
    """So that a chain of references is one request a step."""
    found = list(people().fetch_mode(PEERS))
    assert found[0].company._state.fetch_mode is PEERS
    with assert_requests([]):
        assert len({each.company.pk for each in found}) == 4
    companies = [each.company for each in found]
    assert len(companies[0]._state.peers) == 4


def test_children_have_the_mode_of_their_parent() -> None:
    """This applies to managers, and to children that are read in the parent's Query."""
    company = Company.objects.create(company_id="c", name="C")
    Person.objects.create(company=company, person_id="p", name="P")
    read = Company.objects.fetch_mode(RAISE).get(pk="c")
    assert read.people.get()._state.fetch_mode is RAISE
    along = Company.objects.fetch_mode(RAISE).prefetch_related("people").get(pk="c")
    assert along.people.all()[0]._state.fetch_mode is RAISE


def test_what_is_not_there_is_said_when_it_is_touched(four: None, table: Table) -> None:
    """The access raises ``DoesNotExist``, as without peers, and other objects are not affected."""
    key = {"pk": {"S": "COMPANY#c001"}, "sk": {"S": "#METADATA"}}
    table.call("DeleteItem", {"TableName": table.name, "Key": key})
    first, second, third = people().fetch_mode(PEERS)[:3]
    with assert_requests(["BatchGetItem"]):
        assert (first.company.pk, third.company.pk) == ("c000", "c002")
    with assert_requests(["GetItem"]), pytest.raises(Company.DoesNotExist):
        _ = second.company


def test_more_than_a_batch_takes_are_several_batches() -> None:
    """A BatchGetItem takes a hundred keys."""
    stored(201)
    found = list(people().fetch_mode(PEERS))
    with assert_requests(["BatchGetItem"] * 3):
        assert len({each.company.pk for each in found}) == 201


def test_a_reference_to_nothing_reads_nothing() -> None:
    """This applies to the object itself and to its peers."""
    Sample.objects.create(sample_id="a")
    Sample.objects.create(sample_id="b", parent_id="a")
    nothing, something = (Sample.objects.fetch_mode(PEERS).in_bulk(["a", "b"])[each] for each in "ab")
    with assert_requests([]):
        assert nothing.parent is None
    with assert_requests(["GetItem"]):
        assert something.parent.pk == "a"


def test_both_sides_of_a_one_to_one_relation() -> None:
    """A batch reads the places; restaurants are read separately, because no complete key identifies them."""
    for number in "12":
        place = Place.objects.create(place_id=number, name="P")
        Restaurant.objects.create(restaurant_id=number, place=place, name="R")
    restaurants = list(Restaurant.objects.fetch_mode(PEERS).in_bulk(["1", "2"]).values())
    with assert_requests(["BatchGetItem"]):
        assert [each.place.pk for each in restaurants] == ["1", "2"]
    places = list(Place.objects.fetch_mode(PEERS).in_bulk(["1", "2"]).values())
    with assert_requests(["GetItem", "GetItem"]):
        assert places[0].restaurant.pk == "1"
    refused = Place.objects.fetch_mode(RAISE).get(pk="1")
    with pytest.raises(FetchBlocked, match=r"Place\.restaurant"):
        _ = refused.restaurant


def test_what_is_known_already_is_not_read(four: None) -> None:
    """An assigned or loaded object is kept."""
    first, second = people().fetch_mode(PEERS)[:2]
    first.company = Company(company_id="c000", name="Set")
    with assert_requests(["GetItem"]):
        assert second.company.name == "Company 001"
    assert first.company.name == "Set"


def test_peers_are_held_weakly(four: None) -> None:
    """An object without other references is not read or kept in memory."""
    gc.freeze()  # to look at all that there is takes seconds
    found = list(people().fetch_mode(PEERS))
    kept = found[:2]
    del found
    gc.collect()
    assert sum(each() is not None for each in kept[0]._state.peers) == 2
    with assert_requests(["BatchGetItem"]) as sent:
        assert kept[0].company.name == "Company 000"
    assert len(keys_of(sent[0])) == 2


def test_an_object_is_pickled_and_copied_without_its_peers(four: None) -> None:
    """The copy keeps its mode, and reads only for itself."""
    first = people().fetch_mode(PEERS)[:2][0]
    for again in (pickle.loads(pickle.dumps(first)), copy.copy(first), copy.deepcopy(first)):
        assert (again._state.fetch_mode, list(again._state.peers)) == (PEERS, [])
        with assert_requests(["GetItem"]):
            assert again.company.name == "Company 000"


def test_a_pending_write_of_a_peer_does_not_keep_an_object_from_reading(four: None) -> None:
    """In an ``atomic()`` block the object reads for itself then."""
    first, second = people().fetch_mode(PEERS)[:2]
    other = Company.objects.get(pk="c001")
    other.name = "Changed"
    with transactions.atomic():
        other.save()
        with assert_requests(["GetItem"]):
            assert first.company.name == "Company 000"
    assert second.company.name == "Changed"


# refused


def test_a_reference_that_is_not_read_is_refused(four: None) -> None:
    """An error before any request names the reference and the alternatives."""
    first = people().fetch_mode(RAISE).first()
    with assert_requests([]), pytest.raises(FetchBlocked, match=r"Fetching of Person\.company blocked. It was"):
        _ = first.company
    assert issubclass(FetchBlocked, FieldError)


def test_a_reference_that_was_read_is_not_refused(four: None) -> None:
    """``select_related()`` reads it along."""
    with assert_requests(["Query", "BatchGetItem"]):
        found = list(people().fetch_mode(RAISE).select_related("company")[:3])
        assert [each.company.pk for each in found] == ["c000", "c001", "c002"]


def test_another_mode_is_refused() -> None:
    """Django's names are the only ones."""
    with pytest.raises(NotSupported, match=r"fetch_mode\('peers'\)"):
        Person.objects.fetch_mode("peers")


# omitted attributes


def test_one_touch_reads_what_was_left_out_of_all_objects(hundred: None) -> None:
    """A single BatchGetItem completes the hundred objects."""
    with assert_requests(["Query"]):
        found = list(people().only("name").fetch_mode(PEERS))
    with assert_requests(["BatchGetItem"]):
        assert {each.role for each in found} == {"member"}
        assert {each.email for each in found} == {None}


def test_what_was_left_out_is_refused(four: None) -> None:
    """The error names the attribute; loaded attributes still work."""
    first = people().only("name").fetch_mode(RAISE).first()
    assert first.name == "Person 000"
    with assert_requests([]), pytest.raises(FetchBlocked, match=r"Fetching of Person\.role blocked"):
        _ = first.role


def test_what_was_set_in_memory_stays(four: None) -> None:
    """The read completes the other attributes."""
    first, second = people().only("name").fetch_mode(PEERS)[:2]
    second.role = "founder"
    assert first.role == "member"
    assert second.role == "founder"
    second.save()
    assert Person.objects.get(pk=second.pk).role == "founder"


def test_an_object_that_is_gone_says_so(four: None) -> None:
    """The peers still get their values."""
    first, second = people().only("name").fetch_mode(PEERS)[:2]
    Person.objects.get(pk=second.pk).hard_delete()
    assert first.role == "member"
    with pytest.raises(Person.DoesNotExist):
        _ = second.role


# the default


@pytest.fixture
def by_default() -> Iterator[None]:
    """The default is peers, unless a queryset has another mode."""
    with override_settings(DYNAMO_SINGLE_FETCH_MODE="peers"):
        yield


def test_a_setting_is_the_default(four: None, by_default: None) -> None:
    """This applies to every queryset without a mode."""
    found = list(people())
    with assert_requests(["BatchGetItem"]):
        assert len({each.company.pk for each in found}) == 4


def test_a_queryset_says_something_else(four: None, by_default: None) -> None:
    """The queryset's mode replaces the default, even if the default would raise an error."""
    found = list(people().fetch_mode(models.FETCH_ONE)[:2])
    with assert_requests(["GetItem"]):
        assert found[0].company.pk == "c000"
    with override_settings(DYNAMO_SINGLE_FETCH_MODE="raise"):
        allowed = people().fetch_mode(models.FETCH_ONE).first()
        assert allowed.company.pk == "c000"
        with pytest.raises(FetchBlocked):
            _ = people().first().company


def test_a_default_that_is_none_is_refused() -> None:
    """The error names the setting at its first use."""
    with override_settings(DYNAMO_SINGLE_FETCH_MODE="all"), pytest.raises(ConfigurationError, match="'one', 'peers'"):
        Person.objects.all()
