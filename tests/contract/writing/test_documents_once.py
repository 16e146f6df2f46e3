"""A document is encoded once per write and decoded once per read, and every change in place is detected."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from copy import deepcopy
from decimal import Decimal
from typing import Any

import pytest
from django.core import serializers
from django.db.models import Q
from django.forms import modelform_factory
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_single import models
from dynamo_single.exceptions import ItemTooLarge, MissingValue
from dynamo_single.orm.conditions.matching import normalized_value
from dynamo_single.orm.items import writer
from dynamo_single.orm.schema.keys import documents, values
from dynamo_single.orm.schema.keys.values import item_size
from dynamo_single.table import Table
from dynamo_single.table.request import MAX_ITEM_SIZE
from dynamo_single.testing import assert_requests, capture_requests
from dynamo_single.transactions import atomic
from tests.catalog.models import Sample
from tests.catalog.stocks import Stock
from tests.contract.tables import stored
from tests.deep import examples
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.usefixtures("table")

#: A document with a marker that identifies its passes.
MARK = "mark of the document"
DATA = {"mark": MARK, "a": {"b": [1, {"c": "x"}], "price": Decimal("1.5")}, "n": 1}


class Passes(dict[str, int]):
    """Count how often the marked document is encoded, compared, decoded, normalized, measured and copied."""

    def __init__(self) -> None:
        super().__init__(encoded=0, compared=0, decoded=0, normalized=0, sized=0, copied=0)


def is_marked(value: Any) -> bool:
    """Return whether a value is the whole document in Python types."""
    return isinstance(value, dict) and value.get("mark") == MARK


def is_stored_mark(value: Any) -> bool:
    """Return whether an AttributeValue contains the document."""
    return is_marked({name: each.get("S") for name, each in value.get("M", {}).items()})


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Passes:
    """Count the passes over the marked document, at the functions that make them."""
    found = Passes()

    def counting(module: Any, name: str, counted: str, is_one: Callable[[Any], bool]) -> None:
        real = getattr(module, name)

        def call(value: Any, *args: Any, **kwargs: Any) -> Any:
            found[counted] += is_one(value)
            return real(value, *args, **kwargs)

        monkeypatch.setattr(module, name, call)

    real = documents._map

    def mapped(value: Any, old: Any, depth: int) -> Any:
        result = real(value, old, depth)
        if depth == 0 and is_marked(value):
            found["compared" if result[0] is old else "encoded"] += 1
        return result

    monkeypatch.setitem(documents._ENCODERS, dict, mapped)
    counting(values, "_to_attribute_value", "encoded", is_marked)
    counting(values, "from_attribute_value", "decoded", is_stored_mark)
    counting(values, "value_size", "sized", is_stored_mark)
    counting(writer, "value_size", "sized", is_stored_mark)
    counting(documents, "normalized_value", "normalized", is_stored_mark)
    counting(documents, "copied", "copied", is_marked)
    return found


def created() -> Stock:
    """An object with the document."""
    return Stock.objects.create(code="s", data=deepcopy(DATA))


def changed(stock: Stock) -> Stock:
    """Return the document with one changed element."""
    stock.data["a"]["b"][1]["c"] += "y"
    return stock


def in_block(stock: Stock) -> None:
    """Saved in a block."""
    with atomic():
        stock.save()


def rolled_back(stock: Stock) -> None:
    """Saved in a block that fails, and then saved."""
    with pytest.raises(ZeroDivisionError), atomic():
        changed(stock).save()
        raise ZeroDivisionError


def by_form(stock: Stock) -> None:
    """Change the object with a form, which validates the document before the save."""
    data = {**DATA, "a": {"b": [1, {"c": "z"}], "price": 1.5}}
    form = modelform_factory(Stock, fields=("data",))({"data": json.dumps(data)}, instance=stock)
    assert form.is_valid(), form.errors
    form.save()


#: Each operation on a loaded object, and the passes over its document.
OPERATIONS: dict[str, tuple[Callable[[Stock], object], dict[str, int]]] = {
    "create": (lambda stock: Stock.objects.create(code="t", data=deepcopy(DATA)), {"encoded": 1, "copied": 1}),
    "bulk_create": (
        lambda stock: Stock.objects.bulk_create([Stock(code="t", data=deepcopy(DATA))]),
        {"encoded": 1, "copied": 1},
    ),
    "get": (lambda stock: Stock.objects.get(pk="s"), {"decoded": 1}),
    "list": (lambda stock: list(Stock.objects.filter(rank=0)), {"decoded": 1}),
    "values": (lambda stock: list(Stock.objects.filter(pk="s").values("data")), {"decoded": 1}),
    "values without it": (lambda stock: list(Stock.objects.filter(pk="s").values("code")), {}),
    "refresh_from_db": (lambda stock: stock.refresh_from_db(), {"decoded": 1}),
    "only and defer": (lambda stock: Stock.objects.defer("data").get(pk="s"), {}),
    "save of one place": (lambda stock: changed(stock).save(), {"encoded": 1, "copied": 1}),
    "save of one place by name": (
        lambda stock: changed(stock).save(update_fields=["data"]),
        {"encoded": 1, "copied": 1},
    ),
    "save of one place in a block": (lambda stock: in_block(changed(stock)), {"encoded": 1, "copied": 1}),
    "save under a condition": (
        lambda stock: changed(stock).save(condition=Q(qty=0)),
        {"encoded": 1, "copied": 1},
    ),
    "save of nothing": (lambda stock: stock.save(), {"compared": 1}),
    "save of nothing by name": (lambda stock: stock.save(update_fields=["note"]), {"sized": 1}),
    "save of another attribute": (lambda stock: (setattr(stock, "qty", 5), stock.save()), {"compared": 1}),
    "update of a place": (lambda stock: Stock.objects.filter(pk="s").update(data__n=2), {}),
    "update of another attribute": (lambda stock: Stock.objects.filter(pk="s").update(qty=2), {}),
    "update of the document": (
        lambda stock: Stock.objects.filter(pk="s").update(data=deepcopy(DATA)),
        {"encoded": 1, "copied": 1},
    ),
    "update of listed objects": (
        lambda stock: Stock.objects.filter(rank=0).update(note="x"),
        {"decoded": 1, "sized": 1},
    ),
    "bulk_update, which checks all objects first": (
        lambda stock: Stock.objects.bulk_update([changed(stock)], ["data"]),
        {"encoded": 2, "copied": 2},
    ),
    "update_or_create": (
        lambda stock: Stock.objects.update_or_create(code="s", defaults={"data": {**DATA, "n": 2}}),
        {"decoded": 1, "encoded": 1, "copied": 1},
    ),
    "block that is rolled back": (rolled_back, {"encoded": 1, "compared": 1, "copied": 1}),
    "full_clean": (lambda stock: stock.full_clean(), {"encoded": 1, "copied": 1}),
    "form, which checks it first": (by_form, {"encoded": 2, "copied": 2}),
    "filter in memory": (lambda stock: list(Stock.objects.filter(rank=0, data__n=1)), {"decoded": 1}),
    "dumpdata": (lambda stock: serializers.serialize("json", [stock]), {}),
    "pickle": (lambda stock: pickle.loads(pickle.dumps(stock)).save(), {"compared": 1}),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_passes_over_a_document(name: str, passes: Passes) -> None:
    stock = created()
    stock = Stock.objects.get(pk="s")
    operation, expected = OPERATIONS[name]
    passes.update(Passes())
    operation(stock)
    assert passes == {**Passes(), **expected}


@pytest.fixture(scope="module")
def followed() -> Iterator[Any]:
    """A model with a key, a version, a trash and declared places that depend on its document."""

    class Inner:
        c = models.UnicodeAttribute(null=True)

    class Places:
        n = models.IntegerAttribute(null=True)
        price = models.DecimalAttribute(null=True, max_digits=12, decimal_places=2)
        inner = models.MapAttribute(null=True, schema=Inner)

    with forgotten():
        yield declare(
            "FollowedSheet",
            ("FOLLOWED#{code}", "#METADATA"),
            {
                "by_mark": models.IndexKey("gs1", "FOLLOWED#{taken}", "{code}"),
                "some": models.IndexKey("gs2", "FOLLOWED", "{code}", condition=Q(data__n=1)),
            },
            bases=(models.SoftDeleteModel,),
            code=models.UnicodeAttribute(),
            data=models.MapAttribute(schema=Places),
            taken=models.ExtractedAttribute("data__mark"),
            folded=models.CanonicalAttribute(source="code"),
            version=models.VersionAttribute(),
        )


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (lambda sheet: (sheet.data.update(n=2), sheet.save()), {"encoded": 1, "decoded": 1}),
        (lambda sheet: sheet.save(), {"compared": 1}),
        (lambda sheet: (sheet.data.update(n=2), in_block(sheet)), {"encoded": 1, "decoded": 1}),
        (lambda sheet: type(sheet).objects.create(code="t", data=deepcopy(DATA)), {"encoded": 1, "decoded": 1}),
    ],
    ids=["save", "save of nothing", "save in a block", "create"],
)
def test_passes_with_everything_that_depends_on_it(
    operation: Callable[[Any], object], expected: dict[str, int], followed: Any, passes: Passes
) -> None:
    """A document with decimal places is decoded for the object, which rounds its numbers."""
    followed.objects.create(code="s", data=deepcopy(DATA))
    sheet = followed.objects.get(pk="s")
    passes.update(Passes())
    operation(sheet)
    assert passes == {**Passes(), **expected}


SCALARS = st.sampled_from(
    ["", "x", "é", 0, 1, True, False, None, Decimal("1.5"), Decimal("1.50"), 1.0, 0.5, b"x", 10**20]
)
LEAVES = SCALARS | st.sampled_from([("a",), (1, 2), (b"x",)]).map(set)
DOCUMENTS = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcé"), inner, max_size=3),
    max_leaves=10,
)
MAPS = st.dictionaries(st.sampled_from("abcd"), DOCUMENTS, max_size=4)


def places(value: Any) -> Iterator[Any]:
    """Yield every element of a document that can change in place."""
    if isinstance(value, dict | list | set):
        yield value
        # An engine returns the names of a map in any order.
        for each in [value[name] for name in sorted(value)] if isinstance(value, dict) else list(value):
            yield from places(each)


def edited(draw: Callable[[Any], Any], document: Any) -> None:
    """Change one element in place, including to a value that is equal in Python but not in DynamoDB."""
    place = draw(st.sampled_from([*places(document)]))
    if isinstance(place, set):
        place.add(next(iter(place)) * 2)
    elif isinstance(place, list):
        how = draw(st.sampled_from(["append", "pop", "set", "reverse"]))
        if how == "append" or not place:
            place.append(draw(DOCUMENTS))
        elif how == "pop":
            place.pop(draw(st.integers(0, len(place) - 1)))
        elif how == "set":
            place[draw(st.integers(0, len(place) - 1))] = draw(DOCUMENTS)
        else:
            place.reverse()
    else:
        name = draw(st.sampled_from("abcd"))
        if draw(st.booleans()) or name not in place:
            place[name] = draw(DOCUMENTS)
        else:
            del place[name]


@settings(max_examples=examples(12, 400), deadline=None)
@given(st.data(), MAPS, st.lists(DOCUMENTS, max_size=3))
def test_every_change_in_place_is_noticed(table: Table, data: Any, given_map: Any, given_list: Any) -> None:
    """One object is changed and saved repeatedly; a naive comparison computes the expected result."""
    stock = Stock.objects.create(code="s", data=given_map, tags=given_list)
    try:
        if data.draw(st.booleans()):
            stock = Stock.objects.get(pk="s")
        for _ in range(data.draw(st.integers(1, 4))):
            before = stored(table)["STOCK#s"]
            for name in data.draw(st.lists(st.sampled_from(["data", "tags"]), max_size=2)):
                edited(data.draw, getattr(stock, name))
            naive = {name: values.to_attribute_value(getattr(stock, name)) for name in ("data", "tags")}
            changes = any(normalized_value(naive[name]) != normalized_value(before[name]) for name in naive)
            with assert_requests(["UpdateItem"] if changes else []):
                stock.save()
            after = stored(table)["STOCK#s"]
            for name in naive:
                assert normalized_value(after[name]) == normalized_value(naive[name])
                assert normalized_value(stock._stored[name]) == normalized_value(naive[name])
                assert {*map(id, places(getattr(stock, name)))}.isdisjoint(map(id, places(stock._stored[name])))
        Stock.objects.get(pk="s").save()
    finally:
        stock.hard_delete()


def test_objects_do_not_share_a_document() -> None:
    """Two objects with the same value can be changed separately after the write."""
    given_map = {"a": {"b": 1}}
    one, other = Stock.objects.create(code="1", data=given_map), Stock.objects.create(code="2", data=given_map)
    one.data["a"]["b"] = 2
    one.save()
    assert (other.data, given_map) == ({"a": {"b": 1}}, {"a": {"b": 1}})
    with assert_requests([]):
        other.save()


def test_update_contains_changed_place_only() -> None:
    """This includes large documents."""
    Stock.objects.create(code="s", data={f"k{number}": {"n": number} for number in range(500)})
    stock = Stock.objects.get(pk="s")
    stock.data["k7"]["n"] = -1
    with capture_requests() as sent:
        stock.save()
    (request,) = sent
    assert request.params["UpdateExpression"].count("=") == 2  # with the automatic time
    assert len(str(request.params)) < 1500


@pytest.mark.parametrize("attribute", [{"data": {"a": 1}}, {"things": [1]}, {"json": {"a": 1}}, {"words": {"a"}}])
def test_item_is_limited_to_400_kilobytes(attribute: dict[str, Any]) -> None:
    """Counted as DynamoDB counts it, whether the document is new, changed or as it was."""
    sample = Sample.objects.create(sample_id="sample_1", blob=b"", **attribute)
    room = MAX_ITEM_SIZE - item_size(sample._stored)
    sample.blob = b"x" * room
    sample.save()
    assert item_size(sample._stored) == MAX_ITEM_SIZE
    fresh = Sample.objects.get(pk="sample_1")
    fresh.text = "x"
    with pytest.raises(ItemTooLarge, match=str(MAX_ITEM_SIZE)):
        fresh.save()
    fresh = Sample.objects.get(pk="sample_1")
    ((name, value),) = attribute.items()
    setattr(fresh, name, {**value, "b": 1} if isinstance(value, dict) else type(value)([*value, *value, *"bc"]))
    with pytest.raises(ItemTooLarge):
        fresh.save()


def test_missing_document_is_still_required() -> None:
    stock = created()
    stock.data = None
    with pytest.raises(MissingValue):
        stock.save()
