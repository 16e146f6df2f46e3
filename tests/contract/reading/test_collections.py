"""One Query reads an object with its children, whatever the names of the key's attributes are."""

from __future__ import annotations

import pytest
from django.db.models import Prefetch

from dynamo_single.exceptions import NoAccessPattern
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests
from tests.catalog.clubs import Club
from tests.catalog.tenants import Estate, EstateLetter, Lot, LotRemark, Plot, Stakeholder
from tests.contract.clubs import club
from tests.contract.tables import assert_consistent, everything

PARTITION = "T#acme#E#p5007"


@pytest.fixture(autouse=True)
def estates(table: Table) -> None:
    """Two estates of one tenant, with children and grandchildren."""
    for code in (7, 70):
        estate = Estate.objects.create(tenant="acme", code=code, name=f"V{code}")
        for number in (1, 2, 10):
            lot = Lot.objects.create(estate=estate, number=number, title=f"{code}.{number}")
            LotRemark.objects.create(about=lot, remark_id="a")
            LotRemark.objects.create(about=lot, remark_id="b")
        Stakeholder.objects.create(stake_in=estate, stakeholder_id="i")
        EstateLetter.objects.create(estate=estate, letter_id="l")


def test_parts_of_a_parents_key_stand_in_a_childs_key(table: Table) -> None:
    """A child is in its parent's partition, and contains the complete pk of the parent."""
    found = everything(table)
    assert found[PARTITION, "LOT#p5001"] == {
        "pk": {"S": PARTITION},
        "sk": {"S": "LOT#p5001"},
        "itemType": {"S": "Lot"},
        "gs1pk": {"S": "T#acme#LOTS"},
        "gs1sk": {"S": "7.1#acme~~7#p5001"},
        "estate_id": {"S": "acme~~7"},
        "number": {"N": "1"},
        "title": {"S": "7.1"},
    }
    assert found[PARTITION, "LOT#p5001#REMARK#a"]["about_id"] == {"S": "acme~7E~7E7~~1"}
    assert_consistent()


def test_the_root_and_all_its_children_are_one_query() -> None:
    """The child's name for the parent does not matter, even if the parent's key has two parts."""
    with assert_requests(["Query"]) as sent:
        estate = Estate.objects.prefetch_related("lots", "stakeholders").get(tenant="acme", code=7)
        found = [lot.number for lot in estate.lots.all()], [each.pk for each in estate.stakeholders.all()]
    assert found == ([1, 2, 10], ["acme~7E~7E7~~i"])
    assert sent[0].params["KeyConditionExpression"] == "#a0 = :v0"
    assert sent[0].params["ExpressionAttributeValues"][":v0"] == {"S": PARTITION}


@pytest.mark.usefixtures("table")
def test_the_root_is_found_so_by_its_pk_too() -> None:
    """``get(pk=...)`` names the same values."""
    with assert_requests(["Query"]):
        estate = Estate.objects.prefetch_related("lots").get(pk="acme~~7")
        assert len(estate.lots.all()) == 3


def test_a_child_elsewhere_is_read_by_itself_and_the_others_still_together() -> None:
    """The first Query reads the partition, and the second reads the letters."""
    with assert_requests(["Query", "Query"]):
        estate = Estate.objects.prefetch_related("lots", "letters", "stakeholders").get(pk="acme~~7")
        found = len(estate.lots.all()), len(estate.letters.all()), len(estate.stakeholders.all())
    assert found == (3, 1, 1)


def test_children_of_children_come_by_the_same_query() -> None:
    """If the partition depends only on the root, one Query reads all levels, and each object knows its parent."""
    with assert_requests(["Query"]):
        estate = Estate.objects.prefetch_related("lots__remarks", "stakeholders").get(pk="acme~~7")
        found = {lot.number: [remark.remark_id for remark in lot.remarks.all()] for lot in estate.lots.all()}
        assert all(remark.about.estate is estate for lot in estate.lots.all() for remark in lot.remarks.all())
    assert found == {1: ["a", "b"], 2: ["a", "b"], 10: ["a", "b"]}
    text = Estate.objects.filter(pk="acme~~7").prefetch_related("lots__remarks").explain()
    assert "one Query reads the object and its lots, lots__remarks" in text


def test_children_without_children_of_their_own_have_none() -> None:
    """They have an empty list, without a request."""
    estate = Estate.objects.get(pk="acme~~7")
    estate.lots.create(number=11, title="t")
    with assert_requests(["Query"]):
        estate = Estate.objects.prefetch_related("lots__remarks").get(pk="acme~~7")
        assert [len(lot.remarks.all()) for lot in estate.lots.all()] == [2, 2, 2, 0]


def test_a_queryset_of_ones_own_is_read_by_itself() -> None:
    """The Query would bypass a custom queryset."""
    own = Prefetch("lots", queryset=Lot.objects.filter(number__gte=2))
    with assert_requests(["GetItem", "Query"]):
        estate = Estate.objects.prefetch_related(own).get(pk="acme~~7")
        assert [lot.number for lot in estate.lots.all()] == [2, 10]
    own = Prefetch("lots__remarks", queryset=LotRemark.objects.filter(remark_id="b"))
    with assert_requests(["Query", "BatchGetItem"]):
        estate = Estate.objects.prefetch_related("lots", own).get(pk="acme~~7")
        assert [[each.remark_id for each in lot.remarks.all()] for lot in estate.lots.all()] == [["b"]] * 3


def test_children_of_children_elsewhere_are_a_query_for_each() -> None:
    """A separate part of the child's partition prevents a shared Query with the root."""
    club(2)
    with assert_requests(["Query", "Query", "Query"]):
        found = Club.objects.prefetch_related("teams__players").get(pk="c")
        assert [[player.pk for player in team.players.all()] for team in found.teams.all()] == [[], ["c000", "c001"]]


def test_a_whole_tree_is_deleted_by_one_transaction(table: Table) -> None:
    """A Query per parent finds all levels in the table, and a second search repeats this."""
    before = {key for key in everything(table) if key[0] == "T#acme#E#p5017" and key[1].startswith(("#", "LOT"))}
    assert len(before) == 10
    estate = Estate.objects.get(pk="acme~~70")
    looks = ["Query"] * 4
    with assert_requests([*looks, "TransactWriteItems", *looks]) as sent:
        estate.delete()
    assert all(each.params.get("ConsistentRead") for each in sent if each.operation == "Query")
    assert not before & everything(table).keys()


def test_a_parent_in_the_middle_of_a_partition_is_one_query_with_its_own_children_only() -> None:
    """The range starts with the parent's own key, and excludes number 10 and other parents' children."""
    with assert_requests(["Query"]) as sent:
        lot = Lot.objects.prefetch_related("remarks").get(estate="acme~~7", number=1)
        found = [remark.remark_id for remark in lot.remarks.all()]
    assert found == ["a", "b"]
    assert sent[0].response is not None
    assert sent[0].response["ScannedCount"] == 3


def test_a_nested_parent_in_a_partition_of_its_own_is_one_query_with_its_children() -> None:
    """The partition contains every part of the parent's identity."""
    plot = Plot.objects.create(estate_id="acme~~7", number=1)
    plot.notes.create(note_id="n")
    with assert_requests(["Query"]) as sent:
        plot = Plot.objects.prefetch_related("notes").get(estate="acme~~7", number=1)
        assert [note.note_id for note in plot.notes.all()] == ["n"]
    assert sent[0].params["KeyConditionExpression"] == "#a0 = :v0"


def test_a_queryset_of_children_is_one_query_by_the_parent() -> None:
    """The parent provides all parts of the partition, so no filter is needed."""
    queryset = Lot.objects.filter(estate="acme~~7", number__gte=2)
    assert "filter    item_type='Lot' (" in queryset.explain()
    with assert_requests(["Query"]):
        assert [lot.number for lot in queryset] == [2, 10]


def test_children_of_several_parents_are_a_query_for_each_partition() -> None:
    """``explain()`` shows the same requests."""
    queryset = Estate.objects.filter(pk__in=["acme~~7", "acme~~70"]).prefetch_related("lots")
    assert "prefetch_related('lots'): 1 + N, a Query for each object" in queryset.explain()
    with assert_requests(["BatchGetItem", "Query", "Query"]):
        found = {estate.code: len(estate.lots.all()) for estate in queryset}
    assert found == {7: 3, 70: 3}


def test_explain_tells_what_is_read_by_itself() -> None:
    """The shared Query for the others comes in addition."""
    text = Estate.objects.filter(pk="acme~~7").prefetch_related("lots", "letters").explain()
    assert "one Query reads the object and its lots" in text
    assert "prefetch_related('letters'): by itself, a Query" in text


def test_an_index_with_a_part_of_the_parents_key_lists_what_is_below_several_parents() -> None:
    """A single part does not identify the parent, so it stays a filter."""
    found = Lot.objects.using_index("by_title").filter(estate="acme~~70", title__startswith="70.1")
    assert "filter    estate_id='acme~~70' (" in found.explain()
    with assert_requests(["Query"]) as sent:
        assert [lot.number for lot in found] == [1, 10]
    assert sent[0].params["ExpressionAttributeValues"][":v0"] == {"S": "T#acme#LOTS"}


def test_one_part_of_the_parents_key_is_nothing_to_ask_by() -> None:
    """The error explains that a reference is one value in a query."""
    with pytest.raises(NoAccessPattern):
        list(Lot.objects.filter(number=1))


@pytest.mark.parametrize("wrong", ["acme", "acme~~7~~8"])
def test_a_text_that_is_no_parents_pk_is_refused(wrong: str) -> None:
    """A key cannot be built from half an identity."""
    with pytest.raises(ValueError, match="is not an identity of 2 values"):
        Lot(estate_id=wrong, number=1).save()
