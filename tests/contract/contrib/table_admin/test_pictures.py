"""The pictures of a table: a sample within a budget, stored as one item, and drawn without reading anything else."""

from __future__ import annotations

import io
import json
import re
from typing import Any
from xml.etree import ElementTree

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command

from dynamo_single.admin.viewing.table_samples import TableSample
from dynamo_single.contrib.doctor import verify
from dynamo_single.contrib.table_admin.pictures import drawing, sampling
from dynamo_single.table import Request, Table
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Person
from tests.catalog.chat import ChatMembership, ChatServer, ChatUser
from tests.contract.conftest import Pages, text_of

TABLE = "dynamo_single.view_table"
PAGE = "dynamodb/pictures/"


@pytest.fixture
def acme(table: Table) -> Any:
    """A company with two people, one with an address that is unique."""
    company = Company.objects.create(company_id="acme", name="Acme <b>")
    for name in ("Anna", "Bert"):
        Person.objects.create(company=company, person_id=name.lower(), name=name, email=f"{name.lower()}@example.com")
    return company


def test_empty_page_explains_how_to_take_a_sample(pages: Pages) -> None:
    shown = pages.get(PAGE, sends=["GetItem"])
    assert "There is no sample of this table yet." in text_of(shown)
    assert "up to 2000 items or 4.0 MB, at most 640 read units" in text_of(shown).replace("\xa0", " ")
    assert "manage.py dynamo_sample" in text_of(shown)


def test_button_takes_a_sample_with_one_scan(pages: Pages, acme: Any) -> None:
    """And stores one item; the page then reads that item."""
    assert pages.post(PAGE, sends=["Scan", "UpdateItem", "PutItem"]).status_code == 302
    shown = pages.get(PAGE, sends=["GetItem"])
    assert shown.content.count(b'role="img"') == 4
    assert "It is the whole table." in text_of(shown)


def test_command_replaces_the_sample(table: Table, acme: Any) -> None:
    out = io.StringIO()
    call_command("dynamo_sample", stdout=out)
    with assert_requests(["Scan", "UpdateItem"]):
        call_command("dynamo_sample", stdout=out)
    assert re.search(
        r"Stored a sample of \d items in .*: \d+ bytes, 0.5 read units. It is the whole table.", out.getvalue()
    )
    assert TableSample.objects.get(pk="default").found["is_whole"]


def test_samples_read_within_their_budget(table: Table, acme: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "MAX_ITEMS", 3)
    found = sampling.take(table).found
    assert (found["items"], found["is_whole"]) == (3, False)


def test_samples_stop_at_their_bytes(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the response that reaches the bound."""
    monkeypatch.setattr(sampling, "MAX_BYTES", 1_000_000)
    for number in range(8):
        item = {"pk": {"S": f"A{number}"}, "sk": {"S": "1"}, "text": {"S": "x" * 390_000}}
        table.send(Request("PutItem", {"Item": item}))
    found = sampling.take(table).found
    assert 1_000_000 <= found["bytes"] < 2_100_000
    assert found["units"] <= sampling.MAX_UNITS


def test_stored_sample_is_small(table: Table, acme: Any) -> None:
    """This applies to any number of items and types, and any length of keys."""
    items = [
        {"pk": {"S": "é" * 50 + str(n % 300)}, "sk": {"S": "x" * 90 + str(n)}, "itemType": {"S": f"T{n % 90}"}}
        for n in range(2000)
    ]
    assert len(json.dumps(sampling.contents("default", items))) < 100_000


def test_stored_sample_belongs_to_a_consistent_table(table: Table, acme: Any) -> None:
    sampling.take(table)
    assert list(verify()) == []


def test_whiteboard_draws_partitions_and_arrows(table: Table, acme: Any) -> None:
    """People refer to their company, claims belong to people, and a copy comes from its source."""
    user = ChatUser.objects.create(user_id="u", username="Ann")
    ChatMembership.objects.create(server=ChatServer.objects.create(server_id="s", name="S"), user=user)
    found = sampling.take(table).found
    keys = [(partition, sort) for partition, sort, _type in found["drawn"]]
    arrows = {(keys[one], keys[to], kind) for one, to, kind in found["arrows"]}
    assert {
        (("COMPANY#acme", "PEOPLE#anna"), ("COMPANY#acme", "#METADATA"), "reference"),
        (("UNIQUE#Person#email#anna@example.com", "#CLAIM"), ("COMPANY#acme", "PEOPLE#anna"), "owner"),
        (("SERVER#s", "USER#u"), ("USER#u", "#METADATA#CHAT"), "source"),
        (("SERVER#s", "USER#u"), ("SERVER#s", "#METADATA"), "counter"),
    } <= arrows


def test_no_two_types_have_one_color() -> None:
    for count in (1, 2, 12, sampling._TYPES + 40):
        colors = drawing.colors_of(f"Type{number}" for number in range(count))
        assert len({*colors.values()}) == count


def test_pictures_are_valid_and_without_styles(pages: Pages, table: Table, acme: Any) -> None:
    """Stored markup is text in them, and the strict policy allows them."""
    item = {"pk": {"S": "<script>"}, "sk": {"S": '"&'}, "itemType": {"S": "<b>"}}
    table.send(Request("PutItem", {"Item": item}))
    pages.post(PAGE)
    shown = pages.get(PAGE).content.decode()
    pictures = re.findall(r"<svg xmlns.*?</svg>", shown, re.DOTALL)
    for picture in pictures:
        names = [each.tag.rpartition("}")[2] for each in ElementTree.fromstring(picture).iter()]  # noqa: S314 - our own
        assert not {"script", "style", "image", "a"} & {*names}
        assert "style=" not in picture


@pytest.mark.parametrize("size", [1, 1024, 1025, 4096, 409_600])
def test_sizes_are_counted_by_their_step(size: int) -> None:
    """An item of exactly 1 KB still takes one unit."""
    item = {"pk": {"S": "a"}, "sk": {"S": "b"}, "t": {"S": "x" * max(size - 7, 0)}}
    ((_name, total, counts),) = sampling.contents("default", [item])["types"]
    limit = next(limit for limit in sampling.SIZES if total <= limit)
    assert counts[sampling.SIZES.index(limit)] == 1


# hidden contents


def test_secrets_are_in_no_sample(pages: Pages, acme: Any) -> None:
    """This includes the stored item and the pictures."""
    user = get_user_model()._default_manager.get(username="admin")
    session = str(pages.client.session.session_key)
    pages.post(PAGE)
    stored = json.dumps(TableSample.objects.get(pk="default").found, default=str)
    for secret in (user.password, session, "SESSIONHASH#"):
        assert secret not in stored
    assert "Session" in stored


def test_hidden_models_are_not_drawn(staff: Any, table: Table, acme: Any) -> None:
    """They are not counted either, and the size of the whole table is hidden."""
    sampling.take(table)
    shown = text_of(staff(TABLE, "directory.view_company").get(PAGE))
    assert "Company" in shown
    for text in ("Person", "PEOPLE", "UNIQUE", "It read"):
        assert text not in shown


def test_pictures_take_the_permission_of_the_table(staff: Any) -> None:
    pages = staff("directory.view_company")
    assert (pages.get(PAGE).status_code, pages.post(PAGE).status_code) == (403, 403)


@pytest.mark.parametrize("found", [[], {}, {"types": 1}, "text"])
def test_damaged_samples_are_taken_again(pages: Pages, found: Any) -> None:
    """The page offers it instead of an error."""
    TableSample.objects.create(alias="default", taken_at="2026-01-01T00:00:00Z", found=found)
    assert "There is no sample" in text_of(pages.get(PAGE))
