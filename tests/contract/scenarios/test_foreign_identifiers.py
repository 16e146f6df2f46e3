"""Records whose identifiers another system made, of any form, in tables of both kinds of keys."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.core.management import call_command

from dynamo_single import models, transactions
from dynamo_single.exceptions import AlreadyExists
from dynamo_single.table import Request, Table
from dynamo_single.testing import assert_requests
from tests.contract.conftest import Registering, shown
from tests.contract.scenarios.conftest import product
from tests.contract.tables import as_stored, assert_consistent
from tests.unit.declaring import forgotten, messages

WITH_PREFIX = [
    "product-23423423-234234-234234-23423",
    "product-1",
    "product-2026-11-22",
    "product-",
    'product-a b#c!d$e"f',
    "product-\u00e9\U0001f600|~",
]
ANY = [*WITH_PREFIX, "4711", "a b", "#1", "user-0e6b9a52-c8a4-11f0-9b4e-0242ac120002", "$$", "MIGRATIONS", "x|y", "~0"]


@pytest.fixture(scope="module")
def anything(place: str, goods: Any) -> Iterator[tuple[Any, Any]]:
    """Return records with and without a prefix, and their references."""
    with forgotten():
        options = {"app_label": "catalog", "id_prefix": "", "table": place}
        model = product(place, name="Thing", Meta=type("Meta", (), options))
        noted = product(
            place,
            name="Remark",
            thing=models.ReferenceAttribute(model, null=True),
            Meta=type("Meta", (), {**options, "id_prefix": "remark"}),
        )
        yield model, noted


@pytest.mark.parametrize("identifier", WITH_PREFIX)
def test_an_identifier_with_the_prefix_has_any_form(goods: Any, kept: Table, identifier: str) -> None:
    """The object is created, found, listed, changed, deleted and purged."""
    _use(goods, identifier)


@pytest.mark.parametrize("identifier", ANY)
def test_an_identifier_without_a_prefix_has_any_form(anything: Any, kept: Table, identifier: str) -> None:
    """This also applies to the record model without a prefix."""
    model, remark = anything
    if identifier.startswith("product-") and kept.settings.key == "id":
        return  # records of other models, whose identifiers do not distinguish them
    _use(model, identifier)
    thing = model.objects.create(id=identifier, data={})
    noted = remark.objects.create(thing=thing, data={"thing": identifier})
    assert remark.objects.select_related("thing").get(pk=noted.pk).thing.pk == identifier
    assert remark.objects.get(pk=noted.pk).thing == thing
    assert_consistent(kept.settings.alias)


def _use(model: Any, identifier: str) -> None:
    made = model.objects.create(id=identifier, data={"author": "a", "n": 1}, isbn="1")
    with assert_requests(["GetItem"]):
        assert model.objects.get(pk=identifier).id == identifier
    assert list(model.objects.in_bulk([identifier])) == [identifier]
    assert [each.id for each in model.objects.all()] == [identifier]
    assert [each.id for each in model.objects.filter(author="a").only("data")] == [identifier]
    assert model.objects.get(isbn="1").id == identifier
    with pytest.raises(AlreadyExists):
        model.objects.create(id=identifier, data={})
    assert model.objects.filter(pk=identifier).update(data__n=2) == 1
    made.refresh_from_db()
    made.data["author"] = "b"
    made.save()
    with transactions.atomic():
        model.objects.get(pk=identifier).delete()
    model.deleted_objects.get(pk=identifier).restore()
    assert_consistent(model._options.alias)
    model.objects.get(pk=identifier).hard_delete()
    assert not model.all_objects.filter(pk=identifier).exists()


def test_pages_go_on_after_any_identifier(anything: Any, kept: Table) -> None:
    """A cursor holds the key of the last one."""
    model, _ = anything
    names = [each for each in ANY if not each.startswith("product-")]
    model.objects.bulk_create([model(id=each, data={}) for each in names])
    found, cursor = [], None
    while True:
        page = model.objects.order_by("created_at").page(size=2, cursor=cursor)
        found += [each.id for each in page]
        if not page.has_next:
            break
        cursor = page.next_cursor
    assert sorted(found) == sorted(names)


@pytest.mark.parametrize("identifier", ["order-23423423-234234-234234-23423", "4711", "a b"])
def test_rebuilding_takes_over_what_another_system_wrote(anything: Any, kept: Table, identifier: str) -> None:
    """The identifier determines the model of the item."""
    if kept.settings.key != "id":
        return  # an item without a type has no model there
    model, _ = anything
    times = {name: {"N": "1763800000000"} for name in ("createdAt", "updatedAt")}
    item = {"id": {"S": identifier}, "data": {"M": {}}, **times}
    Table(kept.settings).send(Request("PutItem", {"Item": item}))
    call_command("dynamo_rebuild", model._meta.label, "--alias", kept.settings.alias, stdout=io.StringIO())
    assert model.objects.get(pk=identifier).data == {}
    assert [each.id for each in model.objects.all()] == [identifier]
    assert identifier in [item["id"]["S"] for item in as_stored(kept)]


def test_one_record_of_a_table_takes_any_identifier(place: str) -> None:
    """This applies to a table whose key is the identifier."""
    if place == "default":
        return
    with forgotten():
        options = {"app_label": "catalog", "id_prefix": "", "table": place}
        one, other = (product(place, name=name, Meta=type("Meta", (), options)) for name in ("One", "Other"))
        for model in (one, other):
            assert [each for each, _ in messages(model)] == ["dynamo_single.E033"]


@pytest.mark.parametrize("identifier", ["a b", "x|y/#1", "\u00e9\U0001f600?q=%2F", "product-1"])
def test_the_admin_opens_any_identifier(anything: Any, kept: Table, registered: Registering, identifier: str) -> None:
    """Its list leads to its page, which saves it."""
    if identifier.startswith("product-") and kept.settings.key == "id":
        return
    model, _ = anything
    model.objects.create(id=identifier, data={"n": 1})
    pages = registered(model, list_display=("id",), fields=("data",))
    assert shown(pages.get("catalog/thing/"), "id") == [identifier]
    path = f"catalog/thing/{quote(identifier)}/change/"
    assert pages.get(path).status_code == 200
    assert pages.post(path, {"data": '{"n": 2}'}).status_code == 302
    assert model.objects.get(pk=identifier).data == {"n": 2}
