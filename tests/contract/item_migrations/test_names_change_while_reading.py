"""Reads that begin under one name of an attribute and end under another: a rename begins or ends between two responses.

An export takes longer than ``migrate --finish`` waits for other processes. Each source of pages must return every
object once, with its last title.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db.models import Count, Exists, Max, OuterRef, Q, Subquery, Value
from django.db.models.functions import Coalesce

from dynamo_single import models
from dynamo_single.exceptions import InvalidCursor
from dynamo_single.orm.requests.actions import key_of
from dynamo_single.orm.rollout import knowledge, shard_record
from dynamo_single.orm.schema import registry
from dynamo_single.table import SentRequest, Table, flow, get_table, listening
from dynamo_single.test_tables import contents
from dynamo_single.testing import intercept
from tests.contract.item_migrations.processes import Process
from tests.histories.app import History, history

#: How many items a page holds, and how many shops there are.
PAGE, SHOPS = 2, 6
#: The shop that old code renames while the attribute has two names: the new name still has the previous value.
CHANGED = "s1"
TITLES = {f"s{number}": f"T{number}" for number in range(SHOPS)} | {CHANGED: "G", "s5": "N"}
MADE = datetime(2026, 1, 1, tzinfo=UTC)
#: The shops among so many missing keys that reading them takes a second BatchGetItem.
KEYS = (*sorted(TITLES)[:3], *(f"s1x{number:02}" for number in range(99)), *sorted(TITLES)[3:])
PAGES = frozenset({"Query", "Scan", "BatchGetItem"})

Found = list[tuple[str, str]]


class Stages:
    """The table before, during and after the rename; the first test runs the commands and the others copy the items."""

    def __init__(self) -> None:
        self._files: dict[str, str] = {}
        self._stored: list[contents.Contents] = []

    def __call__(self, app: History, stage: int) -> None:
        """Bring the table and the migration files to a stage, and start a process."""
        if not self._files:
            self._make(app)
        for name, text in self._files.items():
            (app.folder / name).write_text(text)
        self.store(stage)
        app.start()

    def store(self, stage: int) -> None:
        """Bring the table to a stage."""
        contents.restore(get_table(), self._stored[stage])

    def _make(self, app: History) -> None:
        old = declared(app, "name")
        app.make()
        app.migrate()
        shard_record.record_first(get_table(), registry.layout_of(old), 2)
        for number, pk in enumerate(TITLES):
            old.objects.create(pk=pk, name=f"T{number}", city="ab"[number % 2], made=MADE + timedelta(days=number + 1))
            visit_of(old).objects.create(shop_id=f"v{number}", place_id=pk)
        self._stored.append(contents.read(get_table()))
        new = declared(app, "title")
        app.make(answers=["y"])
        app.migrate(until=1, passed=True)
        new.objects.filter(pk="s5").update(title="N")
        old.objects.filter(pk=CHANGED).update(name="G")
        self._stored.append(contents.read(get_table()))
        app.finish()
        self._stored.append(contents.read(get_table()))
        self._files = {path.name: path.read_text() for path in app.folder.glob("0*.py")}


BEFORE, OPEN, ENDED = range(3)
stages = Stages()


def declared(app: History, name: str) -> Any:
    """Declare the model with this name for its text, and a model of visits that refers to it."""
    app.forget("Visit")
    found = app.model(
        keys={
            "shards": models.Shards("shop_id", at="made"),
            "listed": models.IndexKey("gs1", "SHOP", "{shop_id}"),
            "by_city": models.IndexKey("gs2", "CITY#{city}", "{shop_id}"),
            "by_time": models.IndexKey("gs3", "MADE", "{made}#{shop_id}", sharded=True),
        },
        **{name: models.UnicodeAttribute()},
        city=models.UnicodeAttribute(),
        made=models.TimestampAttribute(immutable=True),
        visits=models.Children("Visit"),
    )
    app.model(
        "Visit",
        {"listed": models.IndexKey("gs1", "VISIT", "{shop_id}")},
        primary=("SHOP#{place_id}", "VISIT#{shop_id}"),
        place=models.ReferenceAttribute(found, on_delete=models.DO_NOTHING),
    )
    return found


def visit_of(model: Any) -> Any:
    """Return the model of visits that refers to this model of shops."""
    return model.visits.model


@pytest.fixture
def app(tmp_path: Path, table: Table, monkeypatch: pytest.MonkeyPatch) -> Iterator[History]:
    """The app; its reads send one request at a time, so that each run changes the names at the same place."""
    monkeypatch.setattr(flow, "MAX_THREADS", 1)
    with history(tmp_path) as found:
        yield found


def small_pages(operation: str, params: Any) -> None:
    """Limit a page to a few items."""
    if operation in ("Query", "Scan"):
        params["Limit"] = min(PAGE, params.get("Limit", PAGE))


@contextmanager
def turning(after: int, turn: Callable[[], object]) -> Iterator[list[int]]:
    """Make pages small, and call ``turn`` after so many responses; yields the number of responses."""
    answered = [0]
    lock = Lock()

    def told(sent: SentRequest) -> None:
        with lock:
            if sent.operation not in PAGES:
                return
            answered[0] += 1
            if answered[0] != after:
                return
        other = Thread(target=turn)  # as another request of this process does
        other.start()
        other.join()

    with intercept(small_pages), listening(told):
        yield answered


def heard(model: Any, stage: int) -> Callable[[], None]:
    """Return a function that brings the table to a stage, and lets another request of this process read its state."""

    def turn() -> None:
        stages.store(stage)
        knowledge._tables.clear()  # as if it was read long ago
        model.objects.get(pk=CHANGED)

    return turn


def of(found: Any, name: str) -> Found:
    """Return the primary key and the text of each shop."""
    return [(shop.pk, getattr(shop, name)) for shop in found]


async def _later(listed: Any, name: str) -> Found:
    return [(shop.pk, getattr(shop, name)) async for shop in listed.aiterator(chunk_size=PAGE)]


def all_of(model: Any) -> Any:
    """Return all shops, by a key."""
    return model.objects.order_by("shop_id")


def scanned(model: Any) -> Any:
    """Return all shops, by a Scan."""
    return model.objects.order_by().allow_scan()


def union(model: Any) -> Any:
    """Return some shops by one key, and others by another."""
    return model.objects.filter(Q(city="a") | Q(shop_id__gte="s1")).order_by("shop_id")


def in_memory(model: Any, name: str) -> Any:
    """Return all shops in an order that no key supports."""
    return all_of(model).order_by(name).allow_in_memory()


def rows(listed: Any, name: str) -> Found:
    """Read the columns of shops, page by page."""
    return list(listed.values_list("pk", name).iterator(chunk_size=PAGE))


def objects(listed: Any, name: str) -> Found:
    """Read shops, page by page."""
    return of(listed.iterator(chunk_size=PAGE), name)


def grouped(model: Any, name: str) -> Found:
    """Read each shop as a group of its own."""
    found = model.objects.order_by().values("pk", name).annotate(n=Count("pk")).allow_in_memory()
    return [(row["pk"], row[name]) for row in found]


def of_visits(visits: Any, name: str) -> Found:
    """Read the shop of each visit, page by page."""
    return [(visit.place.pk, getattr(visit.place, name)) for visit in visits.order_by("shop_id").iterator(chunk_size=2)]


def subqueries(model: Any, name: str) -> Found:
    """Read the shop of each visit by a subquery."""
    title = Subquery(model.objects.filter(pk=OuterRef("place_id")).values(name)[:1])
    visits = visit_of(model).objects.order_by("shop_id").allow_in_memory().annotate(title=title)
    return [(visit.place_id, visit.title) for visit in visits]


def visited(model: Any, name: str) -> Found:
    """Read the shops that have a visit, with a computed text."""
    visits = visit_of(model).objects.filter(place=OuterRef("pk"))
    found = all_of(model).allow_in_memory().filter(Exists(visits)).annotate(text=Coalesce(name, Value("")))
    return of(found, "text")


def joined(model: Any, name: str) -> Found:
    """Read the title of the shop of each visit by a join."""
    visits = visit_of(model).objects.order_by("shop_id").allow_in_memory().annotate(title=Max(f"place__{name}"))
    return [(visit.place_id, visit.title) for visit in visits]


#: Every source of all shops, and after how many responses the names change.
WAYS: dict[str, tuple[Callable[[Any, str], Found], int]] = {
    "list": (lambda model, name: of(all_of(model), name), 1),
    "iterator": (lambda model, name: objects(all_of(model), name), 1),
    "only": (lambda model, name: objects(all_of(model).only(name), name), 1),
    "defer": (lambda model, name: objects(all_of(model).defer(name), name), 1),
    "rows": (lambda model, name: rows(all_of(model), name), 1),
    "dicts": (lambda model, name: [(row["pk"], row[name]) for row in all_of(model).values("pk", name)], 1),
    "annotated": (lambda model, name: objects(all_of(model).annotate(n=Count("visits"))[:99], name), 1),
    "groups": (grouped, 1),
    "async": (lambda model, name: async_to_sync(_later)(all_of(model), name), 1),
    "partitions": (lambda model, name: objects(model.objects.filter(city__in=["a", "b"]), name), 2),
    "merged partitions": (lambda model, name: objects(all_of(model).filter(city__in=["a", "b"]), name), 2),
    "rows of partitions": (lambda model, name: rows(model.objects.filter(city__in=["a", "b"]), name), 2),
    "union": (lambda model, name: objects(union(model), name), 2),
    "rows of a union": (lambda model, name: rows(union(model), name), 2),
    "shards": (lambda model, name: objects(model.objects.order_by("made"), name), 2),
    "rows of shards": (lambda model, name: rows(model.objects.order_by("made"), name), 2),
    "only of shards": (lambda model, name: objects(model.objects.order_by("made").only(name), name), 2),
    "keys": (lambda model, name: objects(model.objects.filter(pk__in=KEYS), name), 1),
    "only of keys": (lambda model, name: objects(model.objects.filter(pk__in=KEYS).only(name), name), 1),
    "rows of keys": (lambda model, name: rows(model.objects.filter(pk__in=KEYS), name), 1),
    "scan": (lambda model, name: objects(scanned(model), name), 1),
    "rows of a scan": (lambda model, name: rows(scanned(model), name), 1),
    "in memory": (lambda model, name: of(in_memory(model, name), name), 1),
    "rows in memory": (lambda model, name: list(in_memory(model, name).values_list("pk", name)), 1),
    "select_related": (lambda model, name: of_visits(visit_of(model).objects.select_related("place"), name), 2),
    "prefetch_related": (lambda model, name: of_visits(visit_of(model).objects.prefetch_related("place"), name), 2),
    "prefetched children": (lambda model, name: objects(all_of(model).prefetch_related("visits"), name), 1),
    "subqueries": (subqueries, 2),
    "exists": (visited, 2),
    "join": (joined, 2),
    "in_bulk": (lambda model, name: of(model.objects.in_bulk(KEYS).values(), name), 1),
    "page": (lambda model, name: of(scanned(model).filter(city__gte="a").page(9).items, name), 1),
    "page of only": (lambda model, name: of(scanned(model).filter(city__gte="a").only(name).page(9).items, name), 1),
    "pynamodb scan": (lambda model, name: of(model.scan(), name), 1),
}
EXPECTED = sorted(TITLES.items())


@pytest.mark.parametrize("way", WAYS)
def test_reads_continue_after_a_rename_ends(app: History, way: str) -> None:
    """Each source returns every shop once, with its title."""
    stages(app, OPEN)
    model = declared(app, "title")
    read, after = WAYS[way]
    model.objects.get(pk=CHANGED)
    with turning(after, heard(model, ENDED)) as answered:
        found = read(model, "title")
    assert answered[0] > after
    assert sorted(found, key=str) == EXPECTED


@pytest.mark.parametrize("way", WAYS)
def test_reads_continue_after_a_rename_begins(app: History, way: str) -> None:
    """Old code finds every shop once, with its previous or its present name."""
    stages(app, BEFORE)
    old = declared(app, "name")
    read, after = WAYS[way]
    old.objects.get(pk=CHANGED)
    with turning(after, heard(old, OPEN)) as answered:
        found = read(old, "name")
    assert answered[0] > after
    assert sorted(pk for pk, _ in found) == sorted(TITLES)
    assert {text for pk, text in found if text not in (f"T{pk[1:]}", TITLES[pk])} == set()


def later(model: Any) -> Any:
    """Return the shops with titles starting with T, which no key supports."""
    return all_of(model).filter(title__gte="T")


def pks(found: Any) -> list[str]:
    """Return the primary keys of shops, in order."""
    return sorted(shop.pk for shop in found)


LATER = sorted(pk for pk, title in TITLES.items() if title >= "T")
#: Every source with a filter on the title, its result, and after how many responses the names change.
FILTERS: dict[str, tuple[Callable[[Any], object], object, int]] = {
    "list": (lambda model: pks(later(model)), LATER, 1),
    "only": (lambda model: pks(later(model).only("city")), LATER, 1),
    "rows": (lambda model: sorted(later(model).values_list("pk", flat=True)), LATER, 1),
    "slice": (lambda model: pks(later(model)[:9]), LATER, 1),
    "count": (lambda model: later(model).count(), len(LATER), 1),
    "count of a slice": (lambda model: later(model)[1:9].count(), len(LATER) - 1, 1),
    "count of partitions": (
        lambda model: model.objects.filter(city__in=["a", "b"], title__gte="T").count(),
        len(LATER),
        2,
    ),
    "count of a scan": (lambda model: scanned(model).filter(title__gte="T").count(), len(LATER), 1),
    "count of shards": (
        lambda model: model.objects.filter(made__gt=MADE, title__gte="T").count(),
        len(LATER),
        2,
    ),
    "count of a union": (lambda model: union(model).filter(title__gte="T").count(), len(LATER), 2),
    "exists": (lambda model: all_of(model).filter(title="T4").exists(), True, 1),
    "get": (lambda model: model.objects.get(title="T4").pk, "s4", 1),
    "first": (lambda model: pks(filter(None, [all_of(model).filter(title="T4").first()])), ["s4"], 1),
    "aggregate": (lambda model: later(model).allow_in_memory().aggregate(last=Max("title")), {"last": "T4"}, 1),
    "partitions": (lambda model: pks(model.objects.filter(city__in=["a", "b"], title__gte="T")), LATER, 2),
    "union": (lambda model: pks(union(model).filter(title__gte="T")), LATER, 2),
    "shards": (lambda model: pks(model.objects.filter(title__gte="T").order_by("made")), LATER, 2),
    "keys": (lambda model: pks(model.objects.filter(pk__in=KEYS, title__gte="T")), LATER, 1),
    "scan": (lambda model: pks(scanned(model).filter(title__gte="T")), LATER, 1),
    "in memory": (lambda model: pks(in_memory(model, "title").filter(title__gte="T")), LATER, 1),
    "page": (lambda model: pks(later(model).page(9).items), LATER, 1),
    "update": (lambda model: later(model).update(city="c"), len(LATER), 1),
    "delete": (lambda model: later(model).filter(city="a").delete()[0], 3, 1),
    "pynamodb scan": (lambda model: pks(model.scan(model.title >= "T")), LATER, 1),
}


@pytest.mark.parametrize("way", FILTERS)
def test_filters_match_after_a_rename_ends(app: History, way: str) -> None:
    """Each source finds what matches on every page."""
    stages(app, OPEN)
    model = declared(app, "title")
    read, expected, after = FILTERS[way]
    model.objects.get(pk=CHANGED)
    with turning(after, heard(model, ENDED)) as answered:
        found = read(model)
    assert answered[0] > after
    assert found == expected


@pytest.mark.parametrize("stage", [OPEN, ENDED], ids=["open", "ended"])
def test_every_way_is_right_without_a_change(app: History, stage: int) -> None:
    """Each way of reading is right by itself, and a case that fails does so because of the change alone."""
    stages(app, stage)
    model = declared(app, "title")
    found: dict[str, object] = {}
    with intercept(small_pages):
        for way, (read, _) in WAYS.items():
            found[way] = sorted(read(model, "title"))
        for way, (look, _, _) in FILTERS.items():
            stages.store(stage)
            found[f"filter: {way}"] = look(model)
    expected = dict.fromkeys(WAYS, EXPECTED)
    assert found == expected | {f"filter: {way}": each for way, (_, each, _) in FILTERS.items()}


PAGED: dict[str, Callable[[Any], Any]] = {
    "key": all_of,
    "shards": lambda model: model.objects.order_by("made"),
    "union": union,
    "scan": scanned,
    "filter": later,
}


def walk(page: Any, listed: Any) -> Found:
    """Read the shops of a page, and of those after it."""
    found = of(page.items, "title")
    while page.next_cursor:
        page = listed.page(3, page.next_cursor)
        found += of(page.items, "title")
    return sorted(found, key=str)


@pytest.mark.parametrize("way", [way for way in PAGED if way != "filter"])
def test_cursors_continue_after_a_rename_ends(app: History, way: str) -> None:
    """The names change between two pages."""
    stages(app, OPEN)
    model = declared(app, "title")
    listed = PAGED[way](model)
    with intercept(small_pages):
        page = listed.page(3)
        before = of(page.items, "title")
        heard(model, ENDED)()
        assert sorted(before + walk(listed.page(3, page.next_cursor), listed)) == EXPECTED


def test_cursors_of_a_renamed_filter_are_refused(app: History) -> None:
    """A cursor belongs to its conditions, which contain the stored name."""
    stages(app, OPEN)
    model = declared(app, "title")
    page = later(model).page(3)
    heard(model, ENDED)()
    with pytest.raises(InvalidCursor, match="Start again"):
        later(model).page(3, page.next_cursor)


@pytest.mark.parametrize("way", PAGED)
def test_a_page_continues_after_a_rename_ends(app: History, way: str) -> None:
    """The names change between two requests of one page."""
    stages(app, OPEN)
    model = declared(app, "title")
    listed = PAGED[way](model)
    with turning(2, heard(model, ENDED)):
        found = walk(listed.page(3), listed)
    assert found == [each for each in EXPECTED if way != "filter" or each[0] in LATER]


def test_a_list_reads_the_state_by_itself(app: History) -> None:
    """Its process sends no other request."""
    stages(app, OPEN)
    process = Process(declared(app, "title"), ("title", "", ""))
    with intercept(small_pages):
        with process.at_work():
            listed = all_of(process.model).iterator(chunk_size=PAGE)
            found = [next(listed)]
        stages.store(ENDED)
        process.hear()
        with process.at_work():
            found += listed
    assert of(found, "title") == EXPECTED


OWN: dict[str, Callable[[Any], Any]] = {
    "scan": lambda model: pks(model.scan(model.title == "G")),
    "query": lambda model: pks(model.query(f"SHOP#{CHANGED}", filter_condition=model.title == "G")),
    "count": lambda model: [CHANGED] * model.count(f"SHOP#{CHANGED}", filter_condition=model.title == "G"),
}


@pytest.mark.parametrize("way", OWN)
def test_pynamodb_filters_by_the_name_in_use(app: History, way: str) -> None:
    """Old code has changed the old name only."""
    stages(app, OPEN)
    model = declared(app, "title")
    model.objects.get(pk=CHANGED)
    assert OWN[way](model) == [CHANGED]


def test_pynamodb_checks_by_the_name_in_use(app: History) -> None:
    """The condition of a transaction, which does not pass the model's own calls."""
    stages(app, OPEN)
    model = declared(app, "title")
    partition, sort = key_of(model.objects.get(pk=CHANGED)._stored)
    asked = model.get_operation_kwargs_from_class(partition, sort, condition=model.title == "G")
    assert "name" in asked["ExpressionAttributeNames"].values()
    assert "title" not in asked["ExpressionAttributeNames"].values()
