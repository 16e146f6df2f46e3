"""``manage.py dynamo_import_sql``: rows become objects."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import make_password
from django.core import mail
from django.core.management import CommandError, call_command
from django.db import connections
from django.db.models import signals

from accounts.models import Group, User
from dynamo_single import models
from dynamo_single.exceptions import TableUnavailable
from dynamo_single.table import Request, Table, get_table
from dynamo_single.testing import assert_requests, intercept
from tests.catalog.library import Aisle, Volume
from tests.catalog.models import Order, Sample, Ticket
from tests.catalog.servers import GameFan, GameGuild, GameMember, GameServer, GameTag
from tests.catalog.tenants import Estate, Lot, LotRemark
from tests.contract.sql_import.conftest import MODULES, OLD, OLD_MODELS, Rows
from tests.contract.tables import assert_consistent, everything
from tests.unit.declaring import declare, forgotten

MOMENT = datetime(2019, 5, 4, 3, 2, 1, 123000, tzinfo=UTC)
NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)


def run(capsys: pytest.CaptureFixture[str], *maps: str, **options: Any) -> str:
    """Return the command's output for the kinds of rows in the test."""
    given = {"modules": sorted(Rows.modules) or MODULES[:1], "maps": [*maps], **options}
    call_command("dynamo_import_sql", database=OLD, **given)
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *maps: str, **options: Any) -> str:
    """Return the command's output before it exits with 1."""
    with pytest.raises(CommandError):
        run(capsys, *maps, **options)
    return capsys.readouterr().out


def line(said: str, model: str) -> str:
    """The line of a model's numbers."""
    (found,) = (each for each in said.splitlines() if f"-> {model}: " in each and "if all are new" not in each)
    return found.partition(f"-> {model}: ")[2]


SAMPLE = {
    "sample_id": "s#1/~",
    "text": "Ünïcode #|~",
    "email": "a@example.com",
    "integer": -(2**62),
    "number": 0.1,
    "decimal": Decimal("12.30"),
    "flag": False,
    "moment": MOMENT,
    "day": date(2019, 5, 4),
    "time": time(3, 2, 1, 5),
    "duration": timedelta(days=-2, microseconds=7),
    "slug": "a-b",
    "url": "https://example.com/",
    "address": "2001:db8::1",
    "token": uuid.UUID(int=7),
    "json": {"a": [1, 2.5, None]},
    "data": {"a": {"b": [True, "x"]}},
    "things": [1, {"x": "y"}],
    "words": ["b", "a"],
    "blob": b"\x00\xff",
    "parent_id": None,
}


def test_every_type_is_converted(rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    """Values of each of Django's types become the attribute's."""
    rows.add("Sample", SAMPLE)
    assert line(run(capsys), "catalog.Sample") == "1 row: 1 created."
    found = Sample.objects.get(pk="s#1/~")
    assert {name: getattr(found, name) for name in SAMPLE} == {
        **SAMPLE,
        "words": {"a", "b"},
        "data": {"a": {"b": [True, "x"]}},
    }


def test_missing_and_empty_values_stay_apart(rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    """NULL is no attribute, and an empty text is one."""
    rows.add("Sample", {"sample_id": "a", "text": ""}, {"sample_id": "b", "text": None})
    run(capsys)
    assert [Sample.objects.get(pk=pk).text for pk in "ab"] == ["", None]


def test_introspected_tables_become_the_same_objects(
    rows: Rows, table: Table, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a module, the attributes determine how a column is read."""
    rows.add("Sample", SAMPLE, {"sample_id": "other", "parent_id": SAMPLE["sample_id"]})
    run(capsys)
    before = everything(table)
    said = run(capsys, "catalog_order=", modules=[])
    assert "catalog_sample -> catalog.Sample: 2 rows: 0 created, 2 stored already." in said
    assert everything(table) == before


def test_references_follow_the_keys_of_their_objects(rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers of rows become keys of several parts, with separators escaped, along any number of references."""
    rows.add("Estate", {"id": 7, "tenant": "a#b", "code": 3}, {"id": 8, "tenant": "c", "code": 3})
    rows.add("Lot", {"id": 70, "estate_id": 7, "number": 5, "title": "A"})
    rows.add("LotRemark", {"id": 700, "about_id": 70, "remark_id": "x~y"})
    run(capsys)
    estate = Estate.objects.get(tenant="a#b", code=3)
    lot = Lot.objects.get(estate=estate, number=5)
    assert [each.remark_id for each in LotRemark.objects.filter(about=lot)] == ["x~y"]


def test_nothing_is_written_again(rows: Rows, table: Table, capsys: pytest.CaptureFixture[str]) -> None:
    """Existing objects are read by key and compared."""
    rows.add("GameTag", *({"word": f"w{number}"} for number in range(120)))
    with assert_requests(["BatchGetItem"] * 2 + ["BatchExecuteStatement"] * 5):
        assert line(run(capsys), "catalog.GameTag") == "120 rows: 120 created."
    before = everything(table)
    with assert_requests(["BatchGetItem"] * 2):
        assert line(run(capsys), "catalog.GameTag") == "120 rows: 0 created, 120 stored already."
    assert everything(table) == before


def test_new_rows_are_picked_up(rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    """A new row is created; a changed one is reported without an update."""
    rows.add("Estate", {"id": 1, "tenant": "a", "code": 1, "name": "old"})
    run(capsys)
    rows.add("Estate", {"id": 2, "tenant": "a", "code": 2, "name": "new"})
    rows.of("Estate").filter(pk=1).update(name="changed")
    said = refused(capsys)
    assert line(said, "catalog.Estate") == "2 rows: 1 created, 1 stored with other values."
    assert "different: 1: the stored object has other values: name" in said
    assert [Estate.objects.get(tenant="a", code=code).name for code in (1, 2)] == ["old", "new"]


def a_volume(number: int, **values: Any) -> dict[str, Any]:
    """A row of a volume."""
    return {"id": number, "number": number, "title": f"T{number}", "created_at": MOMENT, "updated_at": NOON} | values


def test_copies_counters_and_claims_are_written(rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    """They are in transactions with their objects, in as few requests as possible; the rows set the times."""
    rows.add("Aisle", {"aisle_id": "a", "name": "Ants"}, {"aisle_id": "b", "name": "Bees"})
    rows.add("Volume", *(a_volume(n, aisle_id="ab"[n % 2], isbn=f"i{n}", slot=n) for n in range(60)))
    assert line(run(capsys), "catalog.Volume") == "60 rows: 60 created."
    assert [Aisle.objects.get(pk=pk).volume_count for pk in "ab"] == [30, 30]
    volume = Volume.objects.get(aisle="a", number=2)
    assert (volume.aisle_name, volume.created_at, volume.updated_at) == ("Ants", MOMENT, NOON)
    assert_consistent()


def test_taken_unique_values_are_reported(rows: Rows, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The report contains the row's primary key without the value; the rest of its transaction is written."""
    rows.add("Aisle", {"aisle_id": "a", "name": "Ants"})
    rows.add("Volume", *(a_volume(n, aisle_id="a", isbn="hidden" if n in (3, 7) else None) for n in range(10)))
    rejects = tmp_path / "rejects.jsonl"
    said = refused(capsys, rejects=str(rejects))
    assert line(said, "catalog.Volume") == "10 rows: 9 created, 1 refused."
    (found,) = map(json.loads, rejects.read_text().splitlines())
    assert found == {
        "table": "catalog_volume",
        "model": "catalog.Volume",
        "pk": "7",
        "outcome": "refused",
        "reason": "isbn: another object has this value",
    }
    assert "hidden" not in said
    assert Aisle.objects.get(pk="a").volume_count == 9
    assert_consistent()


def test_rows_of_the_trash_stay_there(rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    """They keep the time of their deletion, have no claims, and do not count; the parent's state does not matter."""
    rows.add("Aisle", {"aisle_id": "a", "name": "Ants", "deleted_at": MOMENT}, {"aisle_id": "b", "name": "Bees"})
    rows.add("Volume", a_volume(1, aisle_id="a", deleted_at=MOMENT, isbn="i"), a_volume(2, aisle_id="b", isbn="i"))
    run(capsys)
    assert [each.pk for each in Aisle.deleted_objects.all()] == ["a"]
    assert Volume.all_objects.get(pk="a~~1").deleted_at == MOMENT
    assert Aisle.objects.get(pk="b").volume_count == 1
    assert_consistent()
    assert line(run(capsys), "catalog.Volume") == "2 rows: 0 created, 2 stored already."


def test_expired_rows_are_refused(rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    """DynamoDB would delete them."""
    later = datetime(2100, 1, 1, tzinfo=UTC)
    rows.add("Ticket", {"code": "a", "expires_at": MOMENT}, {"code": "b", "expires_at": later}, {"code": "c"})
    said = refused(capsys)
    assert line(said, "catalog.Ticket") == "3 rows: 2 created, 1 refused."
    assert Ticket.objects.get(pk="b").expires_at == later
    assert "refused: a: has expired" in said


def test_many_to_many_relations_become_edges(rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    """With a model, without one, to itself, and with both sides checked."""
    rows.add("GameTag", {"word": "fun"}, {"word": "new"})
    rows.add("GamePlayer", {"id": 5, "username": "Ann"})
    rows.add("GameServer", {"id": 1, "name": "A"}, {"id": 2, "name": "B"})
    rows.add("GameMember", {"id": 9, "server_id": 1, "player_id": 5, "role": "admin"})
    rows.add("GameFan", {"fan_id": "f"}, {"fan_id": "g"})
    rows.add("GameGuild", {"guild_id": "x"})
    server = rows.of("GameServer").first()
    links = type(server).tags.through
    links._base_manager.using(OLD).bulk_create([links(gameserver_id=1, gametag_id=word) for word in ("fun", "new")])
    type(server).links.through._base_manager.using(OLD).create(from_gameserver_id=1, to_gameserver_id=2)
    fans = rows.models["GameGuild"].fans.through
    fans._base_manager.using(OLD).bulk_create([fans(gameguild_id="x", gamefan_id=pk) for pk in "fg"])

    for _ in range(2):
        said = run(capsys)
        found = GameServer.objects.get(pk="1")
        assert sorted(tag.pk for tag in found.tags.all()) == ["fun", "new"]
        assert [each.pk for each in found.links.all()] == ["2"]
        assert [(each.username, each.role) for each in GameMember.objects.filter(server="1")] == [("Ann", "admin")]
        assert sorted(each.pk for each in GameGuild.objects.get(pk="x").fans.all()) == ["f", "g"]
        assert_consistent()
    assert line(said, "catalog.GameGuild_fans") == "2 rows: 0 created, 2 stored already."
    GameFan.objects.get(pk="f").delete()
    assert GameGuild.objects.get(pk="x").fans.count() == 1


def test_long_texts_are_refused(rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    """An item has 400 KB; the others are written."""
    rows.add("Sample", {"sample_id": "a", "data": {"x": "y" * 410_000}}, {"sample_id": "b"})
    said = refused(capsys)
    assert line(said, "catalog.Sample") == "2 rows: 1 created, 1 refused."
    assert "refused: a: the item would be larger than 400 KB" in said
    assert "yyy" not in said


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"text": "x" * 41}, "text: is too long"),
        ({"decimal": Decimal("1.25"), "number": 1.5, "slug": "no slug"}, "slug: does not fit"),
        ({"url": "nowhere"}, "url: does not fit"),
        ({"data": [1]}, "data: does not fit"),
        ({"things": {}}, "things: does not fit"),
        ({"words": ["a", 1]}, "words: does not fit"),
    ],
)
def test_values_that_do_not_fit_are_reported(
    rows: Rows, capsys: pytest.CaptureFixture[str], values: Any, reason: str
) -> None:
    """By the attribute's name, without the value."""
    rows.add("Sample", {"sample_id": "a", **values})
    assert f"refused: a: {reason}" in refused(capsys)


def test_validators_can_be_left_out(rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    """The import stores the values that ``save()`` accepts."""
    rows.add("Sample", {"sample_id": "a", "text": "x" * 41})
    run(capsys, validate=False)
    assert Sample.objects.get(pk="a").text == "x" * 41


def test_columns_are_mapped(rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    """A field maps to another name, a content type to its label, and one column is omitted."""
    type_of = rows.models["ContentType"]._base_manager.using(OLD).create(app_label="catalog", model="sample")
    rows.add("Order", {"id": 1, "buyer": "c#d", "number": 4, "about_id": type_of.pk})
    said = run(capsys, "Order.buyer=customer", "catalog.Order.about=status", "order.id=")
    assert line(said, "catalog.Order") == "1 row: 1 created."
    order = Order.objects.get(customer="c#d", number=4)
    assert order.status == "catalog.sample"


@pytest.mark.parametrize(
    ("maps", "problem"),
    [
        (
            [],
            "catalog.Order.buyer has no attribute in catalog.Order. Name an attribute with --map catalog.Order.buyer=",
        ),
        (["Order.buyer="], "catalog.Order.customer is required and gets no value"),
        (["Order=catalog.Nowhere"], "no model in DynamoDB has this label"),
        (["Order.buyer=customers"], "catalog.Order has no such attribute"),
        (["Nowhere=catalog.Order"], "'Nowhere' is not the name of a model"),
        (["Order.nothing=status"], "'Order.nothing' is not the name of a model"),
        (["Order"], "write old.Model=app.Model or Model.field=attribute"),
    ],
)
def test_what_would_be_lost_is_refused(
    rows: Rows, table: Table, capsys: pytest.CaptureFixture[str], maps: list[str], problem: str
) -> None:
    """The error occurs before any write, and names the alternative."""
    with pytest.raises(CommandError) as raised:
        call_command("dynamo_import_sql", database=OLD, modules=[f"{OLD_MODELS}.orders"], maps=maps)
    assert problem in str(raised.value)


def test_dry_run_writes_nothing(rows: Rows, table: Table, capsys: pytest.CaptureFixture[str]) -> None:
    """The dry run reads, compares, and reports the expected writes and their approximate cost."""
    rows.add("GameTag", *({"word": f"w{number}"} for number in range(30)))
    before = everything(table)
    said = run(capsys, dry_run=True)
    assert everything(table) == before
    assert line(said, "catalog.GameTag") == "30 rows: 30 to create."
    assert "catalog.GameTag: 30 rows; if all are new, about 3 requests and 60 write units." in said


def test_check_ends_with_status_one_until_all_is_stored(rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    """This includes missing objects, and objects with other values."""
    rows.add("GameTag", {"word": "a"})
    with pytest.raises(CommandError, match="1 row not stored"):
        run(capsys, check=True)
    run(capsys)
    run(capsys, check=True)


def test_users_log_in_with_their_passwords(rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    """They keep groups, permissions and times. The import does not send e-mails."""
    type_of = rows.models["ContentType"]._base_manager.using(OLD).create(app_label="catalog", model="sample")
    permissions = rows.models["Permission"]._base_manager.using(OLD)
    may_add = permissions.create(content_type=type_of, codename="add_sample", name="x")
    may_fly = permissions.create(content_type=type_of, codename="fly", name="y")
    group = rows.models["Group"]._base_manager.using(OLD).create(name="Staff")
    through = rows.models["Group"].permissions.through._base_manager.using(OLD)
    through.create(group_id=group.pk, permission_id=may_add.pk)
    password = make_password("correct horse")
    user = {"email": "", "password": password, "date_joined": MOMENT, "is_active": True}
    rows.add(
        "User",
        {**user, "id": 4, "username": "ann", "email": "Ann@example.com", "last_login": NOON},
        {**user, "id": 5, "username": "bob"},
        {**user, "id": 6, "username": "ANN"},
    )
    of_user = rows.models["User"]
    of_user.groups.through._base_manager.using(OLD).create(user_id=4, group_id=group.pk)
    of_user.user_permissions.through._base_manager.using(OLD).create(user_id=4, permission_id=may_fly.pk)

    said = refused(capsys)
    assert line(said, "accounts.User") == "3 rows: 2 created, 1 refused."
    ann = User.objects.get_by_natural_key("ann")
    assert (ann.pk, ann.password, ann.last_login, ann.date_joined) == ("4", password, NOON, MOMENT)
    assert ann.check_password("correct horse")
    assert [each.name for each in ann.groups.all()] == ["Staff"]
    assert Group.objects.get(name="Staff").permission_names == {"catalog.add_sample"}
    assert ann.has_perms(["catalog.add_sample", "catalog.fly"])
    assert [each.pk for each in Group.objects.get(name="Staff").user_set.all()] == ["4"]
    assert User.objects.get(pk="5").email == ""
    assert mail.outbox == []
    assert get_user_model() is User
    assert_consistent()


def test_no_signal_is_sent(rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    """This includes objects and relations."""
    rows.add("Aisle", {"aisle_id": "a", "name": "Ants"})
    rows.add("Volume", a_volume(1, aisle_id="a"))
    heard: list[Any] = []
    sent = (signals.pre_init, signals.post_init, signals.pre_save, signals.post_save, signals.m2m_changed)

    def hear(sender: Any, **_: Any) -> None:
        heard.append(sender)

    for each in sent:
        each.connect(hear)
    try:
        run(capsys)
    finally:
        for each in sent:
            each.disconnect(hear)
    assert [each for each in heard if each in (Aisle, Volume)] == []


def test_objects_are_never_overwritten(rows: Rows, table: Table, capsys: pytest.CaptureFixture[str]) -> None:
    """An existing item with a row's key is kept, whatever it is."""
    key = {"pk": {"S": "GAMETAG#a"}, "sk": {"S": "#METADATA"}}
    table.send(Request("PutItem", {"Item": {**key, "itemType": {"S": "Other"}}}))
    rows.add("GameTag", {"word": "a"})
    said = refused(capsys)
    assert "different: a: an object of another model has its key" in said
    assert table.send(Request("GetItem", {"Key": key}))["Item"]["itemType"] == {"S": "Other"}


@pytest.mark.parametrize("has_foreign_keys", [True, False])
def test_introspected_users_have_groups_and_permissions(
    rows: Rows, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, has_foreign_keys: bool
) -> None:
    """Django's tables of users and of relations are found by name."""
    if not has_foreign_keys:
        monkeypatch.setattr(type(connections[OLD].introspection), "get_relations", lambda *_: {})
    type_of = rows.models["ContentType"]._base_manager.using(OLD).create(app_label="catalog", model="sample")
    may_fly = rows.models["Permission"]._base_manager.using(OLD).create(content_type=type_of, codename="fly", name="y")
    group = rows.models["Group"]._base_manager.using(OLD).create(name="Staff")
    rows.add("User", {"id": 4, "username": "ann", "password": "x", "date_joined": MOMENT})
    of_user = rows.models["User"]
    of_user.groups.through._base_manager.using(OLD).create(user_id=4, group_id=group.pk)
    of_user.user_permissions.through._base_manager.using(OLD).create(user_id=4, permission_id=may_fly.pk)
    rows.add("GameServer", {"id": 1, "name": "A"}, {"id": 2, "name": "B"})
    rows.add("GameTag", {"word": "fun"})
    server = rows.of("GameServer").first()
    type(server).tags.through._base_manager.using(OLD).create(gameserver_id=1, gametag_id="fun")
    type(server).links.through._base_manager.using(OLD).create(from_gameserver_id=1, to_gameserver_id=2)

    said = run(capsys, "catalog_order=", modules=[])
    assert "auth_user -> accounts.User: 1 row: 1 created." in said
    ann = User.objects.get(pk="4")
    assert [each.name for each in ann.groups.all()] == ["Staff"]
    assert ann.permissions == {"catalog.fly"}
    found = GameServer.objects.get(pk="1")
    assert ([tag.pk for tag in found.tags.all()], [each.pk for each in found.links.all()]) == (["fun"], ["2"])
    # By the models, which have other names for the same rows, all of it is there.
    assert "refused" not in run(capsys, check=True)


@pytest.mark.parametrize("zone", ["Europe/Vienna", "UTC"])
def test_local_times_are_read_in_the_zone_of_the_database(
    rows: Rows, capsys: pytest.CaptureFixture[str], zone: str
) -> None:
    """An earlier project with ``USE_TZ = False`` stored local times."""
    rows.add("Aisle", {"aisle_id": "a", "name": "Ants"})
    rows.add("Volume", a_volume(1, aisle_id="a"))
    with connections[OLD].cursor() as cursor:
        cursor.execute("UPDATE catalog_volume SET created_at = '2020-06-01 12:00:00'")
    connections[OLD].settings_dict["TIME_ZONE"] = zone
    for cached in ("timezone", "timezone_name"):
        vars(connections[OLD]).pop(cached, None)
    run(capsys)
    created = Volume.objects.get(pk="a~~1").created_at
    assert created == datetime(2020, 6, 1, 12, tzinfo=ZoneInfo(zone))


def test_projects_without_time_zones_read_local_times(
    rows: Rows, capsys: pytest.CaptureFixture[str], settings: Any
) -> None:
    """With ``USE_TZ = False`` both sides are naive, by the clocks of ``TIME_ZONE``."""
    settings.USE_TZ, settings.TIME_ZONE = False, "Europe/Vienna"
    naive = datetime(2020, 6, 1, 12)
    rows.add("Aisle", {"aisle_id": "a", "name": "Ants"})
    rows.add("Volume", a_volume(1, aisle_id="a") | {"created_at": naive, "updated_at": naive})
    run(capsys)
    assert Volume.objects.get(pk="a~~1").created_at == naive
    assert line(run(capsys), "catalog.Volume") == "1 row: 0 created, 1 stored already."


def test_objects_are_created_without_statements(
    rows: Rows, table: Table, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without permission or support, each object is a PutItem."""
    rows.add("GameTag", *({"word": f"w{number}"} for number in range(3)))
    monkeypatch.setattr(get_table(), "takes_statements", False)
    with assert_requests(["BatchGetItem", "PutItem", "PutItem", "PutItem"]):
        run(capsys)


def test_primary_keys_that_are_secrets_are_masked(rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    """In the output, and in the file of the rows."""
    with forgotten():
        declare("GameTag", ("GAMETAG#{word}", "#METADATA"), word=models.UnicodeAttribute(secret=True, max_length=3))
        rows.add("GameTag", {"word": "hidden"})
        said = refused(
            capsys,
            "GameServer=",
            "GameServer_tags=",
            "GameServer_links=",
            "GameMember=",
            modules=[f"{OLD_MODELS}.games"],
        )
    assert "refused: •••: word: is too long" in said
    assert "hidden" not in said


def test_an_unreachable_table_ends_the_import(rows: Rows, table: Table, capsys: pytest.CaptureFixture[str]) -> None:
    """The error is not about a row: it names the next step, and another run completes the import."""
    rows.add("GameTag", *({"word": f"w{number:02}"} for number in range(60)))

    def fail(operation: str, params: Any) -> None:
        if operation == "BatchExecuteStatement" and "w3" in str(params):
            raise TableUnavailable("down")

    with intercept(fail), pytest.raises(CommandError, match="Run the command again"):
        run(capsys)
    said = run(capsys)
    assert GameTag.objects.count() == 60
    assert "60 rows" in line(said, "catalog.GameTag")
