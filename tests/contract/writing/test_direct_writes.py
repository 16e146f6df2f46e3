"""Direct and composed writes have the same requests, objects and errors for random models and values."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dynamo_single import models, transactions
from dynamo_single.exceptions import BulkError, ConfigurationError, Conflict
from dynamo_single.orm.effects import send
from dynamo_single.orm.query import write_by_key
from dynamo_single.orm.requests.actions import key_of
from dynamo_single.orm.requests.compiler import item_key
from dynamo_single.orm.schema import bindings, registry
from dynamo_single.orm.schema.bindings import ModelBinding, Rollout
from dynamo_single.orm.schema.layout import Twin
from dynamo_single.orm.write import create, direct
from dynamo_single.table.request import Request
from dynamo_single.table.table import get_table
from dynamo_single.testing import capture_requests, frozen_time
from tests.catalog.models import Firm
from tests.deep import examples
from tests.rollouts import begin_rollout
from tests.unit.declaring import declare, forgotten
from tests.unit.items.test_writer import KINDS, MOMENTS, ODD, templates

pytestmark = pytest.mark.usefixtures("table")

NOON = datetime.datetime(2025, 5, 1, 12, tzinfo=datetime.UTC)


@st.composite
def written_models(draw: st.DrawFn) -> Any:
    """Draw a model with any of the attributes that direct writes support."""
    kinds = {f"a{number}": kind for number, kind in enumerate(draw(st.lists(st.sampled_from([*KINDS]), max_size=4)))}
    declared: dict[str, Any] = {
        name: KINDS[kind][0](null=True, attr_name=draw(st.sampled_from([None, f"s_{name}"])))
        for name, kind in kinds.items()
    }
    more: dict[str, Any] = {
        "folded": lambda: models.CanonicalAttribute(source="title"),
        "taken": lambda: models.ExtractedAttribute("data__a", models.IntegerAttribute(null=True)),
        "version": models.VersionAttribute,
        "expires": models.TTLAttribute,
        "first": partial(models.UnicodeAttribute, default="x", immutable=True),
        "unique": partial(models.UnicodeAttribute, null=True, unique=True),
    }
    chosen = draw(st.sets(st.sampled_from([*more])))
    declared |= {name: more[name]() for name in sorted(chosen)}
    declared |= {
        "code": models.UnicodeAttribute(),
        "title": models.UnicodeAttribute(blank=True),
        "data": models.MapAttribute(null=True),
        "younger": models.IntegerAttribute(default=3),
    }
    kinds |= {"title": "text", "data": "map"}
    written = [(draw(templates({**kinds, "code": "text"})), draw(templates(kinds))) for _ in range(2)]
    bases = (models.SoftDeleteModel, models.TimestampedModel)
    try:
        keys = {
            f"by_{number}": models.IndexKey(f"gs{number}", f"P{partition}", sort)
            for number, (partition, sort) in enumerate(written, 1)
        }
        number = draw(st.integers(0, 2))
        model = declare("Parcel", ("PARCEL#{code}", "#META"), keys, bases=bases[:number] or (models.Model,), **declared)
        registry.layout_of(model)
    except ConfigurationError:
        assume(False)
    strategies = {name: KINDS[kind][1] for name, kind in kinds.items()} | {"younger": st.integers(0, 3)}
    if "expires" in chosen:
        strategies["expires"] = st.none() | MOMENTS | st.just(NOON + datetime.timedelta(days=1))
    if "first" in chosen:
        strategies["first"] = st.sampled_from(["x", "x", "y"])
    if "version" in chosen:
        strategies["version"] = st.integers(1, 3)
    if "unique" in chosen:
        strategies["unique"] = st.sampled_from(["a", "b", None])
    return model, strategies


#: Writes through a queryset with one key.
BY_KEY: Mapping[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "update": lambda model, values: model.objects.filter(pk="one").update(**values),
    "update all": lambda model, values: model._base_manager.filter(code="one").update(**values),
    "update missing": lambda model, values: model.objects.filter(pk="other").update(**values),
    "remove": lambda model, values: model.objects.filter(pk="one").delete(),
    "erase": lambda model, values: model._base_manager.filter(pk="one").hard_delete(),
}
SAVED = ("set", "set", "set", "touch", "again", "other", "older", "gone", "named", "named", "repeated")
STEPS = st.sampled_from([*SAVED, "delete", "restore", "moved", *BY_KEY, "update", "update"])


def followed(model: Any, steps: list[tuple[str, Mapping[str, Any]]], *, in_blocks: bool = False) -> list[Any]:
    """Return the requests, result or error of each step and the object after it, each in a block with another write."""
    found: list[Any] = []
    obj: Any = None
    with frozen_time(NOON) as time, capture_requests() as sent:
        for number, (step, values) in enumerate(steps):
            time.move(datetime.timedelta(seconds=1))
            del sent[:]
            said = ""
            try:
                with transactions.atomic() if in_blocks else nullcontext():
                    if in_blocks and number % 2:
                        model.objects.create(code=f"beside {number}", title="first")
                    if step in BY_KEY:
                        said = f"returned {BY_KEY[step](model, values)}"
                    else:
                        obj = done(model, obj, step, values)
            except Exception as error:
                said = f"{type(error).__name__}: {error}"
            requests = [(each.operation, unrepeated(dict(each.params))) for each in sent]
            # The item of an object is bytes until it is used, in an order that the engine chooses each time.
            state = {} if obj is None else {**vars(obj), "_stored": obj._stored}
            state.pop("_state", None)
            found.append((step, said, requests, repr(in_order(state))))
    return found


def done(model: Any, obj: Any, step: str, values: Mapping[str, Any]) -> Any:
    """Carry a step out, and give the object."""
    if step == "create":
        return model.objects.create(code="one", **values)
    for name, value in values.items() if step in ("set", "named") else ():
        setattr(obj, name, value)
    if step == "again":
        obj = model._base_manager.get(pk="one")
        obj.__dict__["data"] = in_order(obj.__dict__["data"])
    elif step == "other":
        get_table().send(_other(obj, "SET #t = :t", "title", {":t": {"S": "from elsewhere"}}))
        obj.title = "from here"
        obj.save()
    elif step == "older":
        # Its item is older than the attribute, of which it shows the default.
        get_table().send(_other(obj, "REMOVE #t", "younger"))
        obj = model._base_manager.get(pk="one")
        obj.title = "of a younger model"
        obj.save()
    elif step == "gone":
        get_table().send(Request("DeleteItem", {"Key": item_key(("PARCEL#one", "#META"))}))
        obj.save()
    elif step in ("named", "repeated"):
        obj.save(update_fields=list(values))
    elif step == "moved":
        get_table().send(_other(obj, "SET movedFrom = :t, #t = :t", "title", {":t": {"S": "elsewhere"}}))
    elif step in ("delete", "restore"):
        getattr(obj, step)()
    else:
        obj.save()
    return obj


def _other(obj: Any, change: str, name: str, values: Mapping[str, Any] | None = None) -> Request:
    """Another writer's change of an attribute."""
    params = {
        "Key": item_key(("PARCEL#one", "#META")),
        "UpdateExpression": change,
        "ExpressionAttributeNames": {"#t": registry.layout_of(type(obj)).attributes[name].stored},
    }
    return Request("UpdateItem", params | ({"ExpressionAttributeValues": values} if values else {}))


def unrepeated(params: Any) -> Any:
    """Return a request without its random token and with normalized placeholders.

    An engine returns attributes in any order, and a request removes them in that order.
    """
    if isinstance(params, list):
        return [unrepeated(each) for each in params]
    if not isinstance(params, dict):
        return params
    stand_for = {**params.get("ExpressionAttributeNames", {}), **params.get("ExpressionAttributeValues", {})}
    found = {name: unrepeated(value) for name, value in params.items() if name != "ClientRequestToken"}
    if not stand_for:
        return in_order(found)
    expressions = {name: found.pop(name) for name in sorted(found) if name.endswith("Expression")}

    def said(part: str) -> str:
        return re.sub(r"[#:][av][0-9]+", lambda mark: repr(in_order(stand_for[mark[0]])), part.strip())

    for name, text in expressions.items():
        clauses = re.split(r"(SET|REMOVE|ADD|DELETE| AND )", text)
        found[name] = [sorted(map(said, clause.split(", "))) for clause in clauses]
    return in_order({name: value for name, value in found.items() if not name.startswith("ExpressionAttribute")})


def in_order(value: Any) -> Any:
    """A value with the keys of its maps, and the members of its sets, in order."""
    if isinstance(value, dict) and len(value) == 1 and not {"SS", "NS", "BS"}.isdisjoint(value):
        return {kind: sorted(members) for kind, members in value.items()}
    if isinstance(value, dict):
        return {name: in_order(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [in_order(each) for each in value]
    return sorted(value) if isinstance(value, set) else value


def emptied() -> None:
    """Empty the table."""
    table = get_table()
    for page in table.pages(Request("Scan", {})):
        for item in page["Items"]:
            table.send(Request("DeleteItem", {"Key": {name: item[name] for name in ("pk", "sk")}}))


@pytest.mark.parametrize("in_blocks", [False, True])
@settings(max_examples=examples(12, 1500))
@given(st.data())
def test_direct_writes_are_as_composed(in_blocks: bool, data: st.DataObject) -> None:
    """This includes concurrent writes by other processes, and rejected writes."""
    with forgotten(), pytest.MonkeyPatch.context() as patch:
        model, strategies = data.draw(written_models())
        usually = st.integers(0, 9)

        def given_values(fewest: int = 0) -> Mapping[str, Any]:
            chosen = data.draw(st.sets(st.sampled_from([*strategies]), min_size=fewest, max_size=2))
            return {name: data.draw(strategies[name] if data.draw(usually) else ODD) for name in sorted(chosen)}

        steps = [("create", {"title": "first", **given_values()})]
        for step in data.draw(st.lists(STEPS, min_size=2, max_size=8)):
            # Keys do not depend on it, so that an update needs nothing else.
            is_independent = step.startswith("update") and data.draw(st.booleans())
            steps.append((step, {"younger": data.draw(st.integers(0, 3))} if is_independent else given_values(1)))
        emptied()
        found = followed(model, steps, in_blocks=in_blocks)
        emptied()
        patch.setattr(direct, "direct_writes", lambda binding: None)
        patch.setattr(create, "item_writer", lambda binding: None)
        patch.setattr(write_by_key, "writes_by_key", lambda binding, visibility: None)
        for one, other in zip(found, followed(model, steps, in_blocks=in_blocks), strict=True):
            assert one == other


RENAME = Rollout((Twin("name", "title", is_before=True),))


@pytest.mark.parametrize("write", ["save", "create"])
def test_write_is_composed_again_by_the_names_of_now(monkeypatch: pytest.MonkeyPatch, write: str) -> None:
    """A write is composed again if a rename starts after it has taken its binding and before it is sent."""
    firm = Firm.objects.create(firm_id="f", name="Before", stock="F")
    found = direct.direct_writes

    def begun(binding: ModelBinding) -> Any:
        known = found(binding)
        begin_rollout(Firm, RENAME)
        return known

    monkeypatch.setattr(direct, "direct_writes", begun)
    try:
        if write == "save":
            firm.name = "Now"
            firm.save()
        else:
            firm = Firm.objects.create(firm_id="g", name="Now", stock="F")
        stored = get_table().send(Request("GetItem", {"Key": item_key(key_of(firm._stored))}))["Item"]
    finally:
        bindings.forget_states()
    assert (stored["name"], stored["title"]) == ({"S": "Now"}, {"S": "Now"})


def test_block_asks_about_a_model_once_and_when_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of writes does not matter."""
    firms = [Firm.objects.create(firm_id=code, name="Before", stock="F") for code in "ab"]
    asked: list[Any] = []
    known = bindings.binding_if_known

    def asking(model: Any, table: object) -> Any:
        asked.append(model)
        return known(model, table)

    monkeypatch.setattr(bindings, "binding_if_known", asking)
    with transactions.atomic():
        for firm in firms:
            firm.name = "Now"
            firm.save()
        Firm.objects.create(firm_id="c", name="New", stock="F")
        Firm(firm_id="d", name="New", stock="F").save()
    assert asked == [Firm, Firm]


def test_block_learns_of_a_rename_when_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The block may be older than its process's knowledge of the table."""
    found = bindings.binding_if_known
    with pytest.raises(Conflict, match="since the block wrote"), transactions.atomic():
        Firm.objects.create(firm_id="f", name="Now", stock="F")

        async def ask(model: Any) -> ModelBinding:
            begin_rollout(Firm, RENAME)
            return bindings.binding_of(model)

        monkeypatch.setattr(bindings, "binding_if_known", lambda model, table: None)
        monkeypatch.setattr(send.knowledge, "binding_for", ask)
    monkeypatch.setattr(bindings, "binding_if_known", found)
    bindings.forget_states()
    assert not get_table().send(Request("Scan", {}))["Count"]


@pytest.mark.parametrize("way", ["block", "bulk"])
def test_block_is_refused_after_a_rename_begins(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """Its composed writes have the former names. A retry uses the new ones."""
    firms = [Firm(firm_id=code, name="New", stock="F") for code in "ab"]
    send_block = send.send_block

    async def begun(block: Any) -> None:
        begin_rollout(Firm, RENAME)
        await send_block(block)

    def write() -> None:
        if way == "bulk":
            Firm.objects.bulk_create(firms, in_transactions=True)
            return
        with transactions.atomic():
            for firm in firms:
                firm.save()

    try:
        with monkeypatch.context() as patch:
            patch.setattr(send, "send_block", begun)
            with pytest.raises((Conflict, BulkError)):
                write()
        assert not get_table().send(Request("Scan", {}))["Count"]
        write()
        found = get_table().send(Request("Scan", {}))["Items"]
    finally:
        bindings.forget_states()
    assert [item["title"] for item in found] == [{"S": "New"}] * 2


def test_foreign_item_without_a_type_gets_it() -> None:
    """A save writes the type, whichever program has created the item."""
    firm = Firm.objects.create(firm_id="f", name="Firm", stock="F")
    firm._stored = {name: value for name, value in firm._stored.items() if name != "itemType"}
    firm.name = "Changed"
    with capture_requests() as sent:
        firm.save()
    assert {"S": "Firm"} in sent[0].params["ExpressionAttributeValues"].values()
