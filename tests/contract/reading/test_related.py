"""Prefetched objects, and managers of the other side of a reference."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db.models import Prefetch

from dynamo_single import models
from dynamo_single.exceptions import NotSupported
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Person
from tests.catalog.boards import Board, Card, Label, Note, Task

pytestmark = pytest.mark.usefixtures("board")


@pytest.fixture
def board(table: Any) -> Board:
    """A board with three cards, one of them closed, three tasks and two labels."""
    made = Board.objects.create(board_id="b", name="B")
    for card_id, status in (("1", "open"), ("2", "closed"), ("3", "open")):
        Card.objects.create(board=made, card_id=card_id, status=status)
    for number in (1, 2, 10):
        Task.objects.create(board=made, number=number)
    for label_id, text in (("x", "zebra"), ("y", "ant")):
        Label.objects.create(board=made, label_id=label_id, text=text)
    return made


RELATIONS = [
    ("cards", "card_id", ["1", "3"], ["GetItem", "Query"]),
    ("tasks", "number", [10, 2, 1], ["Query"]),
    ("labels", "label_id", ["y", "x"], ["GetItem", "Query"]),
]


@pytest.mark.parametrize(("relation", "attribute", "expected", "operations"), RELATIONS)
def test_children_that_are_read_along_are_those_of_the_relation(
    relation: str, attribute: str, expected: list[Any], operations: list[str]
) -> None:
    """The default manager's filter and ``Meta.ordering`` hold, whether or not one Query can read everything."""
    with assert_requests(operations):
        one = Board.objects.prefetch_related(relation).get(pk="b")
        along = [getattr(child, attribute) for child in getattr(one, relation).all()]
    (listed,) = Board.objects.filter(name="B").prefetch_related(relation)
    plain = Board.objects.get(pk="b")
    assert along == expected
    assert [getattr(child, attribute) for child in getattr(listed, relation).all()] == expected
    assert [getattr(child, attribute) for child in getattr(plain, relation).all()] == expected


def test_a_slice_counts_with_children_too() -> None:
    """The second of one object is none."""
    query = Board.objects.filter(pk="b").prefetch_related("tasks")
    assert [len(query[:1]), len(query[1:]), len(query[0:0])] == [1, 0, 0]


def test_what_refers_to_nothing_is_read_along_with_the_rest() -> None:
    """An empty reference is ``None`` and does not send requests, with ``select_related`` and ``prefetch_related``."""
    Note.objects.create(note_id="on", board_id="b")
    Note.objects.create(note_id="off")
    notes = Note.objects.filter(pk__in=["on", "off"])
    for reading in (notes.select_related("board"), notes.prefetch_related("board")):
        with assert_requests(["BatchGetItem", "GetItem"]):
            assert [note.board and note.board.name for note in reading] == ["B", None]
        with assert_requests(["GetItem"]):
            assert [note.board for note in reading.filter(pk="off")] == [None]


def test_one_object_is_asked_for_as_one_with_children_too() -> None:
    """``get()`` reads at most two objects, whatever is prefetched."""
    for number in range(5):
        Board.objects.create(board_id=f"b{number}", name="many")
    with assert_requests(["Query"] * 3) as sent, pytest.raises(Board.MultipleObjectsReturned):
        Board.objects.prefetch_related("tasks").get(name="many")
    assert sent[0].params["Limit"] == 2


class Piece(models.Model):
    """A parent whose ``pk`` is more than its partition."""

    box = models.UnicodeAttribute()
    number = models.IntegerAttribute()

    screws = models.Children("Screw")

    class Keys:
        primary = models.Key("BOX#{box}", "PIECE#{number}")

    class Meta:
        app_label = "catalog"


class Screw(models.Model):
    """A child that refers to the whole ``pk`` by a name that looks like the partition's."""

    piece = models.ReferenceAttribute(Piece, on_delete=models.DO_NOTHING, attr_name="box")
    screw_id = models.UnicodeAttribute()

    class Keys:
        primary = models.Key("BOX#{piece_id}", "SCREW#{screw_id}")

    class Meta:
        app_label = "catalog"


class Cabinet(models.Model):
    """A parent with an order of its own."""

    cabinet_id = models.UnicodeAttribute()
    label = models.UnicodeAttribute()

    class Keys:
        primary = models.Key("CABINET#{cabinet_id}", "#METADATA")

    class Meta:
        app_label = "catalog"
        ordering = ("label",)


class Tool(models.Model):
    """A child that its parent's key finds."""

    cabinet = models.ReferenceAttribute(Cabinet, on_delete=models.DO_NOTHING)
    tool_id = models.UnicodeAttribute()

    class Keys:
        primary = models.Key("TOOL#{tool_id}", "#METADATA")
        listed = models.IndexKey("gs1", "TOOL", "{cabinet_id}#{tool_id}")

    class Meta:
        app_label = "catalog"


def test_an_order_by_a_reference_is_not_mistaken_for_that_of_its_key() -> None:
    """In Django, this is the order of the referenced objects, which is not stored here."""
    for tool_id, cabinet_id in (("1", "b"), ("2", "a")):
        Tool.objects.create(cabinet_id=cabinet_id, tool_id=tool_id)
    with assert_requests(0), pytest.raises(NotSupported, match=r"of catalog.Cabinet itself.* by 'cabinet_id'"):
        list(Tool.objects.order_by("cabinet"))
    assert [tool.pk for tool in Tool.objects.order_by("-cabinet_id")] == ["1", "2"]
    assert [note.pk for note in Note.objects.filter(board="b").order_by("board")] == []


def test_children_of_a_pk_of_several_values_are_found() -> None:
    """The reference contains the complete ``pk``, so the children are in another partition than the parent."""
    piece = Piece.objects.create(box="1", number=2)
    Screw.objects.create(piece=piece, screw_id="s")
    found = Piece.objects.prefetch_related("screws").get(pk=piece.pk)
    assert [screw.screw_id for screw in found.screws.all()] == ["s"]


@pytest.mark.parametrize("relation", ["tasks", "notes"])
def test_children_of_more_than_a_hundred_objects_are_read(relation: str) -> None:
    """The first Query reads the parents, and a Query per parent reads its children."""
    for number in range(101):
        Board.objects.create(board_id=f"b{number:03}", name="many")
    Task.objects.create(board_id="b100", number=1)
    Note.objects.create(board_id="b100", text="last")
    with assert_requests(["Query"] * 102):
        found = list(Board.objects.filter(name="many").prefetch_related(relation))
    assert [len(getattr(each, relation).all()) for each in found] == [0] * 100 + [1]


# the other side of a reference


def test_add_saves_the_objects_that_it_is_given(board: Board) -> None:
    """The object is marked as stored, so another save or addition does not conflict."""
    note = Note.objects.create(note_id="n", text="a")
    for _ in range(2):
        with assert_requests(["UpdateItem"]):
            board.notes.add(note)
    note.text = "b"
    note.save()
    assert [(each.pk, each.text) for each in board.notes.all()] == [("n", "b")]


def test_add_saves_nothing_but_the_reference(board: Board) -> None:
    """Other changes of the object are saved only with ``bulk=False``."""
    note = Note.objects.create(note_id="n", text="a")
    note.text = "unsaved"
    board.notes.add(note)
    assert Note.objects.get(pk="n").text == "a"
    board.notes.add(note, Note(note_id="new"), bulk=False)
    assert Note.objects.get(pk="n").text == "unsaved"
    assert board.notes.count() == 2


def test_add_takes_stored_objects_of_its_model(board: Board) -> None:
    """New objects and objects of other models raise an error before any write, as in Django."""
    stored = Note.objects.create(note_id="n")
    with assert_requests(0), pytest.raises(ValueError, match="isn't saved"):
        board.notes.add(stored, Note(note_id="new"))
    with assert_requests(0), pytest.raises(TypeError, match="'Note' instance expected"):
        board.notes.add(board)


def test_remove_saves_the_objects_that_it_is_given(board: Board) -> None:
    """The object refers to nothing, also in memory."""
    note = Note.objects.create(note_id="n", board=board)
    with assert_requests(["UpdateItem"]):
        board.notes.remove(note)
    assert note.board_id is None
    note.text = "b"
    note.save()
    assert list(board.notes.all()) == []


def test_remove_takes_only_what_is_there(board: Board) -> None:
    """An object with another reference raises an error, as in Django."""
    with assert_requests(0), pytest.raises(Board.DoesNotExist, match="is not related to"):
        board.notes.remove(Note(note_id="n"))


def test_remove_leaves_what_the_manager_hides(board: Board) -> None:
    """A filtering manager reads its objects first, as in clear() and Django."""
    kept, gone = (Note.objects.create(note_id=text, board=board, text=text) for text in ("struck out", "open"))
    with assert_requests(["BatchGetItem", "UpdateItem"]):
        board.notes(manager="unstruck").remove(kept, gone)
    assert (kept.board_id, gone.board_id) == ("b", None)
    assert [note.pk for note in board.notes.all()] == ["struck out"]


@pytest.mark.parametrize("clear", [False, True])
def test_set_leaves_exactly_these(board: Board, *, clear: bool) -> None:
    """Other objects are removed, given ones are added, and all of them can be saved."""
    old, kept, new = (Note.objects.create(note_id=note_id) for note_id in ("old", "kept", "new"))
    board.notes.add(old, kept)
    board.notes.set([kept, new], clear=clear)
    assert {note.pk for note in board.notes.all()} == {"kept", "new"}
    for note in (kept, new):
        note.text = "after"
        note.save()
        assert note.board_id == "b"


def test_set_takes_nothing_away_before_an_object_without_a_pk_is_an_error(board: Board) -> None:
    """The objects are compared before any is removed, as in Django."""
    board.notes.add(Note.objects.create(note_id="old"))
    with pytest.raises(TypeError, match="unhashable"):
        board.notes.set([Note(note_id=None)])
    assert [note.pk for note in board.notes.all()] == ["old"]


@pytest.mark.parametrize("name", ["set", "aset"])
def test_set_calls_the_add_and_remove_of_a_project_s_own_manager(board: Board, name: str) -> None:
    """Django does the same."""
    called: list[str] = []

    class Own:
        def add(self, *objs: Any, **options: Any) -> None:
            called.append("add")
            behind: Any = super()
            behind.add(*objs, **options)

        def remove(self, *objs: Any, **options: Any) -> None:
            called.append("remove")
            behind: Any = super()
            behind.remove(*objs, **options)

    old, new = (Note.objects.create(note_id=note_id) for note_id in ("old", "new"))
    board.notes.add(old)
    notes: Any = board.notes
    notes.__class__ = type("OwnNotes", (Own, type(notes)), {})
    method = getattr(notes, name)
    (async_to_sync(method) if name == "aset" else method)([new])
    assert called == ["remove", "add"]
    assert [note.pk for note in board.notes.all()] == ["new"]


def test_clear_takes_all_away(board: Board) -> None:
    """clear() clears the reference of every object to this object."""
    board.notes.add(*(Note.objects.create(note_id=note_id) for note_id in ("a", "b")))
    board.notes.clear()
    assert board.notes.count() == 0


def test_a_reference_that_may_not_be_empty_has_no_remove(board: Board) -> None:
    """There is no ``remove()`` or ``clear()``, as in Django; ``add()`` accepts an object of this board."""
    assert not hasattr(board.tasks, "remove")
    assert not hasattr(board.task_set, "clear")
    task = board.tasks.get(number=1)
    with assert_requests(0):
        board.tasks.add(task)


def test_templates_write_nothing_through_a_relation(board: Board) -> None:
    """A template that names a writing method does not call it."""
    assert [getattr(board.notes, name).alters_data for name in ("add", "remove", "set", "clear")] == [True] * 4


@pytest.mark.parametrize("name", ["people", "person_set"])
def test_a_sliced_prefetch_is_one_limited_query_a_parent(name: str, table: Any) -> None:
    """Each parent gets its own slice, as in SQL by window functions."""
    for number, pk in enumerate(["s1", "s2"]):
        Company.objects.create(company_id=pk, name=f"S{number}")
        for person in range(3):
            Person.objects.create(company_id=pk, person_id=str(person), name=f"P{person}")
    companies = Company.objects.filter(name__startswith="S").prefetch_related(
        Prefetch(name, queryset=Person.objects.order_by("-person_id")[:2])
    )
    with assert_requests(["Query", "Query", "Query"]) as sent:
        found = {company.pk: [person.name for person in getattr(company, name).all()] for company in companies}
    assert found == {"s1": ["P2", "P1"], "s2": ["P2", "P1"]}
    assert [request.params.get("Limit") for request in sent[1:]] == [2, 2]


def test_a_sliced_prefetch_to_a_list_knows_the_parents(table: Any) -> None:
    """``to_attr`` holds a list, whose objects refer to their parent without a request."""
    Company.objects.create(company_id="s1", name="S1")
    for person in range(3):
        Person.objects.create(company_id="s1", person_id=str(person), name=f"P{person}")
    people = Prefetch("people", queryset=Person.objects.order_by("person_id")[1:3], to_attr="some")
    company = Company.objects.prefetch_related(people).get(pk="s1")
    with assert_requests([]):
        assert [(person.name, person.company.name) for person in company.some] == [("P1", "S1"), ("P2", "S1")]
