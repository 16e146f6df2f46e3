"""``dynamo_import_sql`` with all other features of a model, and with failing databases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import CommandError
from django.db import OperationalError, connections
from django.db import models as sql
from django.test.utils import isolate_apps

from accounts.models import User
from dynamo_single import models
from dynamo_single.contrib.sql_import import declared
from dynamo_single.contrib.sql_import.tables import SourceTable
from dynamo_single.costs import measure_requests
from dynamo_single.table import Table
from tests.catalog.library import Volume
from tests.catalog.service import Visit
from tests.contract.sql_import.conftest import OLD, Rows
from tests.contract.sql_import.test_import import MOMENT, a_volume, line, refused, run
from tests.contract.tables import assert_consistent
from tests.unit.declaring import declare, forgotten


@pytest.fixture
def own(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Makes a table of a model's name with some fields and a row, for a model in DynamoDB that the test declares."""

    def make(name: str, fields: dict[str, Any], *found: dict[str, Any], **meta: Any) -> Any:
        options = type("Meta", (), {"app_label": "catalog", **meta})
        with isolate_apps():
            model = type(name, (sql.Model,), {"__module__": "tests.own", "Meta": options, **fields})
        with connections[OLD].schema_editor() as editor:
            editor.create_model(model)
        rows.models = {**rows.models, name: model}
        rows.add(name, *found)
        monkeypatch.setattr(declared, "models_of", lambda modules: [rows.models[each] for each in modules])
        return model

    with forgotten():
        yield make


def test_files_keep_their_names(own: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """No storage is opened."""
    made = declare(
        "Paper", ("PAPER#{paper_id}", "#METADATA"), paper_id=models.IdAttribute(), body=models.FileAttribute(null=True)
    )
    own("Paper", {"body": sql.FileField(upload_to="x")}, {"id": 1, "body": "x/a.txt"}, {"id": 2, "body": ""})
    run(capsys, modules=["Paper"])
    assert made.objects.get(pk="1").body.name == "x/a.txt"
    assert not made.objects.get(pk="2").body
    run(capsys, modules=["Paper"], check=True)


def test_choices_are_validated(own: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """By the new model's, whatever the old one had."""
    declare(
        "Paper",
        ("PAPER#{paper_id}", "#METADATA"),
        paper_id=models.IdAttribute(),
        state=models.UnicodeAttribute(choices=[("a", "A")]),
    )
    own("Paper", {"state": sql.CharField(max_length=9)}, {"id": 1, "state": "a"}, {"id": 2, "state": "hidden"})
    said = refused(capsys, modules=["Paper"])
    assert "refused: 2: state: is not one of the choices" in said
    assert "hidden" not in said


def test_versions_begin_with_one(own: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The next write detects a concurrent one, as after ``save()``."""
    made = declare(
        "Paper",
        ("PAPER#{paper_id}", "#METADATA"),
        paper_id=models.IdAttribute(),
        title=models.UnicodeAttribute(),
        version=models.VersionAttribute(),
    )
    own("Paper", {"title": sql.CharField(max_length=9)}, {"id": 1, "title": "a"})
    run(capsys, modules=["Paper"])
    paper = made.objects.get(pk="1")
    paper.title = "b"
    paper.save()
    assert made.objects.get(pk="1").version == 2


def test_many_columns_feed_one_key(own: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A composite primary key in SQL, one of several attributes here."""
    if not hasattr(sql, "CompositePrimaryKey"):
        pytest.skip("Django has them since 5.2")
    made = declare(
        "Paper",
        ("TENANT#{tenant}", "PAPER#{number}"),
        tenant=models.UnicodeAttribute(),
        number=models.IntegerAttribute(),
    )
    fields = {
        "pk": sql.CompositePrimaryKey("tenant", "number"),
        "tenant": sql.CharField(max_length=9),
        "number": sql.IntegerField(),
    }
    own("Paper", fields, *({"tenant": tenant, "number": number} for tenant in "ab" for number in range(5)))
    said = run(capsys, modules=["Paper"], chunk_size=3)
    assert line(said, "catalog.Paper") == "10 rows: 10 created."
    assert made.objects.get(tenant="b", number=4).pk == "b~~4"
    assert "10 stored already" in run(capsys, modules=[], maps=["catalog_order="])


def test_numbers_that_would_be_cut_are_refused(own: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """An integer attribute takes no half."""
    declare("Paper", ("PAPER#{paper_id}", "#METADATA"), paper_id=models.IdAttribute(), size=models.IntegerAttribute())
    own("Paper", {"size": sql.FloatField()}, {"id": 1, "size": 2.0}, {"id": 2, "size": 2.5})
    said = refused(capsys, modules=["Paper"])
    assert line(said, "catalog.Paper") == "2 rows: 1 created, 1 refused."


def test_sharded_objects_are_found_again(own: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The identifier and the time determine the shard."""
    fields = {"visit_id": sql.CharField(max_length=9, primary_key=True), "at": sql.DateTimeField()}
    own("Visit", fields, *({"visit_id": f"v{number}", "at": MOMENT} for number in range(5)))
    assert line(run(capsys, modules=["Visit"]), "catalog.Visit") == "5 rows: 5 created."
    assert line(run(capsys, modules=["Visit"]), "catalog.Visit") == "5 rows: 0 created, 5 stored already."
    assert Visit.objects.get(pk="v3").at == MOMENT


def test_relation_becomes_a_declared_model(own: Any, rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    """The table that Django made for a relation, and edges with a model here."""
    tag = declare("Label", ("LABEL#{label_id}", "#METADATA"), label_id=models.IdAttribute())
    paper = declare(
        "Paper",
        ("PAPER#{paper_id}", "#METADATA"),
        paper_id=models.IdAttribute(),
        labels=models.ManyToMany(tag, through="catalog.Sticker", related_name="papers"),
    )
    sticker = declare(
        "Sticker",
        ("PAPER#{on_id}", "LABEL#{tag_id}"),
        {"by_label": models.IndexKey("gs1", "STICKERS#{tag_id}", "{on_id}")},
        on=models.ReferenceAttribute(paper, on_delete=models.CASCADE),
        tag=models.ReferenceAttribute(tag, on_delete=models.CASCADE),
    )
    old_tag = own("Label", {}, {"id": 1}, {"id": 2})
    model = own("Paper", {"labels": sql.ManyToManyField(old_tag)}, {"id": 7})
    model.labels.through._base_manager.using(OLD).create(paper_id=7, label_id=2)
    run(capsys, modules=["Label", "Paper"])
    assert [each.pk for each in sticker.objects.allow_scan()] == ["7~~2"]


def test_references_need_no_foreign_keys(own: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The model of a reference determines the meaning of its column."""
    tag = declare("Label", ("LABEL#{word}", "#METADATA"), word=models.UnicodeAttribute())
    paper = declare(
        "Paper",
        ("PAPER#{paper_id}", "#METADATA"),
        paper_id=models.IdAttribute(),
        tag=models.ReferenceAttribute(tag, on_delete=models.DO_NOTHING),
    )
    old_tag = own("Label", {"word": sql.CharField(max_length=9)}, {"id": 1, "word": "a"}, {"id": 2, "word": "b"})
    own("Paper", {"tag": sql.ForeignKey(old_tag, sql.CASCADE, db_constraint=False)}, {"id": 7, "tag_id": 2})
    run(capsys, "catalog_order=", modules=[])
    assert paper.objects.get(pk="7").tag_id == "b"


def test_omitted_models_leave_their_relations(own: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A relation needs no separate option, and can be omitted alone."""
    tag = declare("Label", ("LABEL#{label_id}", "#METADATA"), label_id=models.IdAttribute())
    declare(
        "Paper",
        ("PAPER#{paper_id}", "#METADATA"),
        paper_id=models.IdAttribute(),
        labels=models.ManyToMany(tag, related_name="papers"),
    )
    old_tag = own("Label", {}, {"id": 1})
    model = own("Paper", {"labels": sql.ManyToManyField(old_tag)}, {"id": 7})
    model.labels.through._base_manager.using(OLD).create(paper_id=7, label_id=1)
    assert "Paper_labels ->" not in run(capsys, "Paper=", modules=["Label", "Paper"])
    said = run(capsys, "Paper.labels=", modules=["Label", "Paper"])
    assert line(said, "catalog.Paper") == "1 row: 1 created."
    assert "Paper_labels ->" not in said


def test_sets_take_many_to_many_relations(own: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A set of the other objects' ``pk``, if ``--map`` names one."""
    tag = declare("Label", ("LABEL#{word}", "#METADATA"), word=models.UnicodeAttribute())
    paper = declare(
        "Paper", ("PAPER#{paper_id}", "#METADATA"), paper_id=models.IdAttribute(), words=models.UnicodeSetAttribute()
    )
    old_tag = own("Label", {"word": sql.CharField(max_length=9)}, {"id": 1, "word": "a"}, {"id": 2, "word": "b"})
    model = own("Paper", {"labels": sql.ManyToManyField(old_tag)}, {"id": 7}, {"id": 8})
    for each in (1, 2):
        model.labels.through._base_manager.using(OLD).create(paper_id=7, label_id=each)
    run(capsys, "Paper.labels=words", modules=["Label", "Paper"])
    assert [paper.objects.get(pk=pk).words for pk in "78"] == [{"a", "b"}, None]
    assert tag.objects.get(pk="a").word == "a"


def test_the_estimate_is_what_is_charged(rows: Rows, table: Table, capsys: pytest.CaptureFixture[str]) -> None:
    """For plain objects exactly, and within a fifth for transactions that share counters."""
    rows.add("Sample", *({"sample_id": f"s{n}", "text": "x" * 30} for n in range(60)))
    with measure_requests() as plain:
        said = run(capsys)
    if not plain.write_units:
        pytest.skip("DynamoDB Local returns no capacity for statements, and too little for transactions")
    assert f"about {plain.requests} requests and {plain.write_units:g} write units" in said
    rows.modules.clear()
    rows.add("Aisle", {"aisle_id": "a", "name": "Ants"})
    run(capsys)
    rows.add("Volume", *(a_volume(n, aisle_id="a", isbn=f"i{n}", slot=n) for n in range(60)))
    with measure_requests() as counted:
        said = run(capsys)
    (estimate,) = (each for each in said.splitlines() if "Volume: 60 rows; if" in each)
    units = float(estimate.split(" and ")[1].split()[0].replace(",", ""))
    assert counted.write_units == pytest.approx(units, rel=0.2)
    assert Volume.objects.get(pk="a~~7").title == "T7"
    assert_consistent()


def test_an_error_of_the_database_hides_values(
    rows: Rows, table: Table, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database that fails midway ends the command; another run completes it."""
    rows.add("GameTag", *({"word": f"w{number}"} for number in range(6)))
    pages = SourceTable.pages

    def failing(self: SourceTable, size: int) -> Iterator[Any]:
        for number, page in enumerate(pages(self, size)):
            if number and size == 4:
                raise OperationalError("hidden")
            yield page

    monkeypatch.setattr(SourceTable, "pages", failing)
    with pytest.raises(CommandError, match="The SQL database raised OperationalError") as raised:
        run(capsys, chunk_size=4)
    assert "hidden" not in str(raised.value)
    assert line(run(capsys), "catalog.GameTag") == "6 rows: 2 created, 4 stored already."


def test_models_are_mapped(own: Any, rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    """With another name here, which references, content types and permissions follow."""
    made = declare("Paper", ("PAPER#{paper_id}", "#METADATA"), paper_id=models.IdAttribute())
    note = declare(
        "Note",
        ("NOTE#{note_id}", "#METADATA"),
        note_id=models.IdAttribute(),
        on=models.ReferenceAttribute(made, on_delete=models.DO_NOTHING),
        kind=models.UnicodeAttribute(),
    )
    old = own("Ancient", {}, {"id": 1})
    type_of = rows.models["ContentType"]._base_manager.using(OLD).create(app_label="catalog", model="ancient")
    fields = {"on": sql.ForeignKey(old, sql.CASCADE), "kind": sql.ForeignKey(rows.models["ContentType"], sql.CASCADE)}
    own("Note", fields, {"id": 2, "on_id": 1, "kind_id": type_of.pk})
    may = (
        rows.models["Permission"]
        ._base_manager.using(OLD)
        .create(content_type=type_of, codename="add_ancient", name="x")
    )
    rows.add("User", {"id": 4, "username": "ann", "password": "x", "date_joined": MOMENT})
    through = rows.models["User"].user_permissions.through
    through._base_manager.using(OLD).create(user_id=4, permission_id=may.pk)
    run(capsys, "Ancient=catalog.Paper", modules=["Ancient", "Note"])
    found = note.objects.get(pk="2")
    assert (found.on.pk, found.kind) == ("1", "catalog.paper")
    assert User.objects.get(pk="4").permissions == {"catalog.add_paper"}
