"""The patterns of ``docs/how-to/patterns.md`` with many writers at once: a queue, versions and a leaderboard."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db.models import F, Q

from dynamo_single import models, transactions
from dynamo_single.exceptions import AlreadyExists, ConditionNotMet, Conflict, StaleObject
from dynamo_single.table import Table
from tests.catalog.queues import Dispatch
from tests.contract.tables import assert_consistent
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.usefixtures("table")

WORKERS = 4


def at_once(work: Callable[[int], object]) -> None:
    """Call a function in several threads that start together; raise the first error."""
    barrier = threading.Barrier(WORKERS)
    errors: list[BaseException] = []

    def run(number: int) -> None:
        barrier.wait()
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_each_job_of_a_queue_is_taken_once(table: Table) -> None:
    """The first process to update it takes it."""
    for number in range(12):
        Dispatch.objects.create(dispatch_id=str(number), rank=number)
    taken: Counter[str] = Counter()

    def work(worker: int) -> None:
        for each in Dispatch.objects.filter(status="open").order_by("-rank"):
            owned = Dispatch.objects.filter(pk=each.pk, status="open").update(status="taken", owner=f"w{worker}")
            taken.update([each.pk] * owned)

    at_once(work)
    assert taken == Counter(map(str, range(12)))
    assert not Dispatch.objects.filter(status="open").exists()
    assert_consistent()


@pytest.fixture
def page(table: Table) -> Iterator[Any]:
    """A model of versions."""
    with forgotten():
        yield declare(
            "Leaf",
            ("LEAF#{leaf_id}", "V#{number:06d}"),
            leaf_id=models.UnicodeAttribute(),
            number=models.IntegerAttribute(default=0),
            revision=models.IntegerAttribute(default=0),
            text=models.UnicodeAttribute(default=""),
        )


def test_no_version_is_lost_or_written_over(page: Any) -> None:
    """If several editors start from one revision, the first succeeds, and the others retry."""
    page.objects.create(leaf_id="x")

    def edit(worker: int) -> None:
        while True:
            current = page.objects.get(leaf_id="x", number=0)
            before = current.revision
            current.revision, current.text = before + 1, f"{before + 1} by {worker}"
            try:
                with transactions.atomic():
                    current.save(condition=Q(revision=before))
                    page.objects.create(leaf_id="x", number=before + 1, revision=before + 1, text=current.text)
            except (ConditionNotMet, AlreadyExists, Conflict):
                continue
            return

    at_once(edit)
    history = list(page.objects.filter(leaf_id="x", number__gt=0).order_by("number"))
    assert [each.revision for each in history] == [1, 2, 3, 4]
    present = page.objects.get(leaf_id="x", number=0)
    assert (present.revision, present.text) == (4, history[-1].text)


def test_no_points_are_lost_on_a_leaderboard(table: Table) -> None:
    """The position on the board matches the sum."""
    with forgotten():
        keys = {"board": models.IndexKey("gs1", "BOARD", "{points}#{player}")}
        points = models.IntegerAttribute(default=0)
        score = declare("Points", ("PLAYER#{player}", "#"), keys, player=models.UnicodeAttribute(), points=points)
        for player in ("a", "b"):
            score.objects.create(player=player)

        def play(worker: int) -> None:
            for _ in range(3):
                while True:
                    try:
                        score.objects.filter(player="ab"[worker % 2]).update(points=F("points") + 1 + worker)
                    except StaleObject:
                        continue
                    break

        at_once(play)
        assert [(each.player, each.points) for each in score.objects.order_by("-points")] == [("b", 18), ("a", 12)]
        assert_consistent()
