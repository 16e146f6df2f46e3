"""Memory up to the limit of ``allow_in_memory()``: it depends on the limit rather than the number of stored items."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from django.db.models import Count, F, Prefetch

from dynamo_single import models
from dynamo_single.exceptions import TooManyMatches
from dynamo_single.table import Table
from tests.deep import deep
from tests.unit.declaring import declare, forgotten

#: How many items are stored: several pages of 1 MB, and many. A query's memory must not grow with them.
SMALL, LARGE = 5_000, 20_000
LIMIT = 1_000
#: How much more a query may take in the larger table: the requests' own objects.
TOLERANCE = 1.25


@pytest.fixture
def word(table: Table) -> Iterator[Any]:
    """Words of 300 bytes under a topic each, by their letters."""
    with forgotten():
        topic = declare(
            "Topic",
            ("TOPIC#{topic_id}", "#METADATA"),
            {"all": models.IndexKey("gs1", "TOPIC", "{topic_id}")},
            topic_id=models.UnicodeAttribute(),
        )
        yield declare(
            "Word",
            ("WORD#{word_id}", "#METADATA"),
            {
                "all": models.IndexKey("gs1", "WORD", "{word_id}"),
                "by": models.IndexKey("gs2", "OF#{topic_id}", "{word_id}"),
            },
            word_id=models.UnicodeAttribute(),
            letter=models.UnicodeAttribute(),
            text=models.UnicodeAttribute(),
            topic=models.ReferenceAttribute(topic, on_delete=models.CASCADE, related_name="words"),
        )


def stored(word: Any, start: int, stop: int) -> None:
    """Store words; fifty of them have a rare letter, and each hundred has a topic."""
    topic = word._meta.get_field("topic").related_model
    topic.objects.bulk_create([topic(topic_id=f"t{n:05}") for n in range(start // 100, stop // 100)])
    made = (
        word(word_id=f"w{n:05}", letter="q" if n < 50 else "abc"[n % 3], text="x" * 200, topic_id=f"t{n // 100:05}")
        for n in range(start, stop)
    )
    word.objects.bulk_create(made)


def peak(run: Callable[[], Any]) -> int:
    """Return the most bytes that were held at once, after a first run that fills the caches."""
    for _ in range(2):
        gc.collect()
        tracemalloc.start()
        with suppress(TooManyMatches):
            run()
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return held


def words(word: Any, limit: int = LIMIT, **options: int) -> Any:
    """All words, of which most are read and discarded by some queries."""
    return word.objects.allow_reads(10**6).allow_in_memory(limit, **options)


def topics(word: Any) -> Any:
    topic = word._meta.get_field("topic").related_model
    return topic.objects.allow_reads(10**6).allow_in_memory(LIMIT)


QUERIES: dict[str, Callable[[Any], Any]] = {
    "too many matches": lambda word: list(words(word).order_by("letter")),
    "too many bytes": lambda word: list(words(word, 10**6, max_bytes=300_000).order_by("letter")),
    "few of many": lambda word: list(words(word).filter(letter="q").order_by("text")),
    "computed condition": lambda word: list(words(word).annotate(x=F("letter")).filter(x="q")),
    "groups": lambda word: list(words(word).values("letter").annotate(n=Count("pk"))),
    "order by a reference": lambda word: list(words(word).filter(letter="q").order_by("topic__topic_id", "text")),
    "relation": lambda word: list(topics(word).filter(words__letter="a")),
    "prefetch": lambda word: list(topics(word).prefetch_related(Prefetch("words", word.objects.order_by("letter")))),
}


@deep
def test_memory_does_not_grow_with_the_table(word: Any) -> None:
    """``pytest -s`` prints the figures."""
    held: dict[str, list[int]] = {name: [] for name in QUERIES}
    for start, stop in ((0, SMALL), (SMALL, LARGE)):
        stored(word, start, stop)
        for name, query in QUERIES.items():
            held[name].append(peak(lambda query=query: query(word)))
    for name, (small, large) in held.items():
        print(f"{name}: {small / 1e6:.2f} MB of {SMALL} items, {large / 1e6:.2f} MB of {LARGE}")
    assert {name: large for name, (small, large) in held.items() if large > TOLERANCE * small} == {}
