"""Keys that also contain objects without a value: a template places them before or after all others."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db.models import F
from hypothesis import given
from hypothesis import strategies as st

from dynamo_single import models
from dynamo_single.exceptions import ConfigurationError, NoAccessPattern
from dynamo_single.orm.schema.keys.codecs import codec_for
from dynamo_single.orm.schema.keys.template import prefix_end
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests
from tests.unit.declaring import declare, forgotten

DAYS = [None, datetime(2024, 1, 2, tzinfo=UTC), None, datetime(2024, 1, 1, tzinfo=UTC)]


@pytest.fixture
def tasks(table: Table) -> Iterator[Any]:
    """Four tasks, of which some have no day, no text or an empty one."""
    with forgotten():
        model: Any = declare(
            "Errand",
            ("ERRAND#{task_id}", "#METADATA"),
            {
                "by_due": models.IndexKey("gs1", "ERRAND", "{due:last}#{task_id}"),
                "of_owner": models.IndexKey("gs2", "ERRAND#{owner:first}", "{level:first}#{task_id}"),
            },
            task_id=models.UnicodeAttribute(),
            due=models.TimestampAttribute(null=True),
            level=models.IntegerAttribute(null=True),
            owner=models.UnicodeAttribute(default="", blank=True),
        )
        given = zip(DAYS, [None, 2, 1, None], ["mike", "", "", "anna"], strict=True)
        for number, (due, level, owner) in enumerate(given):
            model.objects.create(task_id=f"t{number}", due=due, level=level, owner=owner)
        yield model.objects


def pks(queryset: Any) -> list[str]:
    """The objects of one Query."""
    with assert_requests(["Query"]):
        return [each.pk for each in queryset]


def test_everything_is_listed_in_the_order_of_a_value_that_may_be_missing(tasks: Any) -> None:
    assert pks(tasks.order_by("due")) == ["t3", "t1", "t0", "t2"]
    assert pks(tasks.order_by("-due")) == ["t2", "t0", "t1", "t3"]


def test_an_empty_text_comes_after_a_missing_one_and_before_all_others(table: Table) -> None:
    """This includes canonical forms, which may be empty."""
    with forgotten():
        memo: Any = declare(
            "Memo",
            ("MEMO#{memo_id}", "#METADATA"),
            {"by_note": models.IndexKey("gs1", "MEMO", "{note:canonical:first}")},
            memo_id=models.UnicodeAttribute(),
            note=models.UnicodeAttribute(null=True, blank=True),
        )
        for note in ("b", "", None, "A", " "):
            memo.objects.create(memo_id=repr(note), note=note)
        found = pks(memo.objects.using_index("by_note"))
    assert (found[0], set(found[1:3]), found[3:]) == ("None", {"''", "' '"}, ["'A'", "'b'"])


def test_an_empty_text_is_a_value_of_a_partition(tasks: Any) -> None:
    """The default of an omitted string is the empty string, as in Django."""
    assert pks(tasks.filter(owner="").order_by("level")) == ["t2", "t1"]
    assert pks(tasks.filter(owner="mike")) == ["t0"]


def test_where_missing_values_go_is_answered_or_refused(tasks: Any) -> None:
    assert pks(tasks.order_by(F("due").asc(nulls_last=True))) == ["t3", "t1", "t0", "t2"]
    assert pks(tasks.order_by(F("due").desc(nulls_first=True))) == ["t2", "t0", "t1", "t3"]
    assert pks(tasks.order_by(F("due").asc(nulls_last=True)).reverse()) == ["t2", "t0", "t1", "t3"]
    with pytest.raises(NoAccessPattern, match="sorts items without due at the other end"):
        list(tasks.order_by(F("due").asc(nulls_first=True)))
    dated = tasks.filter(due__isnull=False).order_by(F("due").asc(nulls_first=True))
    assert pks(dated) == ["t3", "t1"]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"due__gt": DAYS[3]}, ["t1"]),
        ({"due__gte": DAYS[3]}, ["t3", "t1"]),
        ({"due__lt": DAYS[1]}, ["t3"]),
        ({"due__lte": DAYS[1]}, ["t3", "t1"]),
        ({"due": DAYS[1]}, ["t1"]),
        ({"due__range": (DAYS[3], DAYS[1])}, ["t3", "t1"]),
        ({"due__isnull": False}, ["t3", "t1"]),
        ({"due__isnull": True}, ["t0", "t2"]),
    ],
    ids=str,
)
def test_comparisons_leave_out_what_has_no_value(tasks: Any, condition: Any, expected: list[str]) -> None:
    """A key range ends at the last value, so no item is read and discarded."""
    queryset = tasks.using_index("by_due").filter(**condition)
    assert pks(queryset) == expected
    assert "filter    none" in queryset.explain()


def test_a_range_of_a_key_with_missing_values_first(tasks: Any) -> None:
    assert pks(tasks.filter(owner="", level__lt=2)) == ["t2"]
    assert pks(tasks.filter(owner="mike", level__lt=2)) == []


def test_a_write_moves_an_object_to_its_place(tasks: Any) -> None:
    """A value that goes, or comes, is a change of the key."""
    tasks.filter(pk="t3").update(due=None)
    obj = tasks.get(pk="t0")
    obj.due = DAYS[3]
    obj.save()
    assert pks(tasks.order_by("due")) == ["t0", "t1", "t2", "t3"]


def test_pages_go_on_among_missing_values(tasks: Any) -> None:
    queryset, found, cursor = tasks.order_by("due"), [], None
    while not found or cursor:
        page = queryset.page(1, cursor)
        found, cursor = [*found, *page], page.next_cursor
    assert [each.pk for each in found] == ["t3", "t1", "t0", "t2"]


def test_a_primary_key_has_all_of_its_values() -> None:
    with pytest.raises(ConfigurationError, match="is part of the identity"):
        models.Key("ERRAND#{task_id:last}", "#METADATA")


TEXTS = st.text(max_size=3) | st.sampled_from(["", "$", "$$", "\U0010fffe", "\U0010ffff", "#", " ", "\x00"])


@given(one=st.none() | TEXTS, other=st.none() | TEXTS, place=st.sampled_from(["first", "last"]))
def test_what_is_written_sorts_as_the_values_do_and_is_never_the_same(
    one: str | None, other: str | None, place: str
) -> None:
    """Stored keys sort like their values and never collide, within the range of their prefix."""
    codec = codec_for("text", place)
    ranks = [(value is None) if place == "last" else (value is not None) for value in (one, other)]
    expected = ((ranks[0], one or "") < (ranks[1], other or ""), one == other)
    for after in ("", "#z", "#"):
        keys = [f"P#{codec.encode(value)}{after}" for value in (one, other)]
        assert (keys[0].encode() < keys[1].encode(), keys[0] == keys[1]) == expected
        assert max(keys) < prefix_end("P#")
