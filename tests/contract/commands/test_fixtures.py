"""Fixtures: every type is loaded as written, and ``dumpdata`` supports models without SQL."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core import serializers
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db.models.signals import post_save, pre_save

from dynamo_single.exceptions import NotRolledBackWarning
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Person
from tests.catalog.boards import Board
from tests.catalog.models import Sample

pytestmark = pytest.mark.usefixtures("table")

MOMENT = "2024-01-01T00:00:00Z"
LONG = Decimal("1.23456789012345678901234567890")
VALUES: list[dict[str, Any]] = [
    {"data": {"price": Decimal("1.5"), "count": 2, "none": None, "list": [True, "x", {"y": []}]}},
    {"data": {"long": LONG, "tiny": Decimal("1E-130")}},
    {"data": {"bytes": b"\x00\xff", "set": {"a"}, "in": [{b"x"}, {1, Decimal("2.5")}]}},
    {"data": {"$dynamodb": {"S": "a text"}}},
    {"things": [Decimal("2.5"), {"b": b"x"}, None]},
    {"json": {"p": Decimal("1.5"), "q": [1, None]}},
    {"json": {"long": LONG * 10**30}},
    {"json": "text"},
    {"words": {"b", "a"}, "numbers": {1, Decimal("2.5")}, "blobs": {b"\x00", b"\xff"}},
    {"numbers": {LONG}},
    {"blob": b"\x00\xff", "integer": 10**30, "decimal": Decimal("1.10"), "number": 1.5, "flag": False},
    {"time": time(9, 30, 0, 123000), "duration": timedelta(days=-1, microseconds=5)},
    {"slug": "a-b", "url": "https://example.com/", "address": "::1"},
    {"moment": datetime(2024, 1, 1, 12, 30, 0, 123000, tzinfo=UTC), "day": date(2024, 2, 29)},
]


def loaded(format_name: str, text: Any) -> Any:
    """The object that a fixture of one object gives, saved and read again."""
    (found,) = serializers.deserialize(format_name, text)
    found.save()
    return type(found.object)._default_manager.get(pk=found.object.pk)


@pytest.mark.parametrize("format_name", ["json", "jsonl", "python"])
@pytest.mark.parametrize("values", VALUES)
def test_a_fixture_changes_no_value(values: dict[str, Any], format_name: str) -> None:
    """Numbers keep their digits, sets and bytes their kind, within documents too."""
    Sample.objects.create(sample_id="s", **values)
    sample = Sample.objects.get()
    stored = sample._stored
    text = serializers.serialize(format_name, [sample])
    sample.delete()
    assert loaded(format_name, text)._stored == stored


@pytest.mark.parametrize("values", [each for each in VALUES if not {"words", "numbers"} & set(each)])
def test_an_xml_fixture_changes_no_document(values: dict[str, Any]) -> None:
    """XML holds documents as JSON text."""
    Sample.objects.create(sample_id="s", **values)
    sample = Sample.objects.get()
    stored = sample._stored
    text = serializers.serialize("xml", [sample])
    sample.delete()
    assert loaded("xml", text)._stored == stored


def test_what_json_can_hold_is_written_plainly() -> None:
    """A fixture reads like the document as far as JSON goes."""
    sample = Sample(sample_id="s", data={"price": Decimal("1.5")}, words={"b", "a"}, numbers={Decimal("2.5"), 1})
    (written,) = json.loads(serializers.serialize("json", [sample]))
    fields = written["fields"]
    assert (fields["data"], fields["words"], fields["numbers"]) == ({"price": 1.5}, ["a", "b"], [1, 2.5])


def test_what_json_cannot_hold_is_written_as_dynamodb_does() -> None:
    """A value that JSON would change is marked, and written in DynamoDB's JSON."""
    sample = Sample(sample_id="s", data={"b": b"\x00"}, numbers={LONG})
    (written,) = json.loads(serializers.serialize("json", [sample]))
    assert written["fields"]["data"] == {"$dynamodb": {"M": {"b": {"B": "AA=="}}}}
    assert written["fields"]["numbers"] == {"$dynamodb": {"NS": ["1.2345678901234567890123456789"]}}


@pytest.mark.parametrize("value", [5, {}, {"M": 5}, {"B": "AA=="}, {"M": {}, "S": ""}])
def test_a_marked_value_that_is_none_is_refused(value: Any) -> None:
    """The marked value must have the attribute's type."""
    with pytest.raises(ValidationError, match="DynamoDB"):
        Sample(data={"$dynamodb": value}).full_clean()


@pytest.mark.parametrize(
    ("label", "fields"),
    [
        ("catalog.board", {"name": "B"}),
        ("directory.person", {"company": "c1", "name": "Mike", "created_at": MOMENT, "updated_at": MOMENT}),
    ],
)
def test_a_fixture_without_pk_makes_a_new_object(label: str, fields: dict[str, Any]) -> None:
    """``"pk": null`` gives each object an identifier of its own, as Django's automatic keys do."""
    text = json.dumps([{"model": label, "pk": None, "fields": fields}] * 2)
    pks = set()
    for found in serializers.deserialize("json", text):
        found.save()
        pks.add(found.object.pk)
    assert len(pks) == 2
    assert None not in pks


def test_an_object_is_copied_by_forgetting_its_pk() -> None:
    """Resetting the identifier copies an object, as in Django: a new one is generated, and other values are kept."""
    person = Person.objects.create(company_id="c1", name="Mike")
    first = person.pk
    person.pk = None
    person._state.adding = True
    person.save()
    assert person.pk != first
    assert Person.objects.filter(company="c1", name="Mike").count() == 2


def dumped(*labels: str) -> list[Any]:
    """Return the output of ``dumpdata``."""
    out = io.StringIO()
    call_command("dumpdata", *labels, stdout=out)
    found: list[Any] = json.loads(out.getvalue())
    return found


def test_an_object_of_a_fixture_sends_the_signals_of_saving() -> None:
    """Each receiver is called once with ``raw=True``."""
    heard = []

    def hear(signal: Any, sender: Any, instance: Any, raw: bool, **kwargs: Any) -> None:
        heard.append((signal, sender, instance.pk, raw))

    for signal in (pre_save, post_save):
        signal.connect(hear, sender=Board)
    try:
        (found,) = serializers.deserialize(
            "python", [{"model": "catalog.board", "pk": "b", "fields": {"name": "Acme"}}]
        )
        found.save()
    finally:
        for signal in (pre_save, post_save):
            signal.disconnect(hear, sender=Board)
    assert heard == [(signal, Board, "b", True) for signal in (pre_save, post_save)]


def test_dumpdata_lists_a_model_by_its_key() -> None:
    """The objects come in the order of the key that lists them, with the requests of ``all()``."""
    for company_id, name in (("c1", "Beta"), ("c2", "Alpha")):
        Company.objects.create(company_id=company_id, name=name)
    Company.objects.create(name="Gone").delete()
    with assert_requests(["Query"]):
        found = dumped("directory.Company")
    assert [(each["pk"], each["fields"]["name"]) for each in found] == [("c2", "Alpha"), ("c1", "Beta")]


def test_dumpdata_of_named_objects_reads_just_those() -> None:
    """``--pks`` is a BatchGetItem."""
    for board_id in ("b1", "b2", "b3"):
        Board.objects.create(board_id=board_id, name="B")
    out = io.StringIO()
    with assert_requests(["BatchGetItem"]):
        call_command("dumpdata", "catalog.Board", primary_keys="b3,b1", stdout=out)
    assert sorted(each["pk"] for each in json.loads(out.getvalue())) == ["b1", "b3"]


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (["auth"], "Nothing is dumped of auth.Permission, auth.Group: they are of SQL, and 'default' is no SQL"),
        (["auth.Group", "accounts.Group"], "Nothing is dumped of auth.Group: they are of SQL"),
        (["auth.Group"], "Users are accounts.User here."),
        (["accounts.Group"], ""),
        ([], ""),
    ],
)
def test_dumpdata_says_of_what_was_named_that_no_database_holds_it(labels: list[str], told: str) -> None:
    """An empty list would pass for a dump of the users."""
    err = io.StringIO()
    call_command("dumpdata", *labels, "--exclude=catalog", stdout=io.StringIO(), stderr=err)
    assert told in err.getvalue()
    assert ("Nothing is dumped" in err.getvalue()) == bool(told)


@pytest.mark.parametrize(
    "row",
    [
        {"model": "auth.group", "pk": 1, "fields": {"name": "editors", "permissions": []}},
        {"model": "auth.user", "pk": 1, "fields": {"username": "anna", "password": "x"}},
    ],
)
def test_rows_of_sql_models_are_refused_where_there_is_no_sql(tmp_path: Path, row: dict[str, Any]) -> None:
    """Django's own command loads none of them and succeeds; ``--exclude`` leaves them out."""
    fixture = tmp_path / "old.json"
    fixture.write_text(json.dumps([{"model": "catalog.board", "pk": "b", "fields": {"name": "Acme"}}, row]))
    # The row before it is stored, and both errors report this: loaddata is one of Django's transactions.
    refused = pytest.raises(CommandError, match=rf"{row['model']} is a model of SQL.*Users are accounts.User here")
    with pytest.warns(NotRolledBackWarning, match="after 1 writes to DynamoDB"), refused:
        call_command("loaddata", str(fixture), verbosity=0)
    out = io.StringIO()
    call_command("loaddata", str(fixture), exclude=[row["model"]], stdout=out)
    assert "Installed 1 object(s) (of 2) from 1 fixture(s)" in out.getvalue()
    assert Board.objects.get(pk="b").name == "Acme"
