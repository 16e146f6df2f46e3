"""``CounterAttribute(condition=...)`` is exact after every way to write an attribute of the condition."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db.models import F, Q

from dynamo_single import models, transactions
from dynamo_single.contrib.doctor import repair, verify
from dynamo_single.table import Request, Table
from dynamo_single.testing import assert_requests
from tests.catalog.studios import Chore, Venture
from tests.contract.tables import assert_consistent
from tests.unit.declaring import declare, forgotten, messages

pytestmark = pytest.mark.usefixtures("table")


@pytest.fixture
def venture(table: Table) -> Any:
    """A venture without chores."""
    return Venture.objects.create(venture_id="v")


def counts(pk: str = "v") -> tuple[int, int, int]:
    """Return the counts of all, open and urgent chores."""
    found = Venture.objects.consistent().get(pk=pk)
    return found.chore_count, found.open_count, found.urgent_count


def test_only_what_meets_the_condition_counts(venture: Any) -> None:
    with assert_requests(["TransactWriteItems"]):
        Chore.objects.create(chore_id="a", venture=venture)
    Chore.objects.create(chore_id="b", venture=venture, status="done")
    Chore.objects.create(chore_id="c", venture=venture, rank=5)
    assert counts() == (3, 2, 1)


@pytest.mark.parametrize("how", ["save", "update", "F", "bulk_update", "block"])
def test_what_comes_to_meet_it_counts_whatever_writes(venture: Any, how: str) -> None:
    chore = Chore.objects.create(chore_id="a", venture=venture, status="done", rank=4)
    if how == "save":
        chore.status, chore.rank = "open", 5
        chore.save()
    elif how == "update":
        Chore.objects.filter(pk="a").update(status="open", rank=5)
    elif how == "F":
        Chore.objects.filter(pk="a").update(rank=F("rank") + 1, status="open")
    elif how == "bulk_update":
        chore.status, chore.rank = "open", 5
        Chore.objects.bulk_update([chore], ["status", "rank"])
    else:
        with transactions.atomic():
            chore.status, chore.rank = "open", 5
            chore.save()
    assert counts() == (1, 1, 1)
    assert_consistent()


def test_other_changes_are_one_update(venture: Any) -> None:
    chore = Chore.objects.create(chore_id="a", venture=venture)
    chore.note = "x"
    with assert_requests(["UpdateItem"]):
        chore.save()
    assert counts() == (1, 1, 0)


def test_a_change_that_leaves_it_as_it_was_counts_nothing(venture: Any) -> None:
    chore = Chore.objects.create(chore_id="a", venture=venture, status="done")
    chore.status = "dropped"
    with assert_requests(["UpdateItem"]):
        chore.save()
    assert counts() == (1, 0, 0)


def test_it_moves_with_its_parent_and_leaves_with_the_trash(venture: Any) -> None:
    other = Venture.objects.create(venture_id="w")
    chore = Chore.objects.create(chore_id="a", venture=venture, status="burning")
    chore.venture, chore.status = other, "open"
    chore.save()
    assert (counts("v"), counts("w")) == ((0, 0, 0), (1, 1, 0))
    chore.delete()
    assert counts("w") == (0, 0, 0)
    chore.restore()
    assert counts("w") == (1, 1, 0)
    chore.hard_delete()
    assert counts("w") == (0, 0, 0)


def test_two_who_start_from_one_reading_count_once(venture: Any) -> None:
    Chore.objects.create(chore_id="a", venture=venture)
    barrier = threading.Barrier(8)

    def close() -> None:
        barrier.wait()
        Chore.objects.filter(status="open", venture="v").update(status="done")

    threads = [threading.Thread(target=close) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts() == (1, 0, 0)


def test_an_object_that_is_outdated_does_not_count_twice(venture: Any) -> None:
    Chore.objects.create(chore_id="a", venture=venture)
    one, other = (Chore.objects.get(pk="a") for _ in range(2))
    one.status = "done"
    one.save()
    other.rank = 9
    with pytest.raises(Exception, match="was changed by another process since it was read"):
        other.save()
    assert counts() == (1, 0, 0)


def test_a_wrong_number_is_found_and_counted_again(venture: Any, table: Table) -> None:
    Chore.objects.create(chore_id="a", venture=venture)
    table.send(
        Request(
            "UpdateItem",
            {
                "Key": {"pk": {"S": "VENTURE#v"}, "sk": {"S": "#METADATA"}},
                "UpdateExpression": "SET open_count = :n",
                "ExpressionAttributeValues": {":n": {"N": "7"}},
            },
        )
    )
    (finding,) = verify()
    assert "open_count is 7, but there are 1 chores." in str(finding)
    assert repair(finding)
    assert counts() == (1, 1, 0)


@pytest.mark.parametrize(
    "condition",
    [
        Q(nothing=1),
        Q(venture__venture_id="v"),
        Q(rank="x"),
        Q(rank__gt=None),
        Q(step_count__gt=0),
        Q(version__gt=1),
    ],
    ids=str,
)
def test_a_condition_that_cannot_be_asked_is_found(condition: Any) -> None:
    with forgotten():
        made = declare(
            "Boss",
            ("BOSS#{boss_id}", "#METADATA"),
            boss_id=models.IdAttribute(),
            chores=models.Children("catalog.Errand"),
            count_of=models.CounterAttribute("chores", condition=condition),
        )
        declare(
            "Errand",
            ("BOSS#{boss_id}", "ERRAND#{errand_id}"),
            errand_id=models.IdAttribute(),
            boss=models.ReferenceAttribute(made, on_delete=models.DO_NOTHING),
            rank=models.IntegerAttribute(),
            steps=models.Children("catalog.Step"),
            step_count=models.CounterAttribute("steps"),
            version=models.VersionAttribute(),
        )
        declare(
            "Step",
            ("ERRAND#{errand_id}", "STEP#{step_id}"),
            step_id=models.IdAttribute(),
            errand=models.ReferenceAttribute("catalog.Errand", on_delete=models.DO_NOTHING),
        )
        ((id, text),) = messages(made)
    assert id == "dynamo_single.E016"
    assert text.startswith("count_of cannot count chores: the condition does not work for catalog.Errand. ")
