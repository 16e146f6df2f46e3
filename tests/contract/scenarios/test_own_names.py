"""The scenarios with their original names: items without a type, and keys as in the pattern.

Whole items are compared, so the table contains only the pattern's attributes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import F, Q

from dynamo_single import models
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests
from tests.contract.adoption.foreign import ALIAS, Foreign, foreign_table, stored
from tests.unit.declaring import declare, forgotten

TEXT, KEY = models.UnicodeAttribute, models.IndexKey
UNTYPED = {"TYPE_ATTRIBUTE": None, "RAW_KEYS": True}


def in_order(*items: Any) -> list[Any]:
    """Items in the order of ``Foreign.items()``."""
    return sorted(items, key=lambda item: json.dumps(item, sort_keys=True, default=repr))


def model(label: str, key: tuple[str, str], keys: dict[str, Any] | None = None, **attributes: Any) -> Any:
    return declare(label, key, keys, options={"table": ALIAS}, **attributes)


# Records: an identifier, a map, times, an author and a trash, in a table whose key is ``id``.

RECORD = stored(id="product-1", createdAt=1763800000000, updatedAt=1763800000000, createdBy="user-1") | {
    "data": {"M": {"title": {"S": "T"}, "price": {"N": "456.67"}, "discount": {"N": "3.5"}}}
}


@pytest.fixture
def products(engine: Table) -> Iterator[tuple[Any, Foreign]]:
    with foreign_table(KEY="id", TYPE_ATTRIBUTE=None) as table, forgotten():
        meta = type("Meta", (), {"app_label": "catalog", "id_prefix": "product", "table": ALIAS})
        namespace = {
            "__module__": __name__,
            "__qualname__": "Goods",
            "Meta": meta,
            "created_by": TEXT(null=True, attr_name="createdBy"),
        }
        yield type(models.Record)("Goods", (models.Record,), namespace), table


def test_a_record_without_a_type_is_read_at_once(products: tuple[Any, Foreign]) -> None:
    goods, table = products
    table.put(RECORD)
    with assert_requests(["GetItem"]):
        found = goods.objects.get(pk="product-1")
    assert (found.data["price"], found.created_by) == (Decimal("456.67"), "user-1")
    with assert_requests(0):
        found.save()
    assert table.items() == [RECORD]


def test_a_nested_value_is_updated_in_place(products: tuple[Any, Foreign]) -> None:
    goods, table = products
    table.put(RECORD)
    mine = goods.objects.filter(pk="product-1", created_by="user-1")
    with assert_requests(["UpdateItem"]):
        assert mine.update(data__price=Decimal("1.10")) == 1
    assert goods.objects.filter(pk="product-1", created_by="user-2").update(data__price=0) == 0
    (item,) = table.items()
    assert item["data"]["M"] == {**RECORD["data"]["M"], "price": {"N": "1.1"}}
    assert item.keys() == RECORD.keys()
    assert item["updatedAt"] != RECORD["updatedAt"]


def test_a_record_that_another_program_deleted_is_in_the_trash(products: tuple[Any, Foreign]) -> None:
    goods, table = products
    table.put({**RECORD, "deletedAt": {"N": "1763800000001"}}, {**RECORD, "id": {"S": "product-2"}})
    assert not goods.objects.filter(pk="product-1").exists()
    assert [each.pk for each in goods.objects.allow_scan()] == ["product-2"]
    assert goods.all_objects.get(pk="product-1").deleted_at is not None


def test_a_new_record_has_only_the_patterns_attributes(products: tuple[Any, Foreign]) -> None:
    goods, table = products
    made = goods.objects.create(data={"title": "T"}, created_by="user-1")
    (item,) = table.items()
    assert item.keys() == {"id", "data", "createdAt", "updatedAt", "createdBy"}
    assert item["id"] == {"S": made.pk}
    assert made.pk.startswith("product-")


# The field pattern: ``id`` and ``field``, an index on the field.

COMPANIES = [
    stored(id="id1", field="root_id1", name="name1", stock="stock1"),
    stored(id="id1", field="people_pid1", pid="pid1", name="pid1's"),
    stored(id="id1", field="people_pid2", pid="pid2", name="pid2's"),
    stored(id="id1", field="office_off1", oid="off1"),
    stored(id="id2", field="root_id2", name="name2", stock="stock2"),
    stored(id="id2", field="people_pid3", pid="pid3", name="pid3's"),
    stored(id="id2", field="office_off3", oid="off3"),
]


@pytest.fixture
def companies(engine: Table) -> Iterator[tuple[Any, Any, Foreign]]:
    index = {"name": "field-index", "partition": "field", "sort": "id"}
    shape = {"PARTITION_KEY": "id", "SORT_KEY": "field", "INDEXES": {"by_field": index}}
    with foreign_table(**UNTYPED, **shape) as table, forgotten():
        company = model("Company", ("{company_id}", "root_{company_id}"), company_id=TEXT(attr_name="id"),
                        name=TEXT(), stock=TEXT())  # fmt: skip
        person = model(
            "Person",
            ("{company_id}", "people_{pid}"),
            {"one": KEY("by_field", "people_{pid}", "{company_id}")},
            company_id=TEXT(attr_name="id"),
            pid=TEXT(),
            name=TEXT(),
        )
        office = model("Office", ("{company_id}", "office_{oid}"), company_id=TEXT(attr_name="id"), oid=TEXT())
        for number, people, offices in (("1", ("pid1", "pid2"), ("off1",)), ("2", ("pid3",), ("off3",))):
            company.objects.create(company_id=f"id{number}", name=f"name{number}", stock=f"stock{number}")
            for each in people:
                person.objects.create(company_id=f"id{number}", pid=each, name=f"{each}'s")
            for each in offices:
                office.objects.create(company_id=f"id{number}", oid=each)
        yield company, person, table


def test_the_field_pattern_is_stored_item_for_item(companies: tuple[Any, Any, Foreign]) -> None:
    _, _, table = companies
    assert table.items() == in_order(*COMPANIES)


def test_a_nested_entity_is_found_by_its_own_id(companies: tuple[Any, Any, Foreign]) -> None:
    company, person, _ = companies
    with assert_requests(["Query"]):
        found = person.objects.get(pid="pid3")
    with assert_requests(["GetItem"]):
        assert company.objects.get(company_id=found.company_id).name == "name2"
    with assert_requests(["Query"]):
        assert [each.pid for each in person.objects.filter(company_id="id1")] == ["pid1", "pid2"]


def test_one_field_is_one_items_update(companies: tuple[Any, Any, Foreign]) -> None:
    _, person, table = companies
    with assert_requests(["UpdateItem"]):
        person.objects.filter(company_id="id1", pid="pid1").update(name="other")
    assert table.get(id="id1", field="people_pid1") == {**COMPANIES[1], "name": {"S": "other"}}
    assert table.get(id="id1", field="root_id1") == COMPANIES[0]


# A user service: ``hashKey`` and ``rangeKey``; attributes are the keys of its indexes.

CREATED = datetime.fromtimestamp(1726824079, UTC)
USER = stored(hashKey="user", rangeKey="userId#wf5yU_5f63gqauSOLpP5O", userId="wf5yU_5f63gqauSOLpP5O")
USER |= stored(beneficiaryId="b1", created=1726824079, updated=1726824079, firstName="Inés", firstNameCanonical="ines")
USER |= stored(lastName="Gómez-Juárez-Álvarez", lastNameCanonical="gomezjuarezalvarez")
EMAIL = stored(hashKey="email", rangeKey="email#me@example.org", email="me@example.org", created=1726824178)
EMAIL |= stored(userId="wf5yU_5f63gqauSOLpP5O")


@pytest.fixture
def service(engine: Table) -> Iterator[tuple[Any, Any, Foreign]]:
    local = {"partition": "hashKey", "local": True}
    indexes = {
        "created": {**local, "name": "by-created", "sort": "created:N"},
        "last_name": {**local, "name": "by-last-name", "sort": "lastNameCanonical"},
        "beneficiary": {"name": "by-beneficiary", "partition": "beneficiaryId", "sort": "created:N"},
    }
    with foreign_table(**UNTYPED, PARTITION_KEY="hashKey", SORT_KEY="rangeKey", INDEXES=indexes) as table, forgotten():
        seconds = models.TimestampAttribute
        user = model(
            "User",
            ("user", "userId#{user_id}"),
            {
                "by_created": KEY("created", "user", "{created}"),
                "by_last_name": KEY("last_name", "user", "{last_name_canonical}"),
                "by_beneficiary": KEY("beneficiary", "{beneficiary_id}", "{created}"),
            },
            user_id=TEXT(attr_name="userId"),
            beneficiary_id=TEXT(attr_name="beneficiaryId"),
            created=seconds(stored_as="seconds"),
            updated=seconds(stored_as="seconds"),
            first_name=TEXT(attr_name="firstName"),
            first_name_canonical=canonical("first_name", "firstNameCanonical"),
            last_name=TEXT(attr_name="lastName"),
            last_name_canonical=canonical("last_name", "lastNameCanonical"),
            phone=TEXT(null=True),
        )
        email = model(
            "Email", ("email", "email#{email}"), email=TEXT(), user_id=TEXT(attr_name="userId"),
            created=seconds(stored_as="seconds"),
        )  # fmt: skip
        given = {"first_name": "Inés", "last_name": "Gómez-Juárez-Álvarez", "created": CREATED, "updated": CREATED}
        user.objects.create(user_id="wf5yU_5f63gqauSOLpP5O", beneficiary_id="b1", **given)
        email.objects.create(
            email="me@example.org", user_id="wf5yU_5f63gqauSOLpP5O", created=CREATED + timedelta(seconds=99)
        )
        yield user, email, table


def canonical(source: str, stored_name: str) -> Any:
    return models.CanonicalAttribute(source=source, fold="letters", attr_name=stored_name)


def test_the_service_is_stored_item_for_item(service: tuple[Any, Any, Foreign]) -> None:
    _, _, table = service
    assert table.items() == in_order(USER, EMAIL)


def test_each_question_of_the_service_is_one_request(service: tuple[Any, Any, Foreign]) -> None:
    user, email, _ = service
    with assert_requests(["GetItem"]):
        assert user.objects.get(user_id="wf5yU_5f63gqauSOLpP5O").created == CREATED
    with assert_requests(["GetItem"]):
        assert email.objects.get(email="me@example.org").user_id == "wf5yU_5f63gqauSOLpP5O"
    for question in (
        Q(created__gte=CREATED - timedelta(days=1)),
        Q(beneficiary_id="b1"),
        Q(last_name__iexact="GOMEZ JUAREZ ALVAREZ"),
    ):
        with assert_requests(["Query"]):
            assert [each.first_name for each in user.objects.filter(question)] == ["Inés"]


# Logins, and users of servers with their messages: ``pk`` and ``sk``, one index, no type.


@pytest.fixture
def single(engine: Table) -> Iterator[Foreign]:
    with foreign_table(**UNTYPED, INDEXES=["gs1"]) as table, forgotten():
        yield table


def test_logins_are_stored_item_for_item(single: Foreign) -> None:
    user = model(
        "User", ("USER#{user_id}", "#METADATA"), user_id=TEXT(attr_name="userId"), email=TEXT(), username=TEXT()
    )
    by = {"by_login": KEY("gs1", "EMAIL#{email}", "USER#{user_id}")}
    named = {"by_login": KEY("gs1", "USERNAME#{username}", "USER#{user_id}")}
    own = {"user_id": TEXT(attr_name="userId")}
    mail = model(
        "EmailLogin", ("USER#{user_id}", "EMAIL#{email}"), by, **own, email=TEXT(), password=TEXT(),
        confirmed=models.BooleanAttribute(),
    )  # fmt: skip
    own = {"user_id": TEXT(attr_name="userId")}
    name = model("NameLogin", ("USER#{user_id}", "USERNAME#{username}"), named, **own, username=TEXT(), password=TEXT())
    address = "user1@example.com"
    user.objects.create(user_id="1", email=address, username="Mike")
    mail.objects.create(user_id="1", email=address, password="hash-1", confirmed=True)
    name.objects.create(user_id="1", username="Mike", password="hash-2")
    assert single.items() == in_order(
        stored(pk="USER#1", sk="#METADATA", userId="1", email=address, username="Mike"),
        stored(pk="USER#1", sk=f"EMAIL#{address}", userId="1", email=address, password="hash-1")
        | {"confirmed": {"BOOL": True}, **stored(gs1pk=f"EMAIL#{address}", gs1sk="USER#1")},
        stored(pk="USER#1", sk="USERNAME#Mike", userId="1", username="Mike", password="hash-2")
        | stored(gs1pk="USERNAME#Mike", gs1sk="USER#1"),
    )
    with assert_requests(["Query"]):
        assert mail.objects.get(email=address).user_id == "1"
    with assert_requests(["Query"]):
        assert name.objects.get(username="Mike").password == "hash-2"


def test_members_are_stored_item_for_item(single: Foreign) -> None:
    user = model("User", ("USER#{user_id}", "#METADATA"), user_id=TEXT(attr_name="userId"), username=TEXT())
    server = model("Server", ("SERVER#{server_id}", "#METADATA"), server_id=TEXT(attr_name="serverId"), name=TEXT())
    member = model(
        "Member",
        ("SERVER#{server_id}", "USER#{user_id}"),
        {"of_user": KEY("gs1", "USER#{user_id}", "SERVER#{server_id}")},
        server=models.ReferenceAttribute(server, on_delete=models.DO_NOTHING, attr_name="serverId"),
        user=models.ReferenceAttribute(user, on_delete=models.DO_NOTHING, attr_name="userId"),
        role=TEXT(default="Member"),
        username=models.CopiedAttribute("user", "username"),
    )
    john, gaming = (
        user.objects.create(user_id="1", username="John"),
        server.objects.create(server_id="1", name="Gaming"),
    )
    with assert_requests(["GetItem", "TransactWriteItems"]):
        member.objects.create(server_id="1", user_id="1")
    assert single.get(pk="SERVER#1", sk="USER#1") == stored(
        pk="SERVER#1", sk="USER#1", serverId="1", userId="1", role="Member", username="John",
        gs1pk="USER#1", gs1sk="SERVER#1",
    )  # fmt: skip
    with assert_requests(["Query"]):
        assert [each.username for each in member.objects.filter(server=gaming)] == ["John"]
    server.objects.create(server_id="2", name="Chess")
    member.objects.create(server_id="2", user_id="1")
    with assert_requests(["Query", "BatchGetItem"]):
        servers = [each.server.name for each in member.objects.filter(user=john).select_related("server")]
    assert servers == ["Gaming", "Chess"]
    john.username = "Johnny"
    john.save()
    assert member.objects.get(server_id="1", user_id="1").username == "Johnny"


def test_messages_are_stored_in_their_order(single: Foreign) -> None:
    message = model(
        "Message",
        ("CHAT#{chat_id}", "MSG#{timestamp}#{msg_id}"),
        chat_id=TEXT(attr_name="chatId"),
        timestamp=models.TimestampAttribute(stored_as="iso"),
        msg_id=TEXT(attr_name="msgId"),
        text=TEXT(),
        likes=models.IntegerAttribute(default=0),
    )
    for number in (2, 1, 3):
        at = CREATED if number < 3 else CREATED + timedelta(milliseconds=1)
        message.objects.create(chat_id="1", timestamp=at, msg_id=f"m{number}", text=str(number))
    with assert_requests(["Query"]):
        assert [each.text for each in message.objects.filter(chat_id="1")] == ["1", "2", "3"]
    time = "2024-09-20T09:21:19.000Z"
    assert single.get(pk="CHAT#1", sk=f"MSG#{time}#m1") == stored(
        pk="CHAT#1", sk=f"MSG#{time}#m1", chatId="1", timestamp=time, msgId="m1", text="1", likes=0
    )
    one = message.objects.filter(chat_id="1", timestamp=CREATED, msg_id="m1")
    with assert_requests(["UpdateItem"]):
        assert one.update(likes=F("likes") + 1) == 1
