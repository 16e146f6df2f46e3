"""Results of a whole page equal those of its separate items, or there are none."""

from __future__ import annotations

import pickle
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dynamo_single import models
from dynamo_single.exceptions import InvalidValue, UnexpectedItem
from dynamo_single.orm.items import decode
from dynamo_single.orm.items.page_readers import PageReader, objects_reader
from dynamo_single.orm.items.stored import PartialBytes
from dynamo_single.orm.plan.plan import PartialItem
from dynamo_single.orm.results.columns import as_dict, as_named_tuple, as_tuple, as_value, columns
from dynamo_single.orm.schema import registry
from dynamo_single.table import answers
from dynamo_single.table.answers import item_of
from tests.catalog.models import Order, Sample
from tests.contract.model.test_round_trip import VALUES
from tests.unit.declaring import declare, forgotten
from tests.unit.items.test_readers import STORED

HEAD = {"content-type": answers.CONTENT_TYPE + "0"}
ATTRIBUTES = registry.attributes_of(Sample)
#: Values of any type for known and unknown attributes, often of another model.
ITEMS = st.fixed_dictionaries(
    {"itemType": st.sampled_from([{"S": "Sample"}] * 9 + [{"S": "Other"}, {"N": "1"}])},
    optional={**{each.attr_name: STORED for each in ATTRIBUTES.values()}, "elsewhere": STORED},
)
#: As this app writes them.
USUAL = st.fixed_dictionaries({}, optional=VALUES).map(
    lambda values: {
        "itemType": {"S": "Sample"},
        "elsewhere": {"M": {"a": {"N": "1"}}},
        **{ATTRIBUTES[name].attr_name: ATTRIBUTES[name].to_attribute_value(each) for name, each in values.items()},
    }
)
PAGES = st.lists(ITEMS, max_size=3) | st.lists(USUAL, max_size=3)
SHAPES = st.sampled_from([as_dict, as_tuple, as_value, as_named_tuple])


def typed(reader: PageReader | None, items: list[Any]) -> list[Any] | None:
    """Return the items of a response in the reader's form."""
    assert reader is not None
    found = reader.form.decoded(msgspec.json.encode({"Items": items, "Count": len(items), "ScannedCount": len(items)}))
    return None if found is None else found["Items"]


def made(reader: PageReader | None, items: list[Any], model: Any = Sample) -> list[Any] | None:
    """Return the reader's result for a page; ``None`` if it leaves it to others."""
    assert reader is not None
    found = typed(reader, items)
    return None if found is None else decode.page_objects(reader, found)


def outcome(read: Any, *arguments: Any) -> str:
    """The results with their types, or the refusal."""
    try:
        return repr(read(*arguments))
    except (InvalidValue, UnexpectedItem) as error:
        return f"refused: {type(error)}"


def state_of(obj: Any) -> tuple[Any, ...]:
    """All that an object is."""
    return (
        obj._stored,
        type(obj._stored),
        sorted(getattr(obj._stored, "names", ())),
        # Django 6.1 creates the cache of relations on first access.
        {name: value for name, value in vars(obj._state).items() if (name, value) != ("fields_cache", {})},
        {name: value for name, value in vars(obj).items() if name != "_state"},
    )


@given(PAGES, st.lists(st.sampled_from([*sorted(ATTRIBUTES), "pk"]), min_size=1, unique=True), SHAPES)
def test_rows_of_a_page_are_those_of_its_items(items: list[Any], names: list[str], shape: Any) -> None:
    """For each type of attribute, each stored form and each shape of a row."""
    asked = columns(Sample, names, {}, shape)
    expected = outcome(lambda: list(map(asked.reader(Sample), items)))
    found = made(asked.page_reader(Sample), items)
    assert found is None or repr(found) == expected


@given(PAGES)
def test_objects_of_a_page_are_those_of_its_items(items: list[Any]) -> None:
    """This includes stored values, hidden values, and the type of each value."""
    expected = outcome(lambda: [state_of(decode.instance(Sample, item)) for item in items])
    found = made(objects_reader(Sample, ()), items)
    assert found is None or repr([state_of(each) for each in found]) == expected


@given(PAGES, st.sets(st.sampled_from(sorted(each.attr_name for each in ATTRIBUTES.values()))))
def test_objects_that_are_read_in_part_are_those_of_their_items(items: list[Any], read: set[str]) -> None:
    """They have the loaded attributes, and know them."""
    names = {"pk", "sk", "itemType", *read}
    parts = [{name: value for name, value in item.items() if name in names} for item in items]
    expected = outcome(lambda: [state_of(decode.instance(Sample, PartialItem(each, names))) for each in parts])
    found = made(objects_reader(Sample, tuple(names)), parts)
    assert found is None or repr([state_of(each) for each in found]) == expected


@given(st.lists(USUAL, max_size=3), st.lists(st.sampled_from(sorted(ATTRIBUTES)), min_size=1, unique=True))
@example([{"itemType": {"S": "Sample"}, "integer": {"N": "-" + "9" * 38}}], ["integer"])
def test_what_this_app_writes_is_read_page_by_page(items: list[Any], names: list[str]) -> None:
    """The exception is a document next to binary values, which JSON cannot contain."""
    documents = any(ATTRIBUTES[name].attr_type in "ML" for name in names)
    found = made(columns(Sample, names, {}, as_tuple).page_reader(Sample), items)
    assert (found is not None) or (documents and b'"B' in msgspec.json.encode(items))


@pytest.mark.parametrize(
    "stored",
    [
        {"itemType": {"S": "Order"}, "number": {"S": "1"}},
        {"itemType": {"S": "Order"}, "number": {"N": "x"}},
        {"itemType": {"S": "Order"}, "status": {"NULL": True}},
        {"itemType": {"S": "Order"}, "status": {"S": 1}},
        {"itemType": {"S": "Order"}, "status": "open"},
        {"itemType": {"S": "Other"}},
        {},
    ],
    ids=str,
)
def test_a_page_with_an_item_that_is_not_as_usual_is_left_to_others(stored: Any) -> None:
    items = [{"itemType": {"S": "Order"}}, stored]
    assert made(columns(Order, ["number", "status"], {}, as_tuple).page_reader(Order), items, Order) is None
    assert made(objects_reader(Order, ()), items, Order) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"Items":[]}',
        b'{"Items":{},"Count":0,"ScannedCount":0}',
        b'{"Items":[],"Count":1,"ScannedCount":1}',
        b'{"Items":[],"Count":"0","ScannedCount":0}',
        b'{"Items":[],"Count":0,"ScannedCount":0,"LastEvaluatedKey":1}',
        b'{"Items":[1],"Count":1,"ScannedCount":1',
        b'{"Items":[{"other":{"S":"\xff"}}],"Count":1,"ScannedCount":1}',
        b'{"Items":[{"other":' + b"[" * 9999 + b"]" * 9999 + b'}],"Count":1,"ScannedCount":1}',
    ],
    ids=range(10),
)
def test_what_is_no_page_is_no_answer(body: bytes) -> None:
    """This includes errors outside the attributes."""
    for reader in (objects_reader(Order, ()), columns(Order, ["number"], {}, as_tuple).page_reader(Order)):
        assert reader is not None
        with pytest.raises(answers.InvalidResponse):
            answers.read("Query", {}, 200, HEAD, body, capacity=False, decoder=reader.form)


@pytest.mark.parametrize(
    "body", [b'{"Responses":{}}', b'{"UnprocessedKeys":{}}', b'{"Responses":[],"UnprocessedKeys":{}}']
)
def test_what_is_no_batch_is_no_answer(body: bytes) -> None:
    """It must contain the requested table."""
    reader = objects_reader(Order, (), keyed=True)
    assert reader is not None
    for content in (body, b'{"Responses":{},"UnprocessedKeys":{}}'):
        with pytest.raises(answers.InvalidResponse):
            asked = {"RequestItems": {"table": {}}}
            answers.read("BatchGetItem", asked, 200, HEAD, content, capacity=False, decoder=reader.form)


@given(PAGES)
def test_objects_of_a_batch_come_with_their_keys(items: list[Any]) -> None:
    """The keys determine their order."""
    keyed = [{**item, "pk": {"S": "a"}, "sk": {"S": str(number)}} for number, item in enumerate(items)]
    reader = objects_reader(Sample, (), keyed=True)
    assert reader is not None
    answer = reader.form.decoded(msgspec.json.encode({"Responses": {"t": keyed}, "UnprocessedKeys": {}}))
    found = None if answer is None else decode.page_objects(reader, answer["Responses"]["t"])
    expected = outcome(lambda: [state_of(decode.instance(Sample, item)) for item in keyed])
    assert found is None or [key for key, _ in found] == [("a", str(number)) for number in range(len(keyed))]
    assert found is None or repr([state_of(each) for _, each in found]) == expected


def test_an_item_is_held_as_bytes_of_its_own() -> None:
    """A part of the page would keep all of it."""
    (obj,) = made(objects_reader(Order, ()), [{"itemType": {"S": "Order"}, "number": {"N": "5"}}], Order) or ()
    assert vars(obj)["_stored"] == b'{"itemType":{"S":"Order"},"number":{"N":"5"}}'
    assert obj._stored == {"itemType": {"S": "Order"}, "number": {"N": "5"}}
    assert obj._stored is obj._stored


def test_objects_can_be_pickled_before_and_after_their_item_was_looked_at() -> None:
    items = [{"itemType": {"S": "Order"}, "number": {"N": "5"}}]
    for read in ((), ("itemType", "number")):
        (obj,) = made(objects_reader(Order, read), items, Order) or ()
        before = pickle.loads(pickle.dumps(obj))
        assert before._stored == obj._stored
        assert type(before._stored) is type(obj._stored)
        assert pickle.loads(pickle.dumps(obj))._stored == obj._stored
    assert isinstance(vars(before)["_stored"], PartialItem)
    held = pickle.loads(pickle.dumps(PartialBytes(b"{}", frozenset({"pk"}))))
    assert (held.text, held.names) == (b"{}", {"pk"})


def test_a_model_whose_names_json_would_escape_is_read_item_by_item() -> None:
    with forgotten():
        quoted = declare("Quoted", ("QUOTED#{key}", "#METADATA"), key=models.UnicodeAttribute(attr_name='a"b'))
        assert objects_reader(quoted, ()) is None
        assert columns(quoted, ["key"], {}, as_tuple).page_reader(quoted) is None


@given(st.dictionaries(st.text(max_size=3), STORED, max_size=4))
def test_the_text_of_an_item_says_all_of_it(item: dict[str, Any]) -> None:
    """Binary values too, wherever they are."""
    assert repr(item_of(msgspec.json.encode(item))) == repr(item)
