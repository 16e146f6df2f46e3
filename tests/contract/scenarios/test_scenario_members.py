"""S5, many to many with different weights on its sides, as declared: the scenario's items, and its requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dynamo_single import models
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests
from tests.contract.tables import assert_consistent, everything
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.usefixtures("table")


@pytest.fixture(scope="module")
def declared() -> Iterator[Any]:
    """The models as the scenario's user writes them."""
    with forgotten():
        user = declare(
            "Inhabitant",
            ("USER#{user_id}", "#METADATA"),
            user_id=models.IdAttribute(),
            username=models.UnicodeAttribute(),
        )
        server = declare(
            "Habitat",
            ("SERVER#{server_id}", "#METADATA"),
            server_id=models.IdAttribute(),
            name=models.UnicodeAttribute(),
            users=models.ManyToMany("catalog.Inhabitant", through="catalog.Stay", related_name="servers"),
        )
        member = declare(
            "Stay",
            ("SERVER#{server_id}", "USER#{user_id}"),
            {"by_user": models.IndexKey("gs1", "USER#{user_id}", "SERVER#{server_id}")},
            server=models.ReferenceAttribute(server, on_delete=models.CASCADE),
            user=models.ReferenceAttribute(user, on_delete=models.CASCADE, related_name="memberships"),
            username=models.CopiedAttribute("user", "username"),
            role=models.UnicodeAttribute(default="Member"),
        )
        yield user, server, member


@pytest.fixture
def chat(declared: Any, table: Table) -> Any:
    """John, who is on Gaming."""
    user, server, member = declared
    john = user.objects.create(user_id="1", username="John")
    gaming = server.objects.create(server_id="1", name="Gaming")
    gaming.users.add(john)
    return john, gaming, member


def own(table: Table) -> dict[tuple[str, str], dict[str, str]]:
    """Return every item without the app's own attributes: type, references, and index keys."""
    hidden = {"pk", "sk", "itemType", "gs1pk", "gs1sk", "user_id", "server_id"}
    return {
        key: {name: value["S"] for name, value in item.items() if name not in hidden}
        for key, item in everything(table).items()
    }


def test_the_items_equal_the_scenarios_table(chat: Any, table: Table) -> None:
    assert own(table) == {
        ("USER#1", "#METADATA"): {"username": "John"},
        ("SERVER#1", "#METADATA"): {"name": "Gaming"},
        ("SERVER#1", "USER#1"): {"role": "Member", "username": "John"},
    }


def test_members_with_names_are_one_query_and_servers_with_names_a_query_and_a_batch(chat: Any) -> None:
    john, gaming, member = chat
    type(gaming).objects.create(server_id="2", name="Chess").users.add(john)
    with assert_requests(["Query"]):
        assert [each.username for each in member.objects.filter(server=gaming)] == ["John"]
    with assert_requests(["Query", "BatchGetItem"]):
        assert [server.name for server in john.servers.all()] == ["Gaming", "Chess"]


def test_joining_leaving_and_asking_whether_are_a_few_requests(chat: Any) -> None:
    _, gaming, member = chat
    ann = type(chat[0]).objects.create(user_id="2", username="Ann")
    with assert_requests(["GetItem", "TransactWriteItems"]):
        gaming.users.add(ann, through_defaults={"role": "Admin"})
    with assert_requests(["GetItem"]):
        assert member.objects.get(server=gaming, user=ann).role == "Admin"
    with assert_requests(["GetItem", "DeleteItem"]):
        gaming.users.remove(ann)


def test_renaming_a_user_is_one_transaction_and_renaming_a_server_one_item(chat: Any, table: Table) -> None:
    john, gaming, _ = chat
    john.username = "Jack"
    with assert_requests(["Query", "TransactWriteItems", "Query"]):
        john.save()
    gaming.name = "Games"
    with assert_requests(["UpdateItem"]):
        gaming.save()
    assert own(table)["SERVER#1", "USER#1"] == {"role": "Member", "username": "Jack"}
    assert_consistent()


@pytest.mark.parametrize(("side", "left"), [(0, ("SERVER#1", "#METADATA")), (1, ("USER#1", "#METADATA"))])
def test_deleting_either_side_takes_the_memberships_along(
    chat: Any, table: Table, side: int, left: tuple[str, str]
) -> None:
    with assert_requests(["Query", "TransactWriteItems", "Query"]):
        chat[side].delete()
    assert own(table).keys() == {left}
