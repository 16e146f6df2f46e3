"""Errors and plans show the keys of an existing table by its own names and in its own values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dynamo_single import models, transactions
from dynamo_single.exceptions import StaleObject, UnexpectedItem
from dynamo_single.table import Table
from tests.contract.adoption.foreign import ALIAS, Foreign, foreign_table, stored
from tests.unit.declaring import declare, forgotten

TEXT, NUMBER = models.UnicodeAttribute, models.IntegerAttribute
UNTYPED = {"TYPE_ATTRIBUTE": None, "RAW_KEYS": True}


@pytest.fixture
def posts(engine: Table) -> Iterator[tuple[Any, Foreign]]:
    """Posts whose keys are attributes, two of them numbers."""
    indexes = {"views": {"name": "by-views", "partition": "views:N"}}
    shape = {"PARTITION_KEY": "forum", "SORT_KEY": "number:N", "INDEXES": indexes}
    with foreign_table(**UNTYPED, **shape) as table, forgotten():
        keys = {"by_views": models.IndexKey("views", "{views}")}
        attributes = {"forum": TEXT(), "number": NUMBER(), "views": NUMBER(default=0)}
        yield declare("Post", ("{forum}", "{number}"), keys, options={"table": ALIAS}, **attributes), table


def test_stale_object_names_the_attribute(posts: tuple[Any, Foreign]) -> None:
    post, _ = posts
    post.objects.create(forum="f", number=1)
    slow, fast = (post.objects.get(forum="f", number=1) for _ in range(2))
    fast.views = 5
    fast.save()
    slow.views = 6
    with pytest.raises(StaleObject, match=r"\(views\)"):
        slow.save()


def test_plan_shows_numbers(posts: tuple[Any, Foreign]) -> None:
    post, _ = posts
    assert "forum = 'f' and number >= 3" in post.objects.filter(forum="f", number__gte=3).explain()
    assert "views = -7" in post.objects.filter(views=-7).explain()


def test_second_change_of_a_block_shows_the_key(posts: tuple[Any, Foreign]) -> None:
    post, _ = posts
    post.objects.create(forum="f", number=1)
    one, other = (post.objects.get(forum="f", number=1) for _ in range(2))
    one.views, other.views = 5, 6
    with pytest.raises(Exception, match=r"forum='f', number=1\b"), transactions.atomic():
        one.save()
        other.save()


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (UNTYPED, "The item PK='ORG#o', SK='USER#a#b' has a key of no model, and .*'FOREIGN'"),
        ({"TYPE_ATTRIBUTE": "_type", "RAW_KEYS": True}, "The item PK='ORG#o', SK='USER#a#b' has _type None, and "),
    ],
    ids=["untyped", "typed"],
)
def test_foreign_item_is_shown_by_names_of_the_table(engine: Table, shape: dict[str, Any], message: str) -> None:
    with foreign_table(**shape, PARTITION_KEY="PK", SORT_KEY="SK") as table, forgotten():
        seat = declare("Seat", ("ORG#{org}", "USER#{user}"), options={"table": ALIAS}, org=TEXT(), user=TEXT())
        table.put(stored(PK="ORG#o", SK="USER#a#b"))
        with pytest.raises(UnexpectedItem, match=message):
            list(seat.objects.filter(org="o"))


def test_key_alone_is_shown_as_it_is_stored(engine: Table) -> None:
    """Dollar signs of a raw key are no escapes."""
    with foreign_table(**UNTYPED, PARTITION_KEY="name", SORT_KEY=None), forgotten():
        member = declare("Member", ("{name}", ""), options={"table": ALIAS}, name=TEXT())
        member.objects.create(name="a$_b")
        assert "name = 'a$_b'" in member.objects.filter(name="a$_b").explain()
