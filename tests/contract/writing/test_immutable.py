"""Immutable attributes: every write rejects a new value by name, and forms only show the value."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django import forms
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.core import serializers
from django.db.models import F
from django.test import RequestFactory

from dynamo_single import counters, models
from dynamo_single.admin import DynamoModelAdmin
from dynamo_single.exceptions import ConfigurationError, ImmutableAttribute, NotSupported
from dynamo_single.orm.requests.actions import Update
from dynamo_single.orm.requests.compiler import compile_action
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests
from tests.catalog.boards import Board
from tests.contract.tables import stored
from tests.unit.declaring import declare, forgotten

MOMENT = datetime(2025, 1, 1, 12, 0, 0, 123000, tzinfo=UTC)


@pytest.fixture
def paper(table: Table) -> Iterator[Any]:
    """A model with immutable attributes, one of them a part of its primary key, one of another key."""
    with forgotten():
        yield declare(
            "Paper",
            ("PAPER#{series}", "NUMBER#{number}"),
            {"by_author": models.IndexKey("gs1", "PAPER#{author}", "{number}")},
            series=models.UnicodeAttribute(immutable=True),
            number=models.IntegerAttribute(),
            author=models.UnicodeAttribute(immutable=True),
            pages=models.IntegerAttribute(default=1, immutable=True),
            born=models.TimestampAttribute(null=True, immutable=True),
            core=models.MapAttribute(default=dict, immutable=True),
            board=models.ReferenceAttribute(
                Board, on_delete=models.DO_NOTHING, null=True, immutable=True, related_name="papers"
            ),
            title=models.UnicodeAttribute(default=""),
        )


@pytest.fixture
def obj(paper: Any) -> Any:
    """Return a loaded object."""
    Board.objects.create(board_id="b", name="B")
    made = paper.objects.create(series="s", number=1, author="Ann", born=MOMENT, core={"a": 1})
    return paper.objects.get(pk=made.pk)


def setting(**values: Any) -> Callable[[Any], Any]:
    """Sets attributes and saves."""

    def write(obj: Any) -> None:
        for name, value in values.items():
            setattr(obj, name, value)
        obj.save()

    return write


def saving(**options: Any) -> Callable[[Any], Any]:
    """Saves another author in some way."""

    def write(obj: Any) -> None:
        obj.author = "Ben"
        obj.save(**options)

    return write


def in_place(obj: Any) -> None:
    """Changes what a map holds."""
    obj.core["a"] = 2
    obj.save()


def by_hand(obj: Any) -> None:
    """Change an object that was never loaded."""
    type(obj)(series="s", number=1, author="Ben").save(update_fields=["author"])


def by_part(obj: Any) -> None:
    """Change an object that was loaded without the attribute."""
    setting(author="Ben")(type(obj).objects.only("title").get(pk=obj.pk))


def by_fixture(obj: Any) -> None:
    """By ``loaddata``."""
    text = serializers.serialize("json", [obj]).replace("Ann", "Ben")
    for each in serializers.deserialize("json", text):
        each.save()


def by_bulk_create(obj: Any) -> None:
    """Naming the attribute."""
    new = type(obj)(series="s", number=1, author="Ben")
    type(obj).objects.bulk_create([new], update_conflicts=True, update_fields=["author"])


WRITES: list[tuple[str, str, Callable[[Any], Any]]] = [
    ("save", "author", setting(author="Ben")),
    ("save of no value", "born", setting(born=None)),
    ("save of a place of a map", "core", in_place),
    ("save of an expression", "pages", setting(pages=F("pages") + 1)),
    ("save of a reference", "board_id", setting(board_id="b")),
    ("save of a part of the primary key", "series", setting(series="t")),
    ("update_fields", "author", saving(update_fields=["author", "title"])),
    ("force_update", "author", saving(force_update=True)),
    ("an object made by hand", "author", by_hand),
    ("an object read in part", "author", by_part),
    ("a fixture", "author", by_fixture),
    ("move", "author", lambda obj: obj.move(number=2, author="Ben")),
    ("move of a part of the primary key", "series", lambda obj: obj.move(series="t")),
    ("move to the same key", "author", lambda obj: obj.move(author="Ben")),
    ("update", "author", lambda obj: type(obj).objects.filter(pk=obj.pk).update(author="Ben")),
    ("update of the same value", "author", lambda obj: type(obj).objects.filter(pk=obj.pk).update(author="Ann")),
    ("update of what is found", "author", lambda obj: type(obj).objects.filter(author="Ann").update(author="Ben")),
    ("update by an expression", "pages", lambda obj: type(obj).objects.filter(pk=obj.pk).update(pages=F("pages") + 1)),
    ("update of a place", "core", lambda obj: type(obj).objects.filter(pk=obj.pk).update(core__a=2)),
    ("update of a reference", "board_id", lambda obj: type(obj).objects.filter(pk=obj.pk).update(board="b")),
    (
        "update of a part of the primary key",
        "series",
        lambda obj: type(obj).objects.filter(pk=obj.pk).update(series="t"),
    ),
    ("bulk_update", "author", lambda obj: type(obj).objects.bulk_update([obj], ["title", "author"])),
    ("bulk_create", "author", by_bulk_create),
    (
        "update_or_create",
        "author",
        lambda obj: type(obj).objects.update_or_create(series="s", number=1, defaults={"author": "Ben"}),
    ),
    ("counters", "pages", lambda obj: counters.add(obj, "pages")),
]


@pytest.mark.parametrize(("field", "write"), [row[1:] for row in WRITES], ids=[row[0] for row in WRITES])
def test_another_value_is_refused_by_name(table: Table, obj: Any, field: str, write: Callable[[Any], Any]) -> None:
    """The error names the attribute and the fix, and the table does not change."""
    before = stored(table)
    with pytest.raises(
        ImmutableAttribute, match=rf"catalog\.Paper\.{field} is immutable.*create a new object"
    ) as caught:
        write(obj)
    assert (caught.value.label, caught.value.field) == ("catalog.Paper", field)
    assert stored(table) == before


def test_what_stays_as_it_is_may_be_written_along(obj: Any) -> None:
    """Saves, moves and overwrites of whole objects accept the original value."""
    obj.title = "new"
    obj.save(update_fields=["title", "author"])
    obj.save(force_update=True)
    obj.move(number=2)
    found, made = type(obj).objects.update_or_create(series="s", number=2, defaults={"author": "Ann", "title": "t"})
    assert (found.author, found.title, made) == ("Ann", "t", False)


def test_a_bulk_create_keeps_what_an_object_was_created_with(obj: Any) -> None:
    """An existing object is updated except for immutable attributes, and the given object gets their stored values."""
    given = type(obj)(series="s", number=1, author="Ben", title="new")
    type(obj).objects.bulk_create([given], update_conflicts=True)
    found = type(obj).objects.get(pk=obj.pk)
    assert (found.author, found.title, given.author) == ("Ann", "new", "Ann")


def test_a_copy_is_created_with_values_of_its_own(obj: Any) -> None:
    """A new object may have different values than its template."""
    obj.number, obj.author, obj._state.adding = 2, "Ben", True
    obj.save(force_insert=True)
    assert {each.author for each in type(obj).objects.filter(series="s")} == {"Ann", "Ben"}


def test_the_default_that_an_older_item_is_shown_with_may_be_written(table: Table, obj: Any) -> None:
    """The default of an older item is the same value."""
    table.send(compile_action(Update(("PAPER#s", "NUMBER#1"), remove=("pages",))))
    old = type(obj).objects.get(pk=obj.pk)
    assert old.pages == 1
    old.save(update_fields=["pages"])
    assert stored(table)["PAPER#s"]["pages"] == {"N": "1"}


def test_pynamodbs_writers_are_refused(obj: Any) -> None:
    """They put whole items over others."""
    with pytest.raises(NotSupported, match=r"whatever author.*immutable"), type(obj).batch_write() as batch:
        batch.save(obj)


def test_the_error_can_be_pickled() -> None:
    """Another process can return the error."""
    error = pickle.loads(pickle.dumps(ImmutableAttribute(label="a.B", field="c")))
    assert (error.label, error.field) == ("a.B", "c")


@pytest.mark.parametrize(
    "attribute",
    [lambda: models.TimestampAttribute(auto_now=True, immutable=True)],
)
def test_what_follows_every_write_cannot_be_immutable(attribute: Callable[[], Any]) -> None:
    """The two contradict each other."""
    with forgotten(), pytest.raises(ConfigurationError, match="cannot be immutable"):
        declare("Wrong", ("W#{wrong_id}", "#"), wrong_id=models.IdAttribute(), time=attribute())


# forms


def form_of(model: Any, **fields: Any) -> Any:
    """A form of all attributes, with some fields of its own."""
    meta = type("Meta", (), {"model": model, "fields": ["author", "born", "core", "pages", "board", "title"]})
    return type("PaperForm", (forms.ModelForm,), {"Meta": meta, **fields})


SENT = {"author": "Ben", "born": "2030-01-01 00:00:00", "core": '{"b": 2}', "pages": "9", "board": "b", "title": "new"}


def test_a_form_of_a_stored_object_only_shows_it(obj: Any) -> None:
    """The form ignores a submitted value and saves the rest; datetimes keep their precision."""
    form = form_of(type(obj))(SENT, instance=obj)
    assert [name for name in form.fields if form[name].field.disabled] == ["author", "born", "core", "pages", "board"]
    assert 'name="author"' in form.as_p()
    assert "disabled" in str(form["author"])
    assert form.is_valid(), form.errors
    assert form.changed_data == ["title"]
    with assert_requests(["UpdateItem"]):
        form.save()
    found = type(obj).objects.get(pk=obj.pk)
    assert (found.author, found.born, found.core, found.pages, found.title) == ("Ann", MOMENT, {"a": 1}, 1, "new")


def test_a_form_of_a_new_object_takes_it(obj: Any) -> None:
    """One form does not disable fields of another form of the same class."""
    shown = form_of(type(obj))
    assert shown(instance=obj)["author"].field.disabled
    form = shown(SENT, instance=type(obj)(series="s", number=7))
    assert form.is_valid(), form.errors
    assert form.save().author == "Ben"


def test_the_admin_only_shows_it(obj: Any) -> None:
    """The admin's forms use the same fields with custom widgets."""
    options = DynamoModelAdmin(type(obj), admin.site)
    request = RequestFactory().get("/")
    request.user = get_user_model()(is_active=True, is_superuser=True)
    shown = options.get_form(request, obj, change=True)(instance=obj)
    new = options.get_form(request)(instance=type(obj)())
    assert [form["author"].field.disabled for form in (shown, new)] == [True, False]


def test_a_form_field_of_ones_own_is_refused_by_the_save(obj: Any) -> None:
    """The form accepts the value, and the save rejects it loudly."""
    form = form_of(type(obj), author=forms.CharField())(SENT, instance=obj)
    assert form.is_valid(), form.errors
    with pytest.raises(ImmutableAttribute, match="author"):
        form.save()
