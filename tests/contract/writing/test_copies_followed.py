"""Counters and unique values that depend on a copy are updated in every way to write its source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db.models import Q, UniqueConstraint

from dynamo_single import models, transactions
from dynamo_single.exceptions import CopiesDue, UniqueViolation
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests
from tests.contract.tables import assert_consistent, everything
from tests.unit.declaring import declare, forgotten, messages

pytestmark = pytest.mark.usefixtures("table")

#: More than one transaction takes.
MANY = 120


def _by_save(team: Any) -> None:
    team.state = "closed"
    team.save()


def _by_update(team: Any) -> None:
    type(team).objects.filter(pk=team.pk).update(state="closed")


def _by_block(team: Any) -> None:
    with transactions.atomic():
        _by_save(team)


WAYS: list[Callable[[Any], None]] = [_by_save, _by_update, _by_block]


@pytest.fixture
def team() -> Iterator[Any]:
    """A team that counts its players by a copy of its own state, under which a number has one player."""
    with forgotten():
        model = declare(
            "Squad",
            ("SQUAD#{squad_id}", "#METADATA"),
            squad_id=models.UnicodeAttribute(),
            state=models.UnicodeAttribute(default="open"),
            players=models.Children("Runner"),
            active=models.CounterAttribute("players", condition=Q(state="open")),
        )
        declare(
            "Runner",
            ("SQUAD#{squad_id}", "RUNNER#{runner_id}"),
            squad=models.ReferenceAttribute(model, on_delete=models.DO_NOTHING),
            runner_id=models.IdAttribute(),
            state=models.CopiedAttribute("squad", "state"),
            number=models.IntegerAttribute(null=True),
            options={
                "constraints": [UniqueConstraint(fields=["number"], condition=Q(state="closed"), name="one_each")]
            },
        )
        yield model.objects.create(squad_id="s")


def fill(team: Any, numbers: list[int | None]) -> Any:
    """Give the team a player for each number, and return the stored team."""
    team.players.model.objects.bulk_create(
        [team.players.model(squad=team, runner_id=f"{place:04}", number=n) for place, n in enumerate(numbers)]
    )
    return type(team).objects.get(pk=team.pk)


@pytest.mark.parametrize("change", WAYS, ids=["save", "update", "block"])
def test_a_number_of_children_by_a_copy_of_their_parent_follows_it(change: Callable[[Any], None], team: Any) -> None:
    team = fill(team, [1, 2, 3])
    assert team.active == 3
    change(team)
    team.refresh_from_db()
    assert team.active == 0
    assert_consistent()


def test_it_follows_in_the_transaction_of_the_parent(team: Any) -> None:
    team = fill(team, [1, 2, 3])
    with assert_requests(["Query", "TransactWriteItems", "Query"]) as sent:
        _by_save(team)
    keys = [str(next(iter(each.values()))) for each in sent[1].params["TransactItems"]]
    assert len(keys) == 1 + 3 + 3  # the team, its players, and the claims on their numbers


def test_it_follows_where_many_transactions_are_taken(team: Any) -> None:
    team = fill(team, [None] * MANY)
    assert team.active == MANY
    _by_save(team)
    team.refresh_from_db()
    assert team.active == 0
    assert_consistent()


@pytest.mark.parametrize("change", WAYS, ids=["save", "update", "block"])
def test_a_value_that_is_taken_refuses_the_change_of_the_source(
    change: Callable[[Any], None], team: Any, table: Table
) -> None:
    """The error names the value instead of a changed object."""
    other = type(team).objects.create(squad_id="o", state="closed")
    fill(other, [7])
    team = fill(team, [7])
    before = everything(table)
    with pytest.raises(UniqueViolation, match=r"Another catalog\.Runner has number 7 \(one_each\)\. Nothing"):
        change(team)
    assert everything(table) == before


@pytest.mark.parametrize("change", WAYS, ids=["save", "update", "block"])
def test_two_holders_cannot_come_to_one_value_together(change: Callable[[Any], None], team: Any, table: Table) -> None:
    team = fill(team, [7, 7])
    before = everything(table)
    with pytest.raises(UniqueViolation, match="has number 7"):
        change(team)
    assert everything(table) == before


@pytest.mark.parametrize("places", [(0, 1), (0, MANY - 1)], ids=["one batch", "two batches"])
def test_copies_that_follow_in_batches_say_which_value_is_taken(places: tuple[int, int], team: Any) -> None:
    """The source is already changed, so the copies stay due until one of the two objects gets another number."""
    team = fill(team, [7 if place in places else None for place in range(MANY)])
    with pytest.raises(
        CopiesDue,
        match=r"some copies of it are not updated yet: Another catalog\.Runner has number 7 \(one_each\)\. Save",
    ):
        _by_save(team)
    team.players.filter(runner_id=f"{places[1]:04}").update(number=8)
    type(team).objects.get(pk="s").save()
    assert type(team).objects.get(pk="s").active == 0
    assert_consistent()


@pytest.mark.parametrize("way", ["save", "update"])
def test_a_copy_of_what_another_object_computes_follows(way: str) -> None:
    """A folded text, and a value out of a document, with the keys that name the copies."""
    with forgotten():
        source = declare(
            "Writer",
            ("WRITER#{writer_id}", "#METADATA"),
            writer_id=models.UnicodeAttribute(),
            name=models.UnicodeAttribute(),
            folded=models.CanonicalAttribute(source="name"),
            data=models.MapAttribute(default=dict),
            town=models.ExtractedAttribute("data__town"),
        )
        holder = declare(
            "Poem",
            ("WRITER#{writer_id}", "POEM#{poem_id}"),
            {
                "by_folded": models.IndexKey("gs1", "POEMS", "{folded}#{poem_id}"),
                "by_town": models.IndexKey("gs2", "POEMSIN#{town}", "{poem_id}"),
            },
            writer=models.ReferenceAttribute(source, on_delete=models.DO_NOTHING),
            poem_id=models.UnicodeAttribute(),
            folded=models.CopiedAttribute("writer", "folded"),
            town=models.CopiedAttribute("writer", "town"),
        )
        assert messages(source) == messages(holder) == []
        writer = source.objects.create(writer_id="w", name="Ann", data={"town": "Bern"})
        holder.objects.create(writer=writer, poem_id="p")
        if way == "save":
            writer.name, writer.data["town"] = "BEA", "Biel"
            writer.save()
        else:
            source.objects.filter(pk="w").update(name="BEA", data__town="Biel")
        assert holder.objects.get(folded="bea").town == "Biel"
        assert holder.objects.filter(town="Biel").count() == 1
        assert_consistent()
