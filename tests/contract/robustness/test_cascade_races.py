"""Two writers of one family: what one creates, deletes or restores just before a request of the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from dynamo_single import models, transactions
from dynamo_single.contrib.doctor import verify
from dynamo_single.exceptions import MissingReference, StaleObject
from dynamo_single.table import Request, Table
from dynamo_single.testing import assert_requests, intercept
from tests.catalog.clubs import Club, Player, Team, Trophy
from tests.contract.clubs import club, items
from tests.contract.racing import before_write
from tests.contract.robustness.test_cascade_crashes import FEW, MANY
from tests.contract.tables import assert_consistent
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.usefixtures("table")


def another() -> Club:
    """The club as another process has it."""
    return Club.all_objects.get(pk="c")


def test_a_child_that_a_second_deletion_took_comes_back_with_the_parent(table: Table) -> None:
    """It was created below the trash, and deleted by the other process just before the restoration's transaction."""
    made = club()
    made.delete()
    Team.objects.create(club=made, team_id="late")
    with before_write(1, lambda: another().delete()):
        assert made.restore() == (6, {"catalog.Club": 1, "catalog.Team": 3, "catalog.Player": 2})
    assert not [item for item in items(table).values() if "deletedAt" in item]
    assert_consistent()


@pytest.mark.usefixtures("small_transactions")
@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_second_deletion_between_two_transactions_of_a_restoration_leaves_nothing_behind(
    table: Table, number: int
) -> None:
    """Objects that it deletes again with the old marker are restored before the restoration ends."""
    made = club(MANY)
    before = items(table)
    made.delete()
    with before_write(number, lambda: another().delete()):
        made.restore()
    assert items(table) == before


@pytest.mark.usefixtures("small_transactions")
@pytest.mark.parametrize("number", [2, 3, 4])
def test_a_restoration_between_two_transactions_of_a_deletion_ends_it(table: Table, number: int) -> None:
    """The deletion stops below a parent that is live again, and reports it."""
    made = club(MANY)
    before = items(table)
    with (
        before_write(number, lambda: another().restore()),
        pytest.raises(StaleObject, match="another process restored it during the deletion"),
    ):
        made.delete()
    assert not made.is_deleted
    assert items(table) == before


def test_a_restoration_before_an_interrupted_deletion_is_completed_is_a_new_deletion(table: Table) -> None:
    """The object is deleted with a new marker, and is restored completely."""
    made = club()
    made.delete()
    Team.objects.create(club=made, team_id="late")
    with before_write(1, lambda: another().restore()):
        made.delete()
    assert another().is_deleted
    another().restore()
    assert not [item for item in items(table).values() if "deletedAt" in item]


@pytest.mark.usefixtures("small_transactions")
@pytest.mark.parametrize("size", [FEW, MANY])
def test_a_child_that_is_created_while_its_parent_is_deleted_for_good_goes_too(table: Table, size: int) -> None:
    """This includes a child in an index, a child of a child, and one without soft delete, with their claims."""
    made = club(size)

    def create() -> None:
        team = Team.objects.create(club=made, team_id="late")
        Player.objects.create(player_id="late", team=team, number="late")
        Player.objects.create(player_id="later", team_id="c~~b", number="later")
        Trophy.objects.create(club=made, year=1990)

    with before_write(1, create):
        counts = made.hard_delete()[1]
    assert counts == {"catalog.Club": 1, "catalog.Team": 3, "catalog.Player": size + 2, "catalog.Trophy": 1}
    assert items(table) == {}


def test_a_search_without_an_end_is_an_error(table: Table) -> None:
    """If children are created as fast as they are deleted, the error names the command that reports them."""
    made = club(0)
    number = 0

    def interceptor(operation: str, params: Mapping[str, Any]) -> None:
        nonlocal number
        if operation in {"TransactWriteItems", "DeleteItem"}:
            number += 1
            Trophy.objects.create(club_id="c", year=number)

    with intercept(interceptor), pytest.raises(StaleObject, match=r"still creating.*dynamo_verify"):
        made.hard_delete()


@contextmanager
def counted() -> Iterator[tuple[Any, Any]]:
    """Return a parent that counts its cascading children, which an index lists."""
    with forgotten():
        kid = declare(
            "Kid",
            ("KID#{kid_id}", "#METADATA"),
            {"by_parent": models.IndexKey("gs1", "KIDS#{parent_id}", "{kid_id}")},
            kid_id=models.UnicodeAttribute(),
            parent=models.ReferenceAttribute("catalog.Parent", on_delete=models.DO_NOTHING),
            name=models.UnicodeAttribute(null=True, unique=True),
        )
        parent = declare(
            "Parent",
            ("PARENT#{parent_id}", "#METADATA"),
            parent_id=models.UnicodeAttribute(),
            kids=models.Children("catalog.Kid", cascade=True),
            kid_count=models.CounterAttribute("kids"),
        )
        yield parent, kid


@pytest.mark.parametrize("size", [0, 3, 150])
def test_a_counted_parent_is_not_deleted_over_a_child_that_came(table: Table, size: int) -> None:
    """The counter has changed, so the children are searched again before any deletion."""
    with counted() as (parent, kid):
        made = parent.objects.create(parent_id="p")
        kid.objects.bulk_create([kid(kid_id=f"k{number:03}", parent=made) for number in range(size)])
        stale = parent.objects.get(pk="p")

        def create() -> None:
            kid.objects.create(kid_id="late", parent_id="p", name="late")

        with before_write(1, create):
            assert stale.delete()[0] == size + 2
        assert items(table) == {}
        with pytest.raises(MissingReference):
            create()


def test_a_counted_parent_is_read_before_its_children(table: Table) -> None:
    """Its counter is one GetItem more; the search after the last transaction is one Query more."""
    with counted() as (parent, kid):
        made = parent.objects.create(parent_id="p")
        kid.objects.create(kid_id="k", parent=made)
        with assert_requests(["GetItem", "Query", "TransactWriteItems", "Query"]):
            made.delete()


def test_what_the_searches_after_the_last_transaction_send() -> None:
    """One Query per kind of children is sent again below every written object, live or in the trash."""
    made = club(1)
    made.delete()
    with assert_requests([*["Query"] * 2, "TransactWriteItems", *["Query"] * 2]):
        made.restore()


def test_an_interrupted_deletion_in_a_block_with_nothing_left_to_do_joins_nothing() -> None:
    """There is nothing to hold to the parent's state."""
    made = club()
    made.delete()
    with transactions.atomic():
        assert made.delete() == (0, {"catalog.Club": 0})


# inevitable leftovers are reported


def test_the_checker_reports_what_goes_along_with_nobody(table: Table) -> None:
    """Create a live child with a missing parent, and a valid claim."""
    Trophy.objects.create(club_id="gone", year=1990)
    (finding,) = verify()
    assert (finding.kind, finding.key, finding.repair) == ("child without parent", ("CLUB#gone", "TROPHY#p503199"), ())
    assert "CLUB#gone / #METADATA, by club" in finding.text


def test_the_checker_reports_a_child_that_was_left_in_the_trash(table: Table) -> None:
    """Its marker names a live parent or another deletion; ``restore()`` restores it."""
    made = club()
    made.delete()
    update = {
        "Key": {"pk": {"S": "CLUB#c"}, "sk": {"S": "TEAM#a"}},
        "UpdateExpression": "SET deletedAt = :t",
        "ExpressionAttributeValues": {":t": {"N": "1"}},
    }
    table.send(Request("UpdateItem", update))
    found = {(finding.kind, finding.key) for finding in verify()}
    assert ("left in the trash", ("CLUB#c", "TEAM#a")) in found
    made.restore()
    Team.deleted_objects.get(pk="c~~a").restore()
    assert_consistent()


def test_a_family_in_the_trash_is_in_order() -> None:
    """Each child has the root's deletion time, at any depth."""
    club().delete()
    assert_consistent()
