"""A model that PynamoDB also saves: each program notices the other's writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError
from pynamodb.attributes import NumberAttribute, UnicodeAttribute, VersionAttribute
from pynamodb.exceptions import DeleteError, PutError
from pynamodb.models import Model as PynamoDBModel

from dynamo_single import models
from dynamo_single.exceptions import AlreadyExists, StaleObject
from dynamo_single.orm.rollout import knowledge
from dynamo_single.table import Request, Table
from dynamo_single.table.flow import run
from tests.contract.adoption.conftest import ADOPTED, adopted_table, raw
from tests.histories.app import History, history
from tests.unit.declaring import declare, forgotten


@pytest.fixture
def adopted(table: Table) -> Iterator[Table]:
    """The adopted table, whose key has two parts."""
    from dynamo_single.testing import setup_table

    with adopted_table() as alias, forgotten():
        yield setup_table(alias)


@pytest.fixture
def ours(adopted: Table) -> Any:
    """The model of this app."""
    return declare(
        "Thread",
        ("THREAD#{name}", "#THREAD"),
        options={"table": ADOPTED, "shared": True},
        name=models.UnicodeAttribute(),
        views=models.IntegerAttribute(null=True),
        version=models.VersionAttribute(),
    )


@pytest.fixture
def theirs(adopted: Table) -> Any:
    """The class of the other program, which uses PynamoDB's own connection."""

    class Thread(PynamoDBModel):
        class Meta:
            table_name = adopted.name
            region = adopted.settings.region
            host = adopted.settings.endpoint_url
            aws_access_key_id = "fake"
            aws_secret_access_key = "fake"

        pk = UnicodeAttribute(hash_key=True)
        sk = UnicodeAttribute(range_key=True)
        item_type = UnicodeAttribute(attr_name="itemType", default="Thread")
        name = UnicodeAttribute()
        views = NumberAttribute(null=True)
        version = VersionAttribute()

    return Thread


def key(name: str) -> tuple[str, str]:
    """The key of a thread."""
    return f"THREAD#{name}", "#THREAD"


def by_key(table: Table) -> dict[str, Any]:
    """The stored items by their partition key."""
    return {item["pk"]["S"]: item for item in raw(table)}


def test_each_program_reads_the_others_version(ours: Any, theirs: Any) -> None:
    theirs(*key("a"), name="a").save()
    thread = ours.objects.get(name="a")
    thread.views = 1
    thread.save()

    found = theirs.get(*key("a"))
    found.views = 2
    found.save()

    thread = ours.objects.get(name="a")
    assert (thread.views, thread.version, found.version) == (2, 3, 3)


def test_our_outdated_save_is_refused(ours: Any, theirs: Any) -> None:
    thread = ours.objects.create(name="a")
    theirs.get(*key("a")).save()
    thread.views = 1

    with pytest.raises(StaleObject):
        thread.save()


def test_their_outdated_save_is_refused(ours: Any, theirs: Any) -> None:
    ours.objects.create(name="a")
    found = theirs.get(*key("a"))
    thread = ours.objects.get(name="a")
    thread.views = 1
    thread.save()

    with pytest.raises(PutError, match="ConditionalCheckFailed"):
        found.save()


def test_our_outdated_deletion_is_refused(ours: Any, theirs: Any) -> None:
    thread = ours.objects.create(name="a")
    theirs.get(*key("a")).save()

    with pytest.raises(StaleObject):
        thread.delete()


def test_their_outdated_deletion_is_refused(ours: Any, theirs: Any) -> None:
    ours.objects.create(name="a")
    found = theirs.get(*key("a"))
    ours.objects.filter(pk="a").update(views=1)

    with pytest.raises(DeleteError, match="ConditionalCheckFailed"):
        found.delete()


def test_our_save_keeps_attributes_of_others(ours: Any, adopted: Table) -> None:
    thread = ours.objects.create(name="a")
    update = {
        "Key": {"pk": {"S": key("a")[0]}, "sk": {"S": key("a")[1]}},
        "UpdateExpression": "SET theirs = :v",
        "ExpressionAttributeValues": {":v": {"S": "kept"}},
    }
    adopted.send(Request("UpdateItem", update))
    thread.views = 1
    thread.save()

    assert raw(adopted)[0]["theirs"] == {"S": "kept"}


def test_their_save_removes_attributes_of_ours(ours: Any, theirs: Any, adopted: Table) -> None:
    """The reason for the check of ``Meta.shared``."""
    declare(
        "Wider",
        ("THREAD#{name}", "#THREAD"),
        options={"table": ADOPTED, "item_type": "Wider"},
        name=models.UnicodeAttribute(),
        more=models.UnicodeAttribute(),
    ).objects.create(name="a", more="lost")
    theirs.get(*key("a")).save()

    assert "more" not in raw(adopted)[0]


# moving


def test_other_program_reads_moved_object(ours: Any, theirs: Any) -> None:
    thread = ours.objects.create(name="a", views=3)

    thread.move(name="b")

    found = theirs.get(*key("b"))
    assert (found.name, found.views, found.version) == ("b", 3, thread.version)


def test_move_of_an_outdated_object_is_refused(ours: Any, theirs: Any, adopted: Table) -> None:
    thread = ours.objects.create(name="a")
    theirs.get(*key("a")).save()
    before = raw(adopted)

    with pytest.raises(StaleObject):
        thread.move(name="b")

    assert raw(adopted) == before


def test_their_outdated_save_after_a_move_is_refused(ours: Any, theirs: Any, adopted: Table) -> None:
    """Without the version, PynamoDB would store the old item again next to the moved one."""
    thread = ours.objects.create(name="a")
    found = theirs.get(*key("a"))
    thread.move(name="b")
    moved = raw(adopted)

    with pytest.raises(PutError, match="ConditionalCheckFailed"):
        found.save()

    assert raw(adopted) == moved


def test_move_does_not_replace_an_object_of_others(ours: Any, theirs: Any, adopted: Table) -> None:
    theirs(*key("b"), name="b", views=9).save()
    thread = ours.objects.create(name="a")
    before = by_key(adopted)

    with pytest.raises(AlreadyExists):
        thread.move(name="b")

    assert by_key(adopted) == before


# migrations


@pytest.fixture
def app(tmp_path: Path) -> Iterator[History]:
    with history(tmp_path) as found:
        yield found


def shop(app: History, *, shared: bool = True, **attributes: Any) -> Any:
    """Declare a shop whose items another program saves too."""
    return app.model(options={"table": ADOPTED, "shared": shared}, **attributes)


def test_migrate_refuses_to_change_shared_items(app: History, adopted: Table) -> None:
    Shop = shop(app, name=models.UnicodeAttribute())
    app.make()
    app.migrate()
    Shop.objects.create(shop_id="s1", name="n1")
    app.start()
    before = raw(adopted), run(knowledge.state_of(adopted)).revision
    by_name = models.IndexKey("gs1", "SHOPNAME#{name}", "{shop_id}")
    shop(app, name=models.UnicodeAttribute(), keys={"by_name": by_name})
    app.make()

    with pytest.raises(CommandError, match=r"has Meta\.shared.*Nothing was written\."):
        app.migrate()

    assert (raw(adopted), run(knowledge.state_of(adopted)).revision) == before


def test_migrate_follows_once_the_model_is_not_shared(app: History, adopted: Table) -> None:
    Shop = shop(app, name=models.UnicodeAttribute())
    app.make()
    app.migrate()
    Shop.objects.create(shop_id="s1", name="n1")
    by_name = models.IndexKey("gs1", "SHOPNAME#{name}", "{shop_id}")
    shop(app, name=models.UnicodeAttribute(), keys={"by_name": by_name})
    app.make()
    with pytest.raises(CommandError):
        app.migrate()
    Shop = shop(app, shared=False, name=models.UnicodeAttribute(), keys={"by_name": by_name})

    app.migrate()

    assert [each.shop_id for each in Shop.objects.filter(name="n1")] == ["s1"]


def test_migrate_declares_an_optional_attribute(app: History, adopted: Table) -> None:
    shop(app, name=models.UnicodeAttribute())
    app.make()
    app.migrate()
    Shop = shop(app, name=models.UnicodeAttribute(), views=models.IntegerAttribute(null=True))
    app.make()

    app.migrate()

    assert Shop.objects.create(shop_id="s1", name="n1", views=3).views == 3
