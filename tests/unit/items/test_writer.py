"""The compiled writer gives the item that ``ItemForm`` gives, or leaves it to that."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Mapping
from decimal import Decimal
from itertools import count
from typing import Any

import pytest
from django.db.models import F
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dynamo_single import models
from dynamo_single.exceptions import ConfigurationError, InvalidValue
from dynamo_single.orm.items.encode import check_trash_key, item_from
from dynamo_single.orm.items.form import form_of
from dynamo_single.orm.items.writer import item_writer
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.bindings import binding_of
from dynamo_single.orm.schema.keys.values import item_size
from dynamo_single.table import names
from tests.deep import examples
from tests.unit.declaring import declare, forgotten

#: Characters that keys escape, separators, and characters with several bytes.
TEXTS = st.text(st.sampled_from("abxyXY09 #$!%~|-_.:é😀\U0010ffff\x00"), max_size=6)
LONG = st.sampled_from(["x" * 400, "é" * 300, "#" * 200, "a b" * 300])
MOMENTS = st.datetimes(
    datetime.datetime(1960, 1, 1),
    datetime.datetime(2040, 1, 1),
    timezones=st.sampled_from([datetime.UTC] * 4 + [datetime.timezone(datetime.timedelta(hours=2))]),
)
#: Values that some attributes reject, and others normalize.
ODD: st.SearchStrategy[Any] = st.sampled_from(
    ["\ud800", "", 1.5, Decimal("1.0"), b"x", F("other"), [], {"a": 1}, {"a"}, object(), 10**40, "12", True, None]
)
KINDS: dict[str, tuple[type, st.SearchStrategy[Any]]] = {
    "text": (models.UnicodeAttribute, TEXTS | LONG),
    "integer": (models.IntegerAttribute, st.integers(-(10**20), 10**20) | st.integers(-999, 999)),
    "decimal": (models.DecimalAttribute, st.decimals(-100, 100, places=2) | st.decimals(-(10**14), 10**14)),
    "flag": (models.BooleanAttribute, st.booleans()),
    "moment": (models.TimestampAttribute, MOMENTS),
    "day": (models.DateAttribute, st.dates()),
    "unique": (models.UUIDAttribute, st.uuids()),
    "map": (models.MapAttribute, st.dictionaries(st.sampled_from("abc"), st.integers() | TEXTS)),
    "set": (models.UnicodeSetAttribute, st.sets(st.sampled_from("abc"), min_size=1)),
}
IN_KEYS = ("text", "integer", "flag", "moment", "day", "unique")
LITERALS = st.sampled_from(["#", "#A#", "|", "~", "_", "-B"])
_numbers = count()


@st.composite
def templates(draw: st.DrawFn, attributes: Mapping[str, str]) -> str:
    """Draw a template of a key."""
    usable = [name for name, kind in attributes.items() if kind in IN_KEYS]
    chosen = draw(st.lists(st.sampled_from(usable), max_size=2, unique=True))
    text: str = draw(LITERALS)
    for name in chosen:
        formats = {"text": ["", ":canonical", ":first"], "integer": ["", ":08d", ":last"]}.get(attributes[name], [""])
        text += f"{{{name}{draw(st.sampled_from(formats))}}}{draw(LITERALS)}"
    return text


@st.composite
def plain_models(draw: st.DrawFn) -> Any:
    """A model of any attributes and keys that an item can have."""
    kinds = {f"a{number}": kind for number, kind in enumerate(draw(st.lists(st.sampled_from([*KINDS]), max_size=5)))}
    declared: dict[str, Any] = {
        name: KINDS[kind][0](null=draw(st.booleans()), blank=True, attr_name=draw(st.sampled_from([None, f"s_{name}"])))
        for name, kind in kinds.items()
    }
    identity = draw(st.sampled_from(["{code}", "{code:canonical}", "{code}|x", "{code}#{number}", "{number:08d}"]))
    declared |= {"code": models.UnicodeAttribute(), "number": models.IntegerAttribute(null=draw(st.booleans()))}
    kinds |= {"code": "text", "number": "integer"}
    bases: tuple[type, ...] = (models.SoftDeleteModel,) if draw(st.booleans()) else (models.Model,)
    if draw(st.booleans()):
        declared["folded"] = models.CanonicalAttribute(source="code")
    label = f"Written{next(_numbers)}"
    written = [(draw(templates(kinds)), draw(templates(kinds))) for _ in range(draw(st.integers(0, 2)))]
    try:
        keys = {
            f"by_{number}": models.IndexKey(f"gs{number}", f"{label}#{partition}", sort)
            for number, (partition, sort) in enumerate(written, 1)
        }
        model = declare(label, (f"{label}#{identity}", "#META"), keys, bases=bases, **declared)
        binding_of(model)
    except ConfigurationError:
        assume(False)
    return model, {**{name: KINDS[kind][1] for name, kind in kinds.items()}}


def by_hand(model: Any, values: Mapping[str, Any]) -> Any:
    """Return ``ItemForm``'s result for an object's values."""
    form = form_of(model)
    prepared = form.prepared(dict(values), None)
    form.check_whole(prepared)
    return prepared, item_from(model, prepared)


def check_alike(model: Any, values: Mapping[str, Any]) -> bool:
    """Compare the two; whether the writer has written."""
    writer = item_writer(model)
    if writer is None:
        return False
    try:
        prepared, item, size = writer.whole(values)
    except Exception:
        return False
    expected, by_form = by_hand(model, values)
    assert repr([*prepared.items()]) == repr([*expected.items()])
    assert [*item.items()] == [*by_form.items()]
    assert size == item_size(item)
    key = item[names.PARTITION_KEY]["S"] + item[names.SORT_KEY]["S"]
    if key.isascii() and len(key) <= writer.longest:
        check_trash_key(model, prepared)
    return True


@settings(max_examples=examples(40, 3000))
@given(st.data())
def test_any_model_is_written_alike(data: st.DataObject) -> None:
    """This includes the order of the item's attributes, which a request contains."""
    with forgotten():
        model, strategies = data.draw(plain_models())
        moment = st.none() | MOMENTS
        strategies |= {name: moment for name in ("deleted_at",) if name in registry.attributes_of(model)}
        for _ in range(4):
            values = {
                name: data.draw(each if data.draw(st.integers(0, 9)) else ODD) for name, each in strategies.items()
            }
            check_alike(model, {"deleted_at": None, "deleted_with": None, "folded": None, **values})


def usual(attribute: Any) -> Any:
    """A value that an attribute takes."""
    kinds = {
        models.TimestampAttribute: datetime.datetime(2025, 5, 1, tzinfo=datetime.UTC),
        models.DateAttribute: datetime.date(2025, 5, 1),
        models.UUIDAttribute: uuid.UUID(int=1),
    }
    values = {"N": 7, "BOOL": True, "M": {"a": 1}, "L": ["a"], "SS": {"a"}, "NS": {1}, "B": b"a"}
    own = (value for kind, value in kinds.items() if isinstance(attribute, kind))
    return next(own, values.get(attribute.attr_type, "a"))


def is_written(model: Any) -> bool:
    """Return whether the writer writes a model's usual values."""
    attributes = registry.attributes_of(model)
    return check_alike(
        model, {name: None if each.null and not each.computed else usual(each) for name, each in attributes.items()}
    )


def test_most_models_are_written_by_it() -> None:
    """All of the demo's but those whose keys are in shards."""
    labels = {"accounts", "directory", "records", "service", "chat", "dynamo_single"}
    demo = [model for model in registry.all_models() if model._meta.app_label in labels and not model._meta.proxy]
    left = {model._meta.label for model in demo if not is_written(model)}
    assert left == {"service.User", "service.Email"}
    assert len(demo) - len(left) >= 18


@pytest.mark.parametrize("value", ["\ud800", F("text"), 1, object()])
def test_odd_text_is_left_to_the_form(value: Any) -> None:
    """The form rejects or resolves it."""
    with forgotten():
        model = declare("Oddity", ("ODDITY#{text}", "A"), text=models.UnicodeAttribute())
        writer = item_writer(model)
        assert writer is not None
        with pytest.raises(Exception):  # noqa: B017 - any, which nobody sees
            writer.whole({"text": value})
        with pytest.raises(InvalidValue):
            by_hand(model, {"text": value})


class MinuteAttribute(models.TimestampAttribute[Any]):
    """A custom datetime truncated to the minute."""

    def floor(self, value: datetime.datetime) -> datetime.datetime:
        return super().floor(value).replace(second=0, microsecond=0)


def test_moment_of_a_project_is_cut_off_by_it() -> None:
    moment = datetime.datetime(2025, 5, 1, 12, 30, 45, tzinfo=datetime.UTC)
    with forgotten():
        model = declare("Shift", ("SHIFT#{text}", "A"), text=models.UnicodeAttribute(), begins=MinuteAttribute())
        assert check_alike(model, {"text": "a", "begins": moment})
