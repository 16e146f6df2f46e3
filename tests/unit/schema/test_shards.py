"""The shard of an item is part of the stored layout, so these values never change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_single import models
from dynamo_single.exceptions import ConfigurationError, InvalidValue
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.fingerprints import key_fingerprints
from dynamo_single.orm.schema.keys.codecs import codec_for
from dynamo_single.orm.schema.keys.shards import (
    MAX_ENTRIES,
    MAX_SHARDS,
    Entry,
    Schedule,
    Sharding,
    Window,
    place_of,
    shard_suffix,
    split_partition,
)
from tests.catalog.service import ServiceUser, Visit
from tests.unit.declaring import declare, forgotten

#: The first eight bytes of SHA-256, most significant first, modulo the number of shards; decimal numbers from 0.
GOLDEN = [
    ("wf5yU_5f63gqauSOLpP5O", 1, ""),
    ("wf5yU_5f63gqauSOLpP5O", 2, "!1"),
    ("wf5yU_5f63gqauSOLpP5O", 8, "!7"),
    ("wf5yU_5f63gqauSOLpP5O", 64, "!15"),
    ("me@example.org", 8, "!2"),
    ("me@example.org", 64, "!50"),
    ("Gómez", 8, "!0"),
    ("a$23b", 16, "!9"),
    ("", 7, "!1"),
]

ENTRIES = st.tuples(st.integers(1, 100), st.integers(1, MAX_SHARDS), st.sampled_from(["", "canonical"]))
SCHEDULES = st.lists(ENTRIES, min_size=1, max_size=5, unique_by=lambda each: each[0]).map(
    lambda entries: Schedule(tuple(Entry(*each) for each in sorted(entries)))
)

EXACT = Sharding("name", "at", codec_for("text"))
FOLDING = Sharding("name", "at", codec_for("text"), "canonical", (codec_for("text", "canonical"),))


def at(moment: int) -> datetime:
    """A time in seconds since 1970."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=moment)


@pytest.mark.parametrize(("text", "shards", "expected"), GOLDEN)
def test_the_hash_and_the_form_of_numbers_stay(text: str, shards: int, expected: str) -> None:
    """Another hash, or another form, would look for stored items elsewhere."""
    assert shard_suffix(place_of(text, shards)) == expected


def test_keys_of_a_sharded_model_say_so_in_their_fingerprint() -> None:
    """The table therefore knows that its items are sharded, and by which attributes."""
    assert key_fingerprints(registry.layout_of(ServiceUser))["by_created"] == (
        "gs1 user {created:timestamp}#{userId:text} sharded(userId,created)"
    )


@given(place=st.integers(0, MAX_SHARDS), partition=st.sampled_from(["user", "user#1", "email#a", "u!x"]))
def test_a_partition_tells_its_shard(place: int, partition: str) -> None:
    """The number follows the last exclamation mark, if there is one."""
    assert split_partition(partition + shard_suffix(place)) == (partition, place)


@given(schedule=SCHEDULES, text=st.text(max_size=5), moment=st.integers(-10, 120))
def test_an_item_lies_where_it_is_looked_for(schedule: Schedule, text: str, moment: int) -> None:
    """By its identity alone, by its time alone, and by both."""
    place = FOLDING.place(schedule, text, at(moment))
    now = Window(moment, moment)
    assert place in FOLDING.places(schedule, now, [text])
    assert schedule.entry(moment).fold or len(FOLDING.places(schedule, now, [text])) <= 2
    assert place in FOLDING.places(schedule, values=[text])
    assert place in FOLDING.places(schedule, values=[f" {text} "], alike=True)
    assert place in FOLDING.places(schedule, now)
    assert place in FOLDING.places(schedule, Window(moment - 5, moment + 5))
    assert place in FOLDING.places(schedule, Window(None, moment))
    assert place in FOLDING.places(schedule)


@given(schedule=SCHEDULES, text=st.text(max_size=5), moment=st.integers(-10, 120))
def test_an_exact_value_is_in_one_place(schedule: Schedule, text: str, moment: int) -> None:
    """No entry of such a model folds."""
    exact = Schedule(tuple(Entry(each.since, each.shards) for each in schedule.entries))
    place = EXACT.place(exact, text, at(moment))
    assert EXACT.places(exact, Window(moment, moment), [text]) == (place,)


@given(moment=st.integers(0, 120), shards=st.integers(1, MAX_SHARDS))
def test_every_spelling_is_in_one_place(moment: int, shards: int) -> None:
    """An entry that folds hashes what the primary key has."""
    schedule = Schedule((Entry(0, shards, "canonical"),))
    places = {FOLDING.place(schedule, text, at(moment)) for text in ("a@\u00c9.org", " A@e\u0301.ORG", "a@\u00e9.org")}
    assert len(places) == 1


@given(schedule=SCHEDULES, text=st.text(max_size=5), moment=st.integers(-10, 120), shards=st.integers(1, MAX_SHARDS))
def test_a_later_entry_moves_nothing(schedule: Schedule, text: str, moment: int, shards: int) -> None:
    """Older items stay in their shard."""
    later = Schedule((*schedule.entries, Entry(200, shards)))
    assert FOLDING.place(later, text, at(moment)) == FOLDING.place(schedule, text, at(moment))
    assert {*FOLDING.places(schedule)} <= {*FOLDING.places(later)}


def test_items_older_than_the_first_entry_belong_to_it() -> None:
    """There was nothing before."""
    schedule = Schedule((Entry(100, 4), Entry(200, 8)))
    assert EXACT.places(schedule, Window(None, 0)) == (1, 2, 3, 4)
    assert EXACT.places(schedule, Window(150, 199)) == (1, 2, 3, 4)
    assert EXACT.places(schedule, Window(200, None)) == (1, 2, 3, 4, 5, 6, 7, 8)


@pytest.mark.parametrize(
    "entries",
    [
        (),
        (Entry(0, 0),),
        (Entry(0, MAX_SHARDS + 1),),
        (Entry(5, 1), Entry(5, 2)),
        (Entry(6, 1), Entry(5, 2)),
        tuple(Entry(number, 1) for number in range(MAX_ENTRIES + 1)),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(entries: tuple[Entry, ...]) -> None:
    """Each entry must be later than the previous one, and one shard is the minimum."""
    with pytest.raises(InvalidValue):
        Schedule(entries)


def test_the_trash_is_sharded_as_the_model_is() -> None:
    """A whole model could be in it."""
    trash = registry.layout_of(Visit).trash
    assert trash is not None
    assert trash.sharding == registry.layout_of(Visit).primary.sharding


#: A template of the primary key, and the hashed values of its shard entries.
FOLDS = [
    ("{name}", ""),
    ("{name:canonical}", "canonical"),
    ("{band_id}#{name:canonical}", "canonical"),
]


@pytest.mark.parametrize(("sort", "fold"), FOLDS)
def test_shards_fold_as_the_primary_key_does(sort: str, fold: str) -> None:
    """Addresses with equal keys have one shard."""
    with forgotten():
        layout = registry.layout_of(
            declare(
                "Folded",
                ("a", f"b#{sort}", True),
                {"shards": models.Shards("name", at="at")},
                band_id=models.UnicodeAttribute(),
                name=models.UnicodeAttribute(),
                at=models.TimestampAttribute(auto_now_add=True, immutable=True),
            )
        )
        assert layout.sharding is not None
        assert layout.sharding.fold == fold


#: A declaration, and its error.
WRONG = [
    ({"primary": ("a", "b#{a_id}", True)}, "class Keys does not declare the shards"),
    ({"shards": ("a_id", "at")}, "no key has sharded=True"),
    ({"primary": ("a", "b#{a_id}", True), "shards": ("name", "at")}, "which the primary key does not name"),
    ({"primary": ("a", "b#{a_id}", True), "shards": ("a_id", "changed")}, "has and keeps"),
    ({"primary": ("a", "b#{a_id}", True), "shards": ("a_id", "name")}, "has to be a TimestampAttribute"),
    ({"primary": ("a", "b#{a_id}", True), "shards": ("a_id", "never")}, "has to be a TimestampAttribute"),
    ({"primary": ("a", "b#{a_id}", True), "shards": ("a_id", "maybe")}, "that every object has and keeps"),
]


@pytest.mark.parametrize(("declared", "message"), WRONG)
def test_shards_by_what_may_change_are_refused(declared: dict[str, Any], message: str) -> None:
    """An item stays in its shard, and its identity finds it."""
    given = declared.get("shards")
    with forgotten(), pytest.raises(ConfigurationError, match=message):
        registry.layout_of(
            declare(
                "Divided",
                declared.get("primary", ("a", "b#{a_id}")),
                {"shards": models.Shards(given[0], at=given[1])} if given else {},
                a_id=models.IdAttribute(),
                name=models.UnicodeAttribute(default=""),
                at=models.TimestampAttribute(auto_now_add=True, immutable=True),
                changed=models.TimestampAttribute(auto_now=True),
                maybe=models.TimestampAttribute(null=True, immutable=True),
            )
        )
