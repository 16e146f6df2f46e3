"""The pages of the table: partitions, items, and hidden contents."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth import get_user_model
from django.core.cache import caches
from django.test import override_settings

from dynamo_single.contrib.table_admin import table_reads
from dynamo_single.sessions import key_hash
from dynamo_single.table import Request, Table
from project.directory.models import Company, Person
from tests.catalog.chat import ChatMembership, ChatProfile, ChatServer, ChatUser
from tests.contract.conftest import Pages, text_of
from tests.contract.sessions.former import as_former

TABLE = "dynamo_single.view_table"


def page_of(pages: Pages, **asked: str) -> Any:
    """The page of a partition, or of a search."""
    return pages.get(f"dynamodb/table/?{urlencode(asked)}")


def item_of(pages: Pages, pk: str, sk: str) -> Any:
    """The page of an item."""
    return pages.get(f"dynamodb/item/?{urlencode({'pk': pk, 'sk': sk})}")


def related(shown: Any) -> list[tuple[str, Any]]:
    """The items that an item's page leads to."""
    return [(link.relation, link.key) for _, link, _ in shown.context["links"]]


@pytest.fixture
def acme(table: Table) -> Any:
    """A company with two people."""
    company = Company.objects.create(company_id="acme", name="Acme <b>")
    for name in ("Anna", "Bert"):
        Person.objects.create(company=company, person_id=name.lower(), name=name)
    return company


def test_a_partition_is_one_query(pages: Pages, acme: Any) -> None:
    """The Query returns items of all types."""
    shown = pages.get("dynamodb/table/?pk=COMPANY%23acme", sends=["Query"])
    rows = shown.context["rows"]
    assert [row.item.item_type for row in rows] == ["Company", "Person", "Person"]
    assert "Anna" in text_of(shown)


def test_markup_that_is_stored_is_shown_as_text(pages: Pages, acme: Any) -> None:
    """Any user may have written an attribute's value."""
    assert "Acme <b>" in text_of(page_of(pages, pk="COMPANY#acme"))
    assert b"Acme <b>" not in item_of(pages, "COMPANY#acme", "#METADATA").content


def test_an_index_is_shown_by_its_own_sort_keys(pages: Pages, acme: Any) -> None:
    """The page shows the result and order of one Query."""
    shown = page_of(pages, index="gs1", pk="COMPANY")
    assert [row.item.item_type for row in shown.context["rows"]] == ["Company"]
    assert shown.context["rows"][0].item.keys[1].templates[0] == "COMPANY"


def test_an_item_has_its_keys_its_json_and_what_it_has_to_do_with(pages: Pages, acme: Any) -> None:
    """The page sends a single GetItem."""
    shown = pages.get(f"dynamodb/item/?{urlencode({'pk': 'COMPANY#acme', 'sk': 'PEOPLE#anna'})}", sends=["GetItem"])
    item = shown.context["item"]
    assert item.keys[0].templates == ("COMPANY#{company_id}", "PEOPLE#{person_id}")
    assert json.loads(item.text)["name"] == {"S": "Anna"}
    assert related(shown) == [("reference", ("COMPANY#acme", "#METADATA"))]


def test_an_object_leads_to_its_item_and_back(pages: Pages, acme: Any) -> None:
    """By a link on each page."""
    change = pages.get("directory/company/acme/change/").content.decode()
    address = re.findall(r'href="(/admin/dynamodb/item/[^"]+)"', change)[0].replace("&amp;", "&")
    back = pages.client.get(address)
    assert back.context["object_url"] == "/admin/directory/company/acme/change/"


def test_a_claim_leads_to_its_owner(pages: Pages) -> None:
    """And the owner to the claim."""
    user = get_user_model()._default_manager.get(username="admin")
    key = f"USER#{user.pk}", "#METADATA"
    claims = [claim for relation, claim in related(item_of(pages, *key)) if relation == "claim"]
    assert claims
    for claim in claims:
        assert related(item_of(pages, *claim)) == [("owner", key)]


@pytest.fixture
def chat(table: Table) -> Any:
    """Create a user, a server that counts its memberships, a membership with the user's name, and a profile."""
    user = ChatUser.objects.create(user_id="u", username="Ann")
    server = ChatServer.objects.create(server_id="s", name="S")
    ChatProfile.objects.create(user=user, kind="k")
    return ChatMembership.objects.create(server=server, user=user)


def partitions(shown: Any) -> list[tuple[str, str, str | None, str]]:
    """The partitions that an item's page leads to."""
    return [(place.relation, place.label, place.index, place.partition) for _, place, _, _ in shown.context["places"]]


MEMBERSHIP = "SERVER#s", "USER#u"
USER, SERVER = ("USER#u", "#METADATA#CHAT"), ("SERVER#s", "#METADATA")


def test_a_copy_leads_to_its_source_and_what_is_counted_to_its_counter(pages: Pages, chat: Any) -> None:
    """The links appear next to the links of references, without a read."""
    asked = urlencode({"pk": MEMBERSHIP[0], "sk": MEMBERSHIP[1]})
    shown = pages.get(f"dynamodb/item/?{asked}", sends=["GetItem"])
    links = [(link.relation, link.label, link.key) for _, link, _ in shown.context["links"]]
    assert links[2:] == [("source", "username", USER), ("counter", "member_count", SERVER)]
    assert "Copied from username : USER#u" in text_of(shown)
    assert "Counted by member_count : SERVER#s" in text_of(shown)


def test_what_is_in_the_trash_is_counted_by_nobody(pages: Pages, chat: Any) -> None:
    """Its copy follows on."""
    chat.delete()
    assert [relation for relation, _ in related(item_of(pages, *MEMBERSHIP))] == ["reference", "reference", "source"]


def test_a_source_leads_to_the_partitions_that_have_its_copies(pages: Pages, chat: Any) -> None:
    """Each model with copies has a link to the table or an index, and its holders are there."""
    shown = item_of(pages, *USER)
    assert partitions(shown) == [
        ("copies", "username", "gs1", "MEMBERSHIPS#u"),
        ("copies", "username, mood", None, "PROFILES#u"),
        ("copies", "username", "gs1", "INVITATIONS#u"),
    ]
    _, _, _, address = shown.context["places"][0]
    assert [row.item.item_type for row in pages.client.get(address).context["rows"]] == ["ChatMembership"]


def test_a_counter_leads_to_the_partitions_of_what_it_counts(pages: Pages, chat: Any) -> None:
    """Each relation has one for its children."""
    assert partitions(item_of(pages, *SERVER)) == [
        ("counted", "member_count", None, "SERVER#s"),
        ("counted", "channel_count", "gs1", "CHANNELS#s"),
    ]


def test_copies_and_counters_lead_to_no_model_that_the_user_may_not_view(staff: Any, chat: Any) -> None:
    """In either direction."""
    pages = staff(TABLE, "catalog.view_chatmembership", "catalog.view_chatuser")
    assert [relation for relation, _ in related(item_of(pages, *MEMBERSHIP))] == ["reference", "source"]
    assert partitions(item_of(pages, *USER)) == [("copies", "username", "gs1", "MEMBERSHIPS#u")]


def test_a_partition_of_many_items_comes_page_by_page(pages: Pages, acme: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each one Query; the last has no next."""
    monkeypatch.setattr(table_reads, "PAGE", 2)
    first = page_of(pages, pk="COMPANY#acme")
    second = pages.get(f"dynamodb/table/{first.context['next_url']}", sends=["Query"])
    keys = [row.item.key[1] for shown in (first, second) for row in shown.context["rows"]]
    assert keys == ["#METADATA", "PEOPLE#anna", "PEOPLE#bert"]
    assert not second.context["next_url"]


def test_a_search_of_partition_keys_reads_no_more_than_its_budget(
    pages: Pages, acme: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next page continues the search."""
    monkeypatch.setattr(table_reads, "BUDGET", 2)
    monkeypatch.setattr(table_reads, "_STEP", 1)
    shown = pages.get("dynamodb/table/?begins=COMPANY", sends=["Scan", "Scan"])
    assert shown.context["page"].read == 2
    found = [row.item.key for row in shown.context["rows"]]
    while shown.context["next_url"]:
        shown = pages.get(f"dynamodb/table/{shown.context['next_url']}")
        found += [row.item.key for row in shown.context["rows"]]
    assert sorted(found) == [("COMPANY#acme", sk) for sk in ("#METADATA", "PEOPLE#anna", "PEOPLE#bert")]


# hidden contents


def everything(pages: Pages) -> str:
    """Return the search of all items, with the page of each."""
    shown = page_of(pages, begins="")
    texts = []
    for prefix in ("USER", "SESSION", "UNIQUE", "CACHE", "COMPANY"):
        shown = page_of(pages, begins=prefix)
        texts.append(shown.content.decode())
        texts += [pages.client.get(row.url).content.decode() for row in shown.context["rows"] if row.url]
    return "".join(texts)


@override_settings(CACHES={"default": {"BACKEND": "dynamo_single.cache.DynamoCache", "OPTIONS": {"NAME": "own"}}})
def test_secrets_are_in_no_page(pages: Pages) -> None:
    """Passwords, session keys and data, cached values and their keys, wherever they stand."""
    user = get_user_model()._default_manager.get(username="admin")
    caches["default"].set("of-somebody", "cached-text")
    caches["default"].set("number", 987654)
    session_key = str(pages.client.session.session_key)
    shown = everything(pages)
    assert "SESSIONHASH#" in shown
    assert "CACHE#" in shown
    for secret in (user.password, session_key, key_hash(session_key), "of-somebody", "cached-text", "987654"):
        assert secret not in shown


def test_the_address_of_a_secret_key_leads_nowhere(pages: Pages) -> None:
    """Even for who knows the key of a session."""
    key = str(pages.client.session.session_key)
    assert item_of(pages, f"SESSIONHASH#{key_hash(key)}", "#METADATA").status_code == 404
    as_former(key)
    assert item_of(pages, f"SESSION#{key}", "#METADATA").status_code == 404


@pytest.mark.parametrize("asked", ["pk", "begins"])
@pytest.mark.parametrize("key", ["SESSION#a", "SESSIONHASH#a", "CACHE#own#a", "UNIQUE#Nobody#token#a"])
def test_nobody_finds_a_secret_by_asking_for_its_beginning(pages: Pages, asked: str, key: str) -> None:
    """A comparison would reveal the secret letter by letter, so no request is sent."""
    assert pages.get(f"dynamodb/table/?{urlencode({asked: key})}", sends=[]).status_code == 400


@pytest.mark.parametrize("prefix", ["SESSION", "SESSION#", "CACHE#", "CACHE#own#", "UNIQUE#User#username#a", "USER#a"])
def test_what_stands_in_front_of_a_secret_may_be_asked_for(pages: Pages, prefix: str) -> None:
    """The prefix reveals only the type of items."""
    assert page_of(pages, begins=prefix).status_code == 200


def test_items_of_hidden_models_are_left_out(staff: Any, acme: Any) -> None:
    """In a partition that several models share."""
    pages = staff(TABLE, "directory.view_company")
    shown = page_of(pages, pk="COMPANY#acme")
    assert [row.item.item_type for row in shown.context["rows"]] == ["Company"]
    assert "Anna" not in text_of(shown)


@pytest.mark.parametrize("asked", ["pk", "begins"])
def test_nobody_finds_out_what_there_is_of_models_that_they_may_not_view(staff: Any, acme: Any, asked: str) -> None:
    """Their partition looks missing, whatever the read cost."""
    pages = staff(TABLE)
    shown, other = (text_of(page_of(pages, **{asked: key})) for key in ("COMPANY#acme", "COMPANY#none"))
    assert re.sub(r"[0-9.]+ ms", "", shown) == re.sub(r"[0-9.]+ ms", "", other)


def test_an_item_leads_to_nothing_of_models_that_the_user_may_not_view(staff: Any, acme: Any) -> None:
    """A key may contain all information."""
    pages = staff(TABLE, "directory.view_person")
    assert related(item_of(pages, "COMPANY#acme", "PEOPLE#anna")) == []


def test_the_item_of_a_model_that_the_user_may_not_view_is_not_found(staff: Any, acme: Any) -> None:
    """The response is the same as for a missing item."""
    pages = staff(TABLE, "directory.view_company")
    assert item_of(pages, "COMPANY#acme", "PEOPLE#anna").status_code == 404
    assert item_of(pages, "COMPANY#acme", "PEOPLE#nobody").status_code == 404


def test_claims_are_shown_with_the_permission_of_their_model(staff: Any) -> None:
    """A claim has the value in its key."""
    pages = staff(TABLE)
    shown = page_of(pages, begins="UNIQUE")
    assert shown.context["rows"] == []
    assert "staff@example.com" not in text_of(shown)


def test_an_item_of_an_unknown_type_is_shown_without_its_secrets(pages: Pages, table: Table) -> None:
    """By the names of its attributes, at any depth."""
    item = {
        "pk": {"S": "OTHER#1"},
        "sk": {"S": "#"},
        "itemType": {"S": "Other"},
        "kept": {"B": b"\x00\x01"},
        "apiKey": {"S": "concealed-1"},
        "inside": {"L": [{"M": {"password": {"S": "concealed-2"}, "seen": {"S": "shown"}}}]},
    }
    table.send(Request("PutItem", {"Item": item}))
    text = item_of(pages, "OTHER#1", "#").content.decode()
    assert "concealed" not in text
    assert "shown" in text
    assert "AAE=" in text


@pytest.mark.parametrize(
    "permissions", [(), ("directory.view_company", "directory.view_person")], ids=["none", "other"]
)
@pytest.mark.parametrize("path", ["dynamodb/table/", "dynamodb/item/?pk=a&sk=b"])
def test_the_pages_have_a_permission_of_their_own(staff: Any, path: str, permissions: tuple[str, ...]) -> None:
    """Without it, the response has status 403, and the index has no link."""
    pages = staff(*permissions)
    assert pages.get(path).status_code == 403
    assert b"dynamodb/" not in pages.get("").content


def test_the_index_leads_to_the_table(staff: Any) -> None:
    """Users with the permission see the link."""
    assert b"/admin/dynamodb/table/" in staff(TABLE).get("").content


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("index=gs9&pk=a", 400),
        ("alias=other", 400),
        ("pk=a&after=made-up", 400),
        (f"pk={'x' * 2049}", 400),
        (f"begins={'x' * 2049}", 400),
        ("pk=%ED%A0%80&begins=", 200),
        ("pk=%00", 200),
    ],
)
def test_what_no_page_of_ours_asks_is_refused(pages: Pages, query: str, status: int) -> None:
    """400, or nothing found; never an error of the server."""
    assert pages.get(f"dynamodb/table/?{query}").status_code == status
    assert pages.get(f"dynamodb/item/?{query}").status_code == 400


def test_a_place_in_one_list_is_none_in_another(pages: Pages, acme: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The position would continue in another partition."""
    monkeypatch.setattr(table_reads, "PAGE", 1)
    after = page_of(pages, pk="COMPANY#acme").context["page"].after
    assert page_of(pages, pk="COMPANY#other", after=after).status_code == 400


def test_the_pages_have_ids_on_the_index_that_are_of_no_language(pages: Pages) -> None:
    """An id with a space in it would be two."""
    found = re.findall(r'id="(dynamodb-[^"]*)"', pages.get("").content.decode())
    names = ("health", "jobs", "log", "patterns", "pictures", "table")
    assert sorted({*found}) == [f"dynamodb-{name}" for name in names]
