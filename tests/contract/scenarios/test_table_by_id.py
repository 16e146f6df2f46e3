"""A table with only the key ``id``: its items, its tools, and unsupported features."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.test import override_settings

from dynamo_single import models
from dynamo_single.admin.secrets import Masks
from dynamo_single.backend.migration_record import recorded
from dynamo_single.contrib.doctor import verify
from dynamo_single.contrib.table_admin.table_reads import shown_request
from dynamo_single.exceptions import (
    BulkIntegrityError,
    InvalidValue,
    KeyNotFilled,
    NotSupported,
    TableMismatch,
    UnexpectedItem,
)
from dynamo_single.middleware import _Key
from dynamo_single.table import Request, Table, capture_requests, get_table, schema
from dynamo_single.table.redirects import Place
from dynamo_single.table.shaped.written_keys import sent_key
from dynamo_single.table.table import translator_of
from dynamo_single.test_tables import contents
from dynamo_single.testing import assert_requests, fault, setup_table
from tests.contract.conftest import Pages, Registering, text_of
from tests.contract.scenarios.conftest import product
from tests.contract.tables import as_stored, assert_consistent, single_key_table
from tests.histories.app import history
from tests.unit.declaring import declare, forgotten, messages

OLD = "product-0e6b9a52-c8a4-11f0-9b4e-0242ac120002"
#: A record from another system, without a type or index keys.
WRITTEN = {
    "id": {"S": OLD},
    "data": {"M": {"author": {"S": "a"}}},
    "createdAt": {"N": "1763800000000"},
    "updatedAt": {"N": "1763800000001"},
    "createdBy": {"S": "user-1"},
}


@pytest.fixture(scope="module")
def place(engine: Table) -> Iterator[str]:
    """The table's alias."""
    with single_key_table() as alias:
        yield alias


def run(command: str, *arguments: str) -> str:
    """Return the output of a command."""
    out = io.StringIO()
    call_command(command, *arguments, stdout=out, stderr=out, no_color=True)
    return out.getvalue()


def put(kept: Table, item: dict[str, Any]) -> None:
    """Store an item as it is."""
    Table(kept.settings).send(Request("PutItem", {"Item": item}))


# unsupported features


@pytest.mark.parametrize("identifier", ["nonsense", "user-1", "user-2026-11-22"])
def test_an_identifier_that_is_not_of_the_form_cannot_be_given(goods: Any, kept: Table, identifier: str) -> None:
    with assert_requests(0), pytest.raises(InvalidValue, match="begins with '<id_prefix>-'"):
        goods.objects.create(id=identifier, data={})


def test_no_partition_is_queried(goods: Any, kept: Table) -> None:
    with assert_requests(0), pytest.raises(NotSupported, match="no partitions to query"):
        list(goods.query("product-1"))


def test_an_item_of_another_type_is_refused_as_elsewhere(goods: Any, kept: Table) -> None:
    one = goods.objects.create(data={})
    put(kept, {"id": {"S": one.id}, "itemType": {"S": "Else"}})
    with pytest.raises(UnexpectedItem, match="itemType 'Else'"):
        goods.objects.get(pk=one.pk)


def refused(model: Any) -> list[tuple[str, str]]:
    """The messages of a model about the key of its table."""
    return [each for each in messages(model) if each[0] == "dynamo_single.E033"]


def test_a_record_is_all_that_may_live_there(goods: Any, place: str) -> None:
    assert refused(goods) == []
    with forgotten():
        shop = {"shop_id": models.IdAttribute()}
        model = declare("Store", ("STORE#{shop_id}", "#METADATA"), options={"table": place}, **shop)
        ((_, text),) = refused(model)
        assert "'STORE#{shop_id}' / '#METADATA' does not belong to a record" in text


@pytest.mark.parametrize(
    "attributes",
    [
        {"Keys": type("Keys", (models.Record.Keys,), {"primary": models.Key("{id}", "#ELSE")})},
        {"Keys": type("Keys", (models.Record.Keys,), {"primary": models.Key("P#{id}", "#PRODUCT")})},
        {"id": models.IdAttribute(prefix="goods")},
        {"id": models.UnicodeAttribute()},
        {"id": models.IdAttribute(prefix="product", attr_name="identifier")},
    ],
    ids=["another sort key", "another partition", "another prefix", "another attribute", "another name"],
)
def test_nor_a_record_with_another_key(place: str, attributes: dict[str, Any]) -> None:
    with forgotten():
        assert len(refused(product(place, name="Wares", **attributes))) == 1


def test_a_table_with_a_key_of_two_parts_is_named_with_the_setting(goods: Any, kept: Table) -> None:
    kept.send(Request("DeleteTable"))
    with single_key_table(KEY="pk") as alias:
        schema.apply(get_table(alias))
    with pytest.raises(TableMismatch, match=r"other keys than 'id'.*DYNAMO_SINGLE\['products'\]\['KEY'\]"):
        goods.objects.create(data={})
    with pytest.raises(CommandError, match=r"DYNAMO_SINGLE\['products'\]\['KEY'\] = 'pk' accepts the table unchanged"):
        run("dynamo_setup", "--alias", "products")


def test_a_list_holds_its_items_as_they_came_with_their_keys(goods: Any, kept: Table) -> None:
    goods.objects.bulk_create(goods(data={"author": "a", "n": n}) for n in range(3))
    found = list(goods.objects.filter(author="a"))
    assert {type(vars(each)["_stored"]) for each in found} == {bytes}
    for each in found:
        assert (each._stored["pk"], each._stored["sk"]) == ({"S": each.id}, {"S": "#PRODUCT"})
        each.data["n"] += 1
        each.save()
    assert sorted(each.data["n"] for each in goods.objects.in_bulk([each.pk for each in found]).values()) == [1, 2, 3]


def test_statements_insert_items_by_their_id(kept: Table, place: str) -> None:
    with forgotten():
        wares = product(place, name="Wares", isbn=models.UnicodeAttribute(null=True))
        given = [wares(data={"n": number}) for number in range(30)]
        with capture_requests() as sent:
            wares.objects.bulk_create(given)
        inserts = [request for request in sent if request.operation == "BatchExecuteStatement"]
        assert [len(request.params["Statements"]) for request in inserts] == [25, 5]
        assert inserts[0].params["Statements"][0]["Parameters"][0] == {"S": given[0].pk}
        again = [wares(id=given[0].pk, data={}), wares(data={})]
        with pytest.raises(BulkIntegrityError):
            wares.objects.bulk_create(again)
        assert wares.objects.get(pk=given[0].pk).data == {"n": 0}
        assert {*wares.objects.in_bulk([again[1].pk])} == {again[1].pk}


def test_an_item_of_a_records_type_that_is_none_is_read_without_identifier_and_reported(
    goods: Any, kept: Table
) -> None:
    """The item behaves like an item without the attribute in a table with two keys."""
    goods.objects.create(data={"author": "a"})
    (item,) = as_stored(kept)
    put(kept, {**item, "id": {"S": "#x|#y"}})
    assert {each._stored["pk"]["S"] for each in goods.objects.filter(author="a")} == {item["id"]["S"], "x"}
    assert [finding.key for finding in verify("products")] == [("x", "#y")]


# display


def test_explain_shows_what_is_sent(goods: Any, kept: Table) -> None:
    text = goods.objects.filter(pk="product-1").explain()
    assert "key       id = 'product-1'" in text
    assert "'pk'" not in text
    assert "#UNIQUE#Goods#isbn#1|#CLAIM" in goods.objects.filter(isbn__in=["1", "2"]).explain()


def test_requests_are_heard_as_they_are_sent_and_shown_by_their_keys(goods: Any, kept: Table) -> None:
    with capture_requests() as sent:
        goods.objects.filter(pk="product-1").first()
    (request,) = sent
    assert request.params["Key"] == {"id": {"S": "product-1"}}
    assert shown_request("products", request, Masks(lambda *_: False), with_keys=True).what == "product-1 / #PRODUCT"
    assert (
        str(_Key("products", *sent_key(request.params["Key"], "products", translator_of)))
        == "pk='product-1', sk='#PRODUCT'"
    )


def test_an_answer_that_was_lost_is_recognised(goods: Any, kept: Table) -> None:
    one = goods.objects.create(data={"n": 1})
    one.data["n"] = 2
    with fault("lost answer", operation="UpdateItem", times=1, alias="products"), pytest.raises(Exception, match="may"):
        one.save()
    assert goods.objects.get(pk=one.pk).data == {"n": 2}


def test_the_admin_lists_changes_and_shows_a_record(goods: Any, kept: Table, registered: Registering) -> None:
    pages = registered(goods, list_display=("id", "author"))
    one = goods.objects.create(data={"author": "Old"}, isbn="1")
    assert '<td class="field-author">Old</td>' in pages.get("catalog/goods/").content.decode()
    sent = {"data": '{"author": "New"}', "isbn": "1"}
    assert pages.post(f"catalog/goods/{one.pk}/change/", sent).status_code == 302
    assert goods.objects.get(pk=one.pk).author == "New"
    given = {"alias": "products", "pk": one.pk}
    listed = pages.get(f"dynamodb/table/?{urlencode(given)}", sends=["GetItem"])
    assert [row.item.key for row in listed.context["rows"]] == [(one.pk, "#PRODUCT")]
    shown = pages.get(f"dynamodb/item/?{urlencode({**given, 'sk': '#PRODUCT'})}", sends=["GetItem"])
    item = json.loads(shown.context["item"].text)
    assert item.keys() & {"id", "pk", "sk"} == {"id"}
    ((_, claim, _),) = shown.context["links"]
    claimed = pages.get(f"dynamodb/item/?{urlencode({'alias': 'products', 'pk': claim.key[0], 'sk': claim.key[1]})}")
    assert json.loads(claimed.context["item"].text)["id"] == {"S": "#UNIQUE#Goods#isbn#1|#CLAIM"}
    searched = pages.get("dynamodb/table/?alias=products&begins=product-", sends=["Scan"])
    assert len(searched.context["rows"]) == 1


def test_a_joined_id_is_no_way_round_what_is_masked(goods: Any, kept: Table, registered: Registering) -> None:
    """The page of a partition accepts a partition rather than a complete key."""
    pages: Pages = registered(goods)
    goods.objects.create(data={}, isbn="1")
    listed = pages.get(f"dynamodb/table/?{urlencode({'alias': 'products', 'pk': '#UNIQUE#Goods#isbn#1|#CLAIM'})}")
    assert listed.context["rows"] == []
    assert "Wrong" not in text_of(listed)


# tools


def test_setup_makes_the_table_and_status_describes_it(goods: Any, kept: Table) -> None:
    kept.send(Request("DeleteTable"))
    assert "is ready" in run("dynamo_setup", "--alias", "products")
    described = kept.send(Request("DescribeTable"))["Table"]
    assert described["KeySchema"] == [{"AttributeName": "id", "KeyType": "HASH"}]
    assert {index["IndexName"] for index in described["GlobalSecondaryIndexes"]} == {"gs1", "gs2"}
    assert "matches the settings" in run("dynamo_setup", "--alias", "products", "--check")
    goods.objects.create(data={}, isbn="1")
    said = run("dynamo_status", "--alias", "products", "--count")
    assert "Keys           id\n" in said
    assert "Goods          1\n" in said


def test_what_does_not_fit_together_is_found_and_repaired(goods: Any, kept: Table) -> None:
    one = goods.objects.create(data={"author": "a"}, isbn="1")
    raw = Table(kept.settings)
    raw.send(Request("DeleteItem", {"Key": {"id": {"S": "#UNIQUE#Goods#isbn#1|#CLAIM"}}}))
    raw.send(Request("UpdateItem", {"Key": {"id": {"S": one.pk}}, "UpdateExpression": "REMOVE gs1pk, author"}))
    with pytest.raises(CommandError, match="3 findings"):
        run("dynamo_verify", "--alias", "products")
    run("dynamo_rebuild", "--alias", "products")
    assert_consistent("products")
    assert [each.pk for each in goods.objects.filter(author="a")] == [one.pk]


def test_records_that_something_else_has_written_are_taken_over_by_a_rebuild(goods: Any, kept: Table) -> None:
    """They get their type, extracted values and index keys; everything else is unchanged."""
    put(kept, WRITTEN)
    put(kept, {"id": {"S": "config"}, "n": {"N": "1"}})
    with pytest.raises(UnexpectedItem, match=r"itemType None.*dynamo_rebuild --alias products takes over"):
        goods.objects.get(pk=OLD)
    said = run("dynamo_rebuild", "--alias", "products", "catalog.Goods")
    assert f"record without type: {OLD}" in said
    assert "1 written again" in said
    (item,) = (each for each in as_stored(kept) if each["id"] == {"S": OLD})
    assert item == {
        **WRITTEN,
        "itemType": {"S": "Goods"},
        "author": {"S": "a"},
        "gs1pk": {"S": "PRODUCT#a"},
        "gs1sk": {"S": OLD},
        "gs2pk": {"S": "PRODUCT"},
        "gs2sk": {"S": f"2025-11-22T08:26:40.000Z#{OLD}"},
    }
    found = goods.objects.get(author="a")
    assert (found.pk, found.created_by_id) == (OLD, "user-1")


def test_records_that_something_else_has_written_are_reported_by_their_model(goods: Any, kept: Table) -> None:
    """No list contains them, and a list does not report this."""
    put(kept, WRITTEN)
    assert list(goods.objects.filter(author="a")) == list(goods.objects.all()) == []
    out = io.StringIO()
    with pytest.raises(CommandError, match="1 findings"):
        call_command("dynamo_verify", "--alias", "products", stdout=out)
    (line,) = out.getvalue().splitlines()
    assert line.startswith(f"record without type: {OLD} ")
    assert line.endswith(
        "It does not have an itemType, so lists do not contain it. By its id, it is a record of catalog.Goods."
    )


def test_one_with_a_unique_value_takes_a_second_rebuild(goods: Any, kept: Table) -> None:
    put(kept, {**WRITTEN, "isbn": {"S": "1"}})
    with pytest.raises(CommandError, match="run it again"):
        run("dynamo_rebuild", "--alias", "products")
    run("dynamo_rebuild", "--alias", "products")
    assert_consistent("products")
    assert goods.objects.get(isbn="1").pk == OLD


def test_such_an_item_that_cannot_be_read_is_reported(goods: Any, kept: Table) -> None:
    put(kept, {**WRITTEN, "createdAt": {"S": "yesterday"}})
    with pytest.raises(CommandError, match="1 left"):
        run("dynamo_rebuild", "--alias", "products")


def test_an_attribute_that_is_called_as_a_part_of_a_key_is_none(goods: Any, kept: Table) -> None:
    one = goods.objects.create(data={})
    (item,) = as_stored(kept)
    put(kept, {**item, "pk": {"S": "x"}, "sk": {"N": "1"}})
    found = goods.objects.get(pk=one.pk)
    found.data["n"] = 1
    found.save()
    assert [each.pk for each in goods.objects.all()] == [one.pk]
    assert_consistent("products")


def test_fixtures_carry_records_over(goods: Any, kept: Table, tmp_path: Path) -> None:
    one = goods.objects.create(data={"author": "a"}, isbn="1")
    dumped = tmp_path / "goods.json"
    dumped.write_text(run("dumpdata", "catalog.Goods"))
    setup_table("products")
    run("loaddata", str(dumped))
    assert goods.objects.get(isbn="1").pk == one.pk
    assert_consistent("products")


def test_migrations_carry_records_over_and_keep_their_state_there(kept: Table, tmp_path: Path) -> None:
    with history(tmp_path) as app:
        old = product("products", "histories", author=models.UnicodeAttribute(null=True))
        app.make()
        app.migrate()
        one = old.objects.create(data={"maker": "m"}, isbn="1")
        app.forget("Goods")

        class Keys(models.Record.Keys):
            by_maker = models.IndexKey("gs1", "MAKER#{maker}", "{id}")

        maker = models.ExtractedAttribute("data__maker", unique=True)
        new = product("products", "histories", author=models.UnicodeAttribute(null=True), maker=maker, Keys=Keys)
        app.make()
        assert "of 1 items would change (all 3 of the table were read)" in app.migrate("--rehearse")
        app.migrate(until=1)
        with pytest.raises(KeyNotFilled):
            new.objects.get(maker="m")
        app.finish()
        assert new.objects.get(maker="m").pk == one.pk
        assert {item["id"]["S"] for item in as_stored(kept)} == {
            one.pk,
            "#MIGRATIONS|#STATE",
            "#UNIQUE#Goods#isbn#1|#CLAIM",
            "#UNIQUE#Goods#maker#m|#CLAIM",
        }
        assert_consistent("products")
        app.migrate("0001")
        assert "#UNIQUE#Goods#maker#m|#CLAIM" not in {item["id"]["S"] for item in as_stored(kept)}


def test_the_projects_only_table_may_be_one(kept: Table, tmp_path: Path) -> None:
    """The table also contains the record of applied migrations, which a Scan finds."""
    only = {"default": {**settings.DYNAMO_SINGLE["products"]}}
    with override_settings(DYNAMO_SINGLE=only), history(tmp_path) as app:
        model = product("default", "histories")
        app.make()
        app.migrate()
        assert "#MIGRATIONS|APPLIED#histories#0001_initial" in {item["id"]["S"] for item in as_stored(kept)}
        model.objects.create(data={"author": "a"}, isbn="1")
        with assert_requests(["Scan"]):
            assert [*recorded()] == [("histories", "0001_initial")]
        assert "No migrations to apply" in app.migrate()
        assert [each.isbn for each in model.objects.filter(author="a")] == ["1"]
        app.migrate("zero")
        assert recorded() == {}


def test_test_tables_are_copied_and_put_back(goods: Any, kept: Table) -> None:
    one = goods.objects.create(data={"author": "a"}, isbn="1")
    before = contents.read(kept)
    one.hard_delete()
    goods.objects.create(data={})
    contents.restore(kept, contents.from_text(contents.as_text(before)))
    assert goods.objects.get(isbn="1") == one
    assert goods.objects.count() == 1


def test_a_table_that_stands_in_for_it_has_the_same_key(kept: Table) -> None:
    other = Place.of(kept.settings)
    assert other.settings(get_table().settings).key == "id"
    with override_settings(DYNAMO_SINGLE={"default": "dynamodb://127.0.0.1:1/single-table"}):
        assert not Place.of(get_table().settings).shape.by_prefix
