"""Items of earlier schema versions: each way to read upgrades them, each way to write stores the present version."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db.models import Count, F, Max, Q, Sum

from dynamo_single import counters, models, transactions
from dynamo_single.checks.migrations import check_versions
from dynamo_single.contrib.doctor import verify
from dynamo_single.exceptions import ConfigurationError, KeyNotFilled, NotSupported, SchemaVersionError, StaleObject
from dynamo_single.table import Request, Table
from dynamo_single.testing import assert_requests
from tests.contract.model.patrons import COUNT, PRIMARY, SPLIT, attributes, patron, put
from tests.contract.tables import everything
from tests.unit.declaring import declare, forgotten, messages


@pytest.fixture
def model(table: Table) -> Iterator[Any]:
    """Patrons, one stored at each version, and one by code that knew no versions."""
    with forgotten():
        found = patron()
        put(table, "a", None)
        for name, version in (("b", 1), ("c", 2), ("d", 3)):
            put(table, name, version)
        yield found


def item(table: Table, patron_id: str) -> dict[str, Any]:
    """A patron's item by the values inside, without what it lies under."""
    found = everything(table)[f"PATRON#{patron_id}", "#METADATA"]
    return {
        name: next(iter(value.values()))
        for name, value in found.items()
        if name not in ("pk", "sk", "itemType", "patron_id") and not name.startswith("gs")
    }


PRESENT = {"first": "Ada", "last": "Byron", "cents": 50, "town": "Bern"}
STORED = {**PRESENT, "cents": "50", "folded": "byron", "schemaVersion": "3"}


def shown(obj: Any) -> dict[str, Any]:
    """What an object holds of a patron."""
    return {name: getattr(obj, name) for name in PRESENT}


READERS: dict[str, Callable[[Any], list[Any]]] = {
    "all": lambda model: list(model.objects.all()),
    "iterator": lambda model: list(model.objects.iterator()),
    "get": lambda model: [model.objects.get(pk=name) for name in "abcd"],
    "in_bulk": lambda model: list(model.objects.in_bulk(["a", "b", "c", "d"]).values()),
    "filter by pk": lambda model: list(model.objects.filter(pk__in=["a", "b", "c", "d"])),
    "only": lambda model: list(model.objects.only("first")),
    "defer": lambda model: list(model.objects.defer("first")),
    "values": lambda model: [model(**row) for row in model.objects.values(*PRESENT)],
    "values_list": lambda model: [
        model(**dict(zip(PRESENT, row, strict=True))) for row in model.objects.values_list(*PRESENT)
    ],
    "asynchronous": lambda model: async_to_sync(_listed)(model),
    "a page": lambda model: list(model.objects.page(10)),
    "PynamoDB": lambda model: [model.get(f"PATRON#{name}", "#METADATA") for name in "abcd"],
    "in memory": lambda model: list(model.objects.order_by("stars").allow_in_memory(limit=10)),
    "refreshed": lambda model: [_refreshed(each) for each in model.objects.all()],
}


async def _listed(model: Any) -> list[Any]:
    return [each async for each in model.objects.all()]


def _refreshed(obj: Any) -> Any:
    obj.refresh_from_db()
    return obj


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_whatever_reads_upgrades(model: Any, read: Callable[[Any], list[Any]]) -> None:
    """Objects and rows of items of each version are as the present declaration has them."""
    assert [shown(each) for each in read(model)] == [PRESENT] * 4


def test_reading_writes_nothing(model: Any, table: Table) -> None:
    """Items stay as they were written until somebody saves them."""
    before = everything(table)
    assert len(list(model.objects.all())) == 4
    assert everything(table) == before


@pytest.mark.parametrize("patron_id", "abcd")
def test_a_save_stores_the_present_version(model: Any, table: Table, patron_id: str) -> None:
    """With what an upgrade changed, and without what it removed."""
    obj = model.objects.get(pk=patron_id)
    obj.town = "Chur"
    obj.save()
    found = item(table, patron_id)
    assert {**STORED, "town": "Chur"}.items() <= found.items()
    assert not {"name", "price"} & found.keys()
    assert everything(table)[f"PATRON#{patron_id}", "#METADATA"]["gs2sk"] == {"S": f"Byron#{patron_id}"}


def _update(model: Any) -> None:
    assert model.objects.filter(pk="a").update(town="Chur") == 1


def _bulk_update(model: Any) -> None:
    obj = model.objects.get(pk="a")
    obj.town = "Chur"
    assert model.objects.bulk_update([obj], ["town"]) == 1


def _upsert(model: Any) -> None:
    model.objects.bulk_create(
        [model(patron_id="a", town="Chur", first="x", last="y", cents=1)],
        update_conflicts=True,
        update_fields=["town"],
        unique_fields=["patron_id"],
    )


def _update_or_create(model: Any) -> None:
    model.objects.update_or_create(patron_id="a", defaults={"town": "Chur"})


def _named(model: Any) -> None:
    obj = model.objects.get(pk="a")
    obj.town = "Chur"
    obj.save(update_fields=["town"])


async def _asynchronous(model: Any) -> None:
    obj = await model.objects.aget(pk="a")
    obj.town = "Chur"
    await obj.asave()


def _block(model: Any) -> None:
    with transactions.atomic():
        obj = model.objects.get(pk="a")
        obj.town = "Chur"
        obj.save()


WRITERS: dict[str, Callable[[Any], None]] = {
    "update": _update,
    "bulk_update": _bulk_update,
    "bulk_create": _upsert,
    "update_or_create": _update_or_create,
    "update_fields": _named,
    "asave": lambda model: async_to_sync(_asynchronous)(model),
    "atomic": _block,
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_whatever_writes_stores_a_whole_upgrade(model: Any, table: Table, write: Callable[[Any], None]) -> None:
    """Never one attribute of the present version beside the others of the old one."""
    write(model)
    assert item(table, "a") == {**STORED, "town": "Chur", "stars": "5"}


def test_a_computed_change_is_computed_of_what_the_upgrade_gives(model: Any, table: Table) -> None:
    """DynamoDB would add to an attribute that the item does not have yet."""
    assert model.objects.filter(pk__in=["a", "d"]).update(cents=F("cents") + 1) == 2
    assert [item(table, name)["cents"] for name in "ad"] == ["51", "51"]


def test_a_value_as_the_old_item_has_it_is_still_a_change(table: Table) -> None:
    """What was set is compared with what the object showed, and not with the stored value of then."""
    with forgotten():
        double = models.Upgrade(lambda item: {"stars": item["stars"] * 2}, changes=["stars"])
        found = declare(
            "Patron",
            PRIMARY,
            {},
            options={"schema_version": 2, "upgrades": {1: double}},
            patron_id=models.IdAttribute(),
            stars=models.IntegerAttribute(),
        )
        put(table, "a", 1)
        obj = found.objects.get(pk="a")
        assert obj.stars == 10
        obj.stars = 5
        obj.save()
        assert found.objects.get(pk="a").stars == 5


def test_a_change_of_an_old_writer_meanwhile_is_not_lost(model: Any, table: Table) -> None:
    """The write is held to all that the upgrade was made of."""
    obj = model.objects.get(pk="a")
    put(table, "a", None, name={"S": "Grace Hopper"})
    obj.town = "Chur"
    with pytest.raises(StaleObject):
        obj.save()
    assert item(table, "a")["name"] == "Grace Hopper"


def test_a_name_that_an_upgrade_looked_for_is_held_to_be_missing(model: Any, table: Table) -> None:
    """What was not there when the upgrade asked for it decides its result as well."""
    put(table, "c", 2, price=None)
    obj = model.objects.get(pk="c")
    put(table, "c", 2)
    obj.town = "Chur"
    with pytest.raises(StaleObject):
        obj.save()
    assert item(table, "c")["price"] == "0.50"


def test_an_update_meets_an_old_writer_and_goes_on(model: Any, table: Table) -> None:
    """A queryset's update reads again and upgrades what is stored by now."""
    objects = model.objects.filter(pk="a")
    found = list(objects)
    put(table, "a", None, name={"S": "Grace Hopper"})
    found[0].town = "Chur"
    assert model.objects.bulk_update(found, ["town"]) == 1
    assert {"first": "Grace", "last": "Hopper", "town": "Chur"}.items() <= item(table, "a").items()


def test_a_save_after_an_upgrade_by_another_is_refused(model: Any) -> None:
    """Whoever read an earlier version does not write over a later one."""
    one, other = model.objects.get(pk="a"), model.objects.get(pk="a")
    other.stars = 1
    other.save()
    one.town = "Chur"
    with pytest.raises(StaleObject):
        one.save()


def test_a_present_item_is_written_by_its_difference(model: Any, table: Table) -> None:
    """Under the condition that it is of the version that was read."""
    obj = model.objects.get(pk="d")
    obj.stars = 4
    with assert_requests(["UpdateItem"]) as sent:
        obj.save()
    assert set(sent[0].params["ExpressionAttributeNames"].values()) == {"pk", "schemaVersion", "deletedAt", "stars"}


def test_a_new_object_carries_the_version(model: Any, table: Table) -> None:
    """Also one of ``bulk_create()``, and one that was written over."""
    model.objects.create(patron_id="n", **PRESENT)
    model.objects.bulk_create([model(patron_id="m", **PRESENT), model(patron_id="d", **PRESENT)], update_conflicts=True)
    assert [item(table, name)["schemaVersion"] for name in "nmd"] == ["3", "3", "3"]


def test_the_trash_takes_and_gives_back_old_items(model: Any, table: Table) -> None:
    """They are upgraded on the way in."""
    model.objects.get(pk="a").delete()
    assert {**STORED, "stars": "5"}.items() <= item(table, "a").items()
    (obj,) = model.deleted_objects.all()
    obj.restore()
    assert item(table, "a") == {**STORED, "stars": "5"}


def test_an_old_item_in_the_trash_is_restored_as_upgraded(model: Any, table: Table) -> None:
    """It went there before the version was raised."""
    put(table, "t", 1, deletedAt={"N": "1000"}, gs1pk={"S": "TRASH#Patron"}, gs1sk={"S": "1970-01-01T00:00:01.000Z#t"})
    (obj,) = model.deleted_objects.all()
    obj.restore()
    assert item(table, "t") == {**STORED, "stars": "5"}


def test_an_old_item_is_moved_as_upgraded(model: Any, table: Table) -> None:
    """Under its new key there is nothing of the old version."""
    model.objects.get(pk="a").move(patron_id="z")
    assert item(table, "z") == {**STORED, "stars": "5"}


def test_an_old_item_is_deleted_for_good(model: Any, table: Table) -> None:
    """Unless somebody has upgraded it meanwhile."""
    one, other = model.objects.get(pk="a"), model.objects.get(pk="a")
    other.save(force_update=True)
    with pytest.raises(StaleObject):
        one.hard_delete()
    other.hard_delete()
    assert ("PATRON#a", "#METADATA") not in everything(table)


QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "filter": lambda model: list(model.objects.filter(pk__in=["a", "b"], last="Byron")),
    "filter by a removed default": lambda model: model.objects.filter(pk="a", cents__gt=10).exists(),
    "key": lambda model: list(model.objects.using_index("by_last")),
    "order": lambda model: list(model.objects.order_by("last")),
    "either": lambda model: list(model.objects.filter(Q(pk="a") | Q(pk="b", last="Byron"))),
    "either of a listing": lambda model: list(model.objects.filter(Q(last="Byron") | Q(town="Chur"))),
    "exclude": lambda model: list(model.objects.exclude(last="Hopper")),
    "neither": lambda model: list(model.objects.filter(~(Q(last="Hopper") & Q(town="Bern")))),
    "pair": lambda model: list(model.objects.filter(first=F("last"))),
    "scan": lambda model: list(model.objects.allow_scan().filter(last="Byron")),
    "in memory": lambda model: list(model.objects.allow_in_memory(limit=9).filter(last="Byron").order_by("stars")),
    "count": lambda model: model.objects.filter(last="Byron").count(),
    "folded": lambda model: list(model.objects.filter(pk="a", last__iexact="BYRON")),
    "update": lambda model: model.objects.filter(pk="a", last="Byron").update(town="Chur"),
    "largest": lambda model: model.objects.allow_in_memory(limit=10).aggregate(Max("last")),
    "condition": lambda model: _save_if(model, Q(cents=50)),
    "condition of a deletion": lambda model: model.objects.get(pk="a").delete(condition=Q(cents=50)),
}


def _save_if(model: Any, condition: Q) -> None:
    obj = model.objects.get(pk="a")
    obj.save(condition=condition)


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
def test_a_question_that_dynamodb_would_answer_by_old_values_is_refused(model: Any, ask: Callable[[Any], Any]) -> None:
    """Objects would be left out, or be among the answers wrongly."""
    with pytest.raises(KeyNotFilled, match="UpgradeItems"):
        ask(model)


def test_what_no_upgrade_changes_is_asked_for_as_ever(model: Any) -> None:
    """A filter, an order and a key of other attributes."""
    assert [each.pk for each in model.objects.filter(town="Bern").order_by("town")] == ["a", "b", "c", "d"]
    assert [each.pk for each in model.objects.filter(stars=5)] == ["a", "b"]


def test_aggregates_count_upgraded_values(model: Any) -> None:
    """They are computed of what is read, in groups as well."""
    found = model.objects.allow_in_memory(limit=10)
    assert found.aggregate(Sum("cents"), Count("last", distinct=True)) == {"cents__sum": 200, "last__count": 1}
    assert list(found.values("last").annotate(adas=Count("pk", filter=Q(first="Ada")))) == [
        {"last": "Byron", "adas": 4}
    ]


def test_an_item_of_a_newer_version_is_neither_read_nor_written(model: Any, table: Table) -> None:
    """This code does not know what it means; the error names the item and both versions."""
    put(table, "x", 3, schemaVersion={"N": "4"})
    message = r"the item PATRON#x / #METADATA was written at schema version 4, and this code has version 3"
    for ask in (
        lambda: model.objects.get(pk="x"),
        lambda: list(model.objects.values_list("town")),
        lambda: model.objects.filter(pk="x").update(town="Chur"),
        lambda: model.objects.bulk_create([model(patron_id="x", **PRESENT)], update_conflicts=True),
    ):
        with pytest.raises(SchemaVersionError, match=message):
            ask()


def test_a_newer_item_is_not_written_by_who_read_the_former_one(model: Any, table: Table) -> None:
    """A process of the old code has it in memory still."""
    obj = model.objects.get(pk="d")
    put(table, "d", 3, schemaVersion={"N": "4"})
    obj.town = "Chur"
    with pytest.raises(StaleObject):
        obj.save()
    assert item(table, "d")["town"] == "Bern"


def _raises(item: Any) -> Any:
    return item["nothing"]


def _not_a_mapping(item: Any) -> Any:
    return [1]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (_raises, r"PATRON#a / #METADATA: the upgrade from schema version 1, _raises\(\), raised KeyError: 'nothing'"),
        (_not_a_mapping, r"gives no values by name, but list"),
        (lambda item: {"town": "x"}, r"changes town, and declares changes of first, last, name only"),
        (lambda item: {"first": object()}, r"the upgrade from schema version 1: first"),
    ],
)
def test_an_upgrade_that_fails_is_named_with_the_item(
    table: Table, function: Callable[[Any], Any], message: str
) -> None:
    """With its version, and the function."""
    with forgotten():
        wrong = models.Upgrade(function, changes=["first", "last", "name"])
        found = patron(upgrades={1: wrong, 2: COUNT})
        put(table, "a", 1)
        with pytest.raises(SchemaVersionError, match=message):
            found.objects.get(pk="a")


def test_an_item_that_no_upgrade_leads_on_from_is_named(table: Table) -> None:
    """Its function was dropped too early."""
    with forgotten():
        found = patron(upgrades={2: COUNT})
        put(table, "a", 1)
        with pytest.raises(SchemaVersionError, match=r"is of schema version 1, and no upgrade begins at version 1"):
            found.objects.get(pk="a")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"upgrades": {1: SPLIT}}, r"Patron.Meta.upgrades has no function from version 2 to 3"),
        ({"upgrades": {3: SPLIT}}, r"has upgrades from 3; they begin at versions from 1 to 2"),
        ({"upgrades": {1: lambda item: item}}, r"is a dict such as \{1: models.Upgrade\(function"),
        ({"schema_version": 0}, r"schema_version is a whole number from 1 on, not 0"),
        ({"schema_version": None}, r"Meta.upgrades has no effect without Meta.schema_version"),
    ],
)
def test_a_chain_that_is_not_whole_is_refused(options: dict[str, Any], message: str) -> None:
    """When the class is made."""
    with forgotten(), pytest.raises(ConfigurationError, match=message):
        patron(**options)


@pytest.mark.parametrize("name", ["patron_id", "deletedAt", "pk", "gs1pk", "folded", "schemaVersion"])
def test_an_upgrade_cannot_change_what_keys_and_the_app_keep(name: str) -> None:
    """The check says which."""
    with forgotten():
        wrong = models.Upgrade(split_nothing, changes=[name])
        found = patron(upgrades={1: wrong, 2: COUNT})
        (message,) = messages(found)
        assert message[0] == "dynamo_single.E003"
        assert f"the upgrade from schema version 1 cannot change {name}" in message[1]


def split_nothing(item: Any) -> dict[str, Any]:
    """Changes nothing."""
    return {}


def test_an_upgrade_cannot_change_what_is_unique(table: Table) -> None:
    """Reading could not take the claim; the check says so, and a write is refused."""
    with forgotten():
        found = declare(
            "Patron",
            PRIMARY,
            {},
            options={"schema_version": 2, "upgrades": {1: SPLIT}},
            patron_id=models.IdAttribute(),
            first=models.UnicodeAttribute(unique=True),
        )
        assert [each[0] for each in messages(found)] == ["dynamo_single.E023"]
        with pytest.raises(ConfigurationError, match=r"Meta.upgrades change first, from which other items follow"):
            found.objects.create(patron_id="a", first="x")


@pytest.mark.parametrize(
    ("options", "ids"), [({}, ["dynamo_single.W907"]), ({"schema_version": 1, "upgrades": {}}, [])]
)
def test_a_raised_version_needs_migrations(options: dict[str, Any], ids: list[str]) -> None:
    """Without them nobody knows whether a filter leaves older items out; the first version has none."""
    with forgotten():
        found = patron(**options)
        assert [each.id for each in check_versions() if each.obj is found] == ids


def test_keys_that_upgrades_do_not_change_are_checked_in_old_items(model: Any, table: Table) -> None:
    """The others are as they were then, which is no fault."""
    put(table, "a", None, gs1sk={"S": "Basel#a"})
    assert [(each.kind, each.key[0]) for each in verify()] == [("index key", "PATRON#a")]


def test_one_request_cannot_upgrade(model: Any) -> None:
    """Counters and PynamoDB's writers are refused."""
    with pytest.raises(NotSupported, match="schema version"):
        counters.add(model(patron_id="a", **PRESENT), "cents")
    with pytest.raises(NotSupported, match="schema version"), model.batch_write():
        pass


def test_an_attribute_of_an_old_item_is_not_forgotten(model: Any) -> None:
    """What is left would be neither of the one version nor of the other."""
    obj = model.objects.get(pk="a")
    with pytest.raises(NotSupported, match="earlier schema version"):
        del obj.town


def test_a_refresh_of_some_attributes_meets_an_upgrade(model: Any, table: Table) -> None:
    """What is read by then is of another version than what the object has read before."""
    one, other = model.objects.get(pk="a"), model.objects.get(pk="a")
    other.town = "Chur"
    other.save()
    one.refresh_from_db(fields=["town"])
    one.stars = 1
    one.save()
    assert item(table, "a") == {**STORED, "town": "Chur", "stars": "1"}


def test_a_plain_model_stores_and_sends_nothing_more(table: Table) -> None:
    """Its items say no version, and its writes are held to none."""
    with forgotten():
        found = declare("Patron", PRIMARY, {}, **attributes())
        obj = found.objects.create(patron_id="p", **PRESENT)
        obj.town = "Chur"
        with assert_requests(["UpdateItem"]) as sent:
            obj.save()
        assert set(sent[0].params["ExpressionAttributeNames"].values()) == {"pk", "town"}
        assert "schemaVersion" not in item(table, "p")
        assert len(table.send(Request("Scan"))["Items"]) == 1
