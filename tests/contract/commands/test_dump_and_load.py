"""``dumpdata`` of an app and ``loaddata`` of it into an empty table give the same items."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from accounts.models import Group, LoginFailures, User
from dynamo_single import clock
from dynamo_single.authorship import acting_as
from dynamo_single.exceptions import EmptyKeyPart
from dynamo_single.orm.schema.registry import all_models
from dynamo_single.table import Request, Table
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Office, Person
from tests.catalog.boards import Board, Card, Pin, Task, Wall
from tests.catalog.chat import (
    ChatChannel,
    ChatInvitation,
    ChatMembership,
    ChatMessage,
    ChatProfile,
    ChatServer,
    ChatUser,
)
from tests.catalog.clubs import Bee, Club, Hive, Player, Team, Trophy
from tests.catalog.library import Aisle, Ledgered, Volume
from tests.catalog.models import Product
from tests.contract.tables import assert_consistent, everything

#: The models of the differential test have a table of their own, which is not there.
ELSEWHERE = [model._meta.label for model in all_models() if model._options.alias != "default"]


def empty(table: Table) -> None:
    """Delete every item."""
    for pk, sk in everything(table):
        table.send(Request("DeleteItem", {"Key": {"pk": {"S": pk}, "sk": {"S": sk}}}))


def dump(path: Path, *labels: str, **options: Any) -> str:
    """Write a fixture; return the command's other output."""
    said = io.StringIO()
    call_command("dumpdata", *labels, output=str(path), stderr=said, exclude=ELSEWHERE, **options)
    return said.getvalue()


def companies() -> None:
    """Companies, people and offices, some of them in the trash: by themselves, and with their company."""
    acme = Company.objects.create(name="Acme", public=True)
    gone = Company.objects.create(name="Gone")
    for company in (acme, gone):
        ann, mike = (
            Person.objects.create(company=company, name=name, email=f"{name}@{company.name}.com")
            for name in ("Ann", "Mike")
        )
        Office.objects.create(company=company, city="Bonn")
        mike.delete()
        ann.name = "Anna"
        ann.save()
    gone.delete()


def users() -> None:
    """Users with login items, groups with members, permissions, and a counted attempt."""
    editors = Group.objects.create(name="Editors", permission_names={"directory.change_company"})
    ann = User.objects.create_user("Ann", "ann@example.com", "secret", permissions={"directory.view_company"})
    User.objects.create_superuser("Root", "root@example.com", "secret")
    ann.groups.add(editors)
    ann.confirm_email()
    ann.save()
    LoginFailures.objects.create(
        scope="s", failures=2, last_failure=clock.now(), expires=clock.now().replace(year=2100)
    )


def chat() -> None:
    """Copies of a user's name, counted children, and an author."""
    servers = [ChatServer.objects.create(name=name) for name in ("one", "two")]
    for name in ("Ann", "Mike"):
        user = ChatUser.objects.create(username=name, mood="glad")
        for server in servers:
            membership = ChatMembership.objects.create(server=server, user=user)
        ChatProfile.objects.create(user=user, kind="k")
        ChatInvitation.objects.create(user=user)
        membership.delete()
    ChatInvitation.objects.create()
    ChatChannel.objects.create(server=servers[0])
    author = User.objects.create_user("Author", "author@example.com", "secret")
    with acting_as(author):
        ChatMessage.objects.create(chat_id="c", text="hello")


def library() -> None:
    """Counters, copies, claims alone and together, and a version; a parent with its children in the trash."""
    for name in ("A", "B"):
        aisle = Aisle.objects.create(aisle_id=name.lower(), name=name)
        for number in (1, 2, 3):
            Volume.objects.create(aisle=aisle, number=number, title=f"T{number}", isbn=f"{name}{number}", slot=number)
        Volume.objects.get(aisle=aisle, number=2).delete()
    aisle.delete()
    for number in (1, 2):
        Ledgered.objects.create(number=number, title="T", isbn=f"l{number}").save(force_update=True)
    Ledgered.objects.get(number=2).delete()


def clubs() -> None:
    """Create children of children in the trash, and scheduled purges."""
    for name in ("one", "two"):
        club = Club.objects.create(name=name)
        team = Team.objects.create(club=club, team_id="t")
        Player.objects.create(team=team, player_id=name, number=name)
        Trophy.objects.create(club=club, year=2026)
        hive = Hive.objects.create()
        for bee in ("a", "b"):
            Bee.objects.create(hive=hive, bee_id=bee)
    team.delete()
    hive.delete()


def boards() -> None:
    """Models that no key lists."""
    board = Board.objects.create(board_id="b", name="B")
    Task.objects.create(board=board, number=1)
    wall = Wall.objects.create(name="W")
    Pin.objects.create(wall=wall, pin_id="p", color="red")
    Product.objects.create(data={"name": "Lamp"})
    Product.objects.create().delete()


@pytest.mark.parametrize("fill", [companies, users, chat, library, clubs, boards])
@pytest.mark.parametrize("labels", [(), ("directory", "accounts", "catalog")], ids=["all", "apps"])
def test_a_loaded_dump_is_the_same_table(
    table: Table, tmp_path: Path, fill: Callable[[], None], labels: tuple[str, ...]
) -> None:
    """Every item comes back as it was: with claims, copies, counters, derived items, and the trash by ``--all``."""
    fill()
    before = everything(table)
    dump(tmp_path / "dump.json", *labels, use_base_manager=True)
    empty(table)
    call_command("loaddata", str(tmp_path / "dump.json"), verbosity=0)
    after = everything(table)
    assert after.keys() == before.keys()
    assert after == before
    assert_consistent()


def test_models_that_no_key_lists_are_read_by_one_scan(table: Table, tmp_path: Path) -> None:
    """The scan is announced with its models and table; a listed model is read with its key."""
    boards()
    with assert_requests(["Query", "Scan"]):
        said = dump(tmp_path / "dump.json", "catalog.Board", "catalog.Task", "catalog.Pin", "catalog.Product")
    assert said == (
        "No key lists catalog.Pin, catalog.Product, catalog.Task: they are read by a Scan of the whole table "
        f"{table.name!r} at {table.settings.place}, which is charged for every item in it.\n"
    )
    found = [(each["model"], each["fields"].get("data")) for each in json.loads((tmp_path / "dump.json").read_text())]
    assert found[0] == ("catalog.board", None)
    assert sorted(found[1:], key=str) == [
        ("catalog.pin", None),
        ("catalog.product", {"name": "Lamp"}),
        ("catalog.task", None),
    ]


def test_the_scan_goes_on_page_by_page(table: Table, tmp_path: Path) -> None:
    """A page ends at a megabyte."""
    for _ in range(5):
        Product.objects.create(data={"text": "x" * 300_000})
    with assert_requests(["Scan", "Scan"]):
        dump(tmp_path / "dump.json", "catalog.Product")
    assert len(json.loads((tmp_path / "dump.json").read_text())) == 5


def test_the_scan_gives_what_the_default_manager_gives(table: Table, tmp_path: Path) -> None:
    """Its conditions also apply to the items of a Scan, unless ``--all`` is set."""
    board = Board.objects.create(board_id="b", name="B")
    for status in ("open", "done"):
        Card.objects.create(board=board, card_id=status, status=status)
    dump(tmp_path / "open.json", "catalog.Card")
    dump(tmp_path / "all.json", "catalog.Card", use_base_manager=True)
    found = [json.loads((tmp_path / f"{name}.json").read_text()) for name in ("open", "all")]
    assert [sorted(each["fields"]["status"] for each in cards) for cards in found] == [["open"], ["done", "open"]]


def test_named_objects_are_read_by_their_keys(table: Table, tmp_path: Path) -> None:
    """``--pks`` needs no Scan, and announces none."""
    lamp, _ = (Product.objects.create(data={"number": number}) for number in (1, 2))
    with assert_requests(["GetItem"]):
        said = dump(tmp_path / "dump.json", "catalog.Product", primary_keys=lamp.pk)
    assert said == ""
    assert [each["pk"] for each in json.loads((tmp_path / "dump.json").read_text())] == [lamp.pk]


def test_a_copy_may_come_before_its_source(table: Table, tmp_path: Path) -> None:
    """Objects whose keys contain a copy wait until all fixtures are loaded."""
    user, server = ChatUser.objects.create(username="Ann"), ChatServer.objects.create(name="one")
    ChatMembership.objects.create(server=server, user=user)
    before = everything(table)
    dump(tmp_path / "1.json", "catalog.ChatMembership")
    dump(tmp_path / "2.json", "catalog.ChatUser", "catalog.ChatServer")
    empty(table)
    call_command("loaddata", str(tmp_path / "1.json"), str(tmp_path / "2.json"), verbosity=0)
    assert everything(table) == before


def test_a_copy_without_its_source_is_an_error(table: Table, tmp_path: Path) -> None:
    """The error names sources that neither the fixtures nor the table contain."""
    user, server = ChatUser.objects.create(username="Ann"), ChatServer.objects.create(name="one")
    ChatMembership.objects.create(server=server, user=user)
    dump(tmp_path / "1.json", "catalog.ChatMembership")
    empty(table)
    with pytest.raises(EmptyKeyPart, match=r"Could not load catalog\.ChatMembership.*username"):
        call_command("loaddata", str(tmp_path / "1.json"), verbosity=0)
