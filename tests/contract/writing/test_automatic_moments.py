"""Values derived from an automatic timestamp are written with it, including by a queryset's ``update()``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F, Q, UniqueConstraint

from dynamo_single import clock, models
from dynamo_single.exceptions import StaleObject, UniqueViolation
from dynamo_single.orm.write import save
from dynamo_single.testing import assert_requests, intercept, moved_time
from tests.contract.tables import assert_consistent
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.usefixtures("table")

LATER = timedelta(days=2)
UPDATES: list[Callable[[Any], int]] = [
    lambda found: found.update(text="b"),
    lambda found: found.update(number=F("number") + 1),
    lambda found: found.update(data__place=1),
]


def letter(keys: dict[str, Any] | None = None, **options: Any) -> Any:
    """A model whose ``updated_at`` sets itself."""
    return declare(
        "Letter",
        ("LETTER#{letter_id}", "#METADATA"),
        keys,
        bases=(models.TimestampedModel,),
        options=options,
        letter_id=models.UnicodeAttribute(),
        text=models.UnicodeAttribute(default="a"),
        number=models.IntegerAttribute(default=0),
        data=models.MapAttribute(default=dict),
    )


def recent(**options: Any) -> dict[str, Any]:
    """The key of the last change."""
    return {"recent": models.IndexKey("gs1", "LETTERS", "{updated_at}#{letter_id}", **options)}


@pytest.mark.parametrize("update", UPDATES, ids=["value", "sum", "place"])
def test_a_key_follows_the_moment_of_an_update(update: Callable[[Any], int]) -> None:
    with forgotten():
        model = letter(recent())
        for letter_id in ("1", "2"):
            model.objects.create(letter_id=letter_id)
        with moved_time(LATER), assert_requests(["GetItem", "UpdateItem"]):
            assert update(model.objects.filter(pk="1")) == 1
        assert [each.pk for each in model.objects.order_by("-updated_at")] == ["1", "2"]
        assert_consistent()


@pytest.mark.parametrize("update", UPDATES, ids=["value", "sum", "place"])
def test_a_keys_condition_follows_it(update: Callable[[Any], int]) -> None:
    with forgotten():
        tomorrow = clock.now() + timedelta(days=1)
        model = letter(recent(condition=Q(updated_at__gte=tomorrow)))
        model.objects.create(letter_id="1")
        with moved_time(LATER):
            update(model.objects.filter(pk="1"))
        assert model.objects.filter(updated_at__gte=tomorrow).count() == 1
        assert_consistent()


def test_a_rule_of_what_is_unique_follows_it() -> None:
    with forgotten():
        rule = UniqueConstraint(fields=["text"], condition=Q(updated_at__gte=clock.now() + timedelta(days=1)), name="u")
        model = letter(constraints=[rule])
        for letter_id in ("1", "2"):
            model.objects.create(letter_id=letter_id)
        with moved_time(LATER):
            model.objects.filter(pk="1").update(number=1)
            with pytest.raises(UniqueViolation):
                model.objects.filter(pk="2").update(number=1)
        assert_consistent()


def test_a_number_of_children_follows_it() -> None:
    with forgotten():
        tomorrow = clock.now() + timedelta(days=1)
        parent = declare(
            "Desk",
            ("DESK#{desk_id}", "#METADATA"),
            desk_id=models.UnicodeAttribute(),
            papers=models.Children("Paper"),
            fresh=models.CounterAttribute("papers", condition=Q(updated_at__gte=tomorrow)),
        )
        child = declare(
            "Paper",
            ("DESK#{desk_id}", "PAPER#{paper_id}"),
            bases=(models.TimestampedModel,),
            desk=models.ReferenceAttribute(parent, on_delete=models.DO_NOTHING),
            paper_id=models.UnicodeAttribute(),
            text=models.UnicodeAttribute(default=""),
        )
        desk = parent.objects.create(desk_id="1")
        child.objects.create(desk=desk, paper_id="1")
        with moved_time(LATER):
            child.objects.filter(pk="1~~1").update(text="b")
        desk.refresh_from_db()
        assert desk.fresh == 1
        assert_consistent()


def test_where_nothing_follows_from_it_an_update_is_one_request() -> None:
    with forgotten():
        model = letter()
        model.objects.create(letter_id="1")
        for update in UPDATES:
            with assert_requests(["UpdateItem"]):
                update(model.objects.filter(pk="1"))


@contextmanager
def others_first(model: Any, times: int) -> Iterator[None]:
    """Another writer adds ten before each of the first ``times`` writes."""
    left, theirs = times, False

    def interceptor(operation: str, params: Any) -> None:
        nonlocal left, theirs
        if operation == "UpdateItem" and left and not theirs:
            left, theirs = left - 1, True
            model.objects.filter(pk="1").update(number=F("number") + 10)
            theirs = False

    with intercept(interceptor):
        yield
    assert left == 0


@pytest.fixture
def paused(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """After which attempts a write waited, which takes no time."""
    found = list[int]()

    async def waited(attempt: int, longest: float) -> None:
        found.append(attempt)

    monkeypatch.setattr("dynamo_single.table.table.pause_after", waited)
    return found


def test_an_update_goes_on_where_another_writer_was_faster(paused: list[int]) -> None:
    """The update reads again and adds to the new value: twice immediately, then after increasing pauses."""
    with forgotten():
        model = letter(recent())
        model.objects.create(letter_id="1")
        mine, theirs = ["GetItem", "UpdateItem"], ["GetItem", "UpdateItem"]
        # The other writers' changes come between mine.
        interrupted = [mine[0], *theirs, mine[1]]
        with others_first(model, 4), assert_requests([*interrupted * 4, *mine]):
            assert model.objects.filter(pk="1").update(number=F("number") + 1) == 1
        assert model.objects.get(pk="1").number == 41
        assert paused == [0, 1]
        assert_consistent()


def test_an_update_that_others_always_overtake_ends(paused: list[int]) -> None:
    """After the maximum number of attempts, the update raises an error and does not write anything."""
    with forgotten():
        model = letter(recent())
        model.objects.create(letter_id="1")
        with others_first(model, save.ATTEMPTS), pytest.raises(StaleObject, match="by another process") as raised:
            model.objects.filter(pk="1").update(number=F("number") + 1)
        assert raised.value.__notes__ == [
            "The app read and wrote it 20 times, but another process changed it first each time."
        ]
        assert model.objects.get(pk="1").number == 200
        assert len(paused) == 18


def test_sums_of_many_writers_at_once_are_exact() -> None:
    """Every addition succeeds."""
    with forgotten():
        model = letter(recent())
        model.objects.create(letter_id="1")
        with ThreadPoolExecutor(8) as pool:
            sums = [pool.submit(lambda: model.objects.filter(pk="1").update(number=F("number") + 1)) for _ in range(40)]
        assert [each.result() for each in sums] == [1] * 40
        assert model.objects.get(pk="1").number == 40
        assert_consistent()


def test_what_waiting_does_not_change_is_an_error_at_once(paused: list[int]) -> None:
    """The map of the path no longer exists and no process writes it, so the third attempt is the last."""
    with forgotten():
        model = letter()
        mine = model.objects.create(letter_id="1", data={"deep": {"a": 1}})
        model.objects.filter(pk="1").update(data__deep=models.REMOVE)
        mine.data["deep"]["a"] = 2
        with assert_requests(["UpdateItem", "GetItem"] * 3), pytest.raises(StaleObject):
            model.objects.bulk_update([mine], ["data"])
        assert model.objects.get(pk="1").data == {}
        assert len(paused) == 1
