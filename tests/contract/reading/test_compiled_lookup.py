"""``get()`` by a compiled lookup sends, finds and raises what the careful way does, whatever the model and the item."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.db.models.signals import post_init
from django.utils.safestring import mark_safe
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from dynamo_single import models
from dynamo_single.exceptions import InvalidValue
from dynamo_single.models import QuerySet
from dynamo_single.orm.query import get
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.bindings import binding_if_known
from dynamo_single.orm.schema.fields.base import TextField
from dynamo_single.table import Table
from dynamo_single.table.flow import run
from dynamo_single.table.request import Request
from dynamo_single.table.table import get_table
from dynamo_single.testing import capture_requests
from tests.deep import examples
from tests.unit.declaring import declare, forgotten

ATTRIBUTES = {
    "text": models.UnicodeAttribute,
    "identifier": models.IdAttribute,
    "number": models.IntegerAttribute,
    "decimal": models.DecimalAttribute,
    "uuid": models.UUIDAttribute,
    "day": models.DateAttribute,
    "moment": models.TimestampAttribute,
}
VALUES: dict[str, list[Any]] = {
    "text": ["a", "a b", "a#b", "x", "", "äx~", "\ud800", "e" * 2040, mark_safe("a"), "b1", "METADATA"],
    "identifier": ["id-1", "$", "id 1", "x" * 1100],
    "number": [0, 1, -1, 10**37, "1", "01", True, 1.0, 10**200],
    "decimal": [Decimal("1.50"), Decimal("-0"), 1, "1.5", Decimal("1E+5"), 1.5],
    "uuid": [UUID(int=1), str(UUID(int=1)), "x"],
    "day": [date(2026, 1, 2), "2026-01-02", datetime(2026, 1, 2, 3, tzinfo=UTC)],
    "moment": [datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC), datetime(2026, 1, 2, 3, 4, 5, 1, tzinfo=UTC), "x"],
}
ANY = [None, 1, "~~", "a~~1", b"a", ["a"], object()]
#: Changes of a stored item, by stored names.
STATES: dict[str, dict[str, Any]] = {
    "as it was stored": {},
    "in the trash": {"deletedAt": {"S": "2026-01-02T03:04:05.000Z"}},
    "with a null moment": {"deletedAt": {"NULL": True}},
    "of another type": {"itemType": {"S": "Other"}},
    "of no type": {"itemType": None},
    "with an odd type": {"itemType": {"N": "1"}},
    "with an attribute of another kind": {"note": {"N": "1"}},
    "with a null attribute": {"note": {"NULL": True}},
    "without an attribute": {"note": None, "count": None},
    "with a long number": {"count": {"N": "1E+3"}},
    "with something else": {"extra": {"L": []}},
}


class Careful(QuerySet[Any]):
    """A custom queryset, so that ``get()`` works like ``filter()``."""

    def filter(self, *args: Any, **kwargs: Any) -> Any:
        return super().filter(*args, **kwargs)


@pytest.fixture
def neighbours(table: Table) -> Iterator[None]:
    """Models are forgotten, and one is there whose items may have the keys of others."""
    with forgotten():
        declare("Near", ("{a}", "{b}"), a=models.UnicodeAttribute(), b=models.UnicodeAttribute())
        yield


@st.composite
def declared(draw: st.DrawFn) -> tuple[Any, list[str]]:
    """Draw a model, with the kinds of its identity."""
    kinds = draw(st.lists(st.sampled_from([*ATTRIBUTES]), min_size=1, max_size=2))
    names = [f"{kind}{place}" for place, kind in enumerate(kinds)]
    first = draw(st.sampled_from(["M#{%s}", "{%s}", "M{%s}~", "M#{%s}#T"])) % names[0]
    rest = "#".join(f"{{{name}}}" for name in names[1:])
    sort = draw(st.sampled_from(["S#%s", "%s", "%s#END"])) % rest if rest else "#METADATA"
    bases = draw(st.sampled_from([(models.Model,), (models.SoftDeleteModel,)]))
    more: dict[str, Any] = {"gone_at": models.TTLAttribute(null=True)} if draw(st.integers(0, 9)) == 0 else {}
    own = {name: ATTRIBUTES[kind]() for name, kind in zip(names, kinds, strict=True)}
    keys = {"by_note": models.IndexKey("gs1", "NOTES", "{note}")}
    more |= {"note": models.UnicodeAttribute(default="n"), "count": models.NumberAttribute(null=True)}
    return declare("Drawn", (first, sort), keys, bases=bases, **own, **more), kinds


def outcome(queryset: Any, given: dict[str, Any]) -> Any:
    """Return the requests of ``get()``, and its result or error."""
    with capture_requests() as sent:
        try:
            found = queryset.get(**given)
        except Exception as error:
            result: Any = type(error), str(error), type(error.__cause__), type(error.__context__)
        else:
            values = {name: value for name, value in vars(found).items() if name not in ("_state", "_stored")}
            result = type(found), list(values.items()), vars(found._state), found._stored
    return result, [(each.operation, list(each.params.items())) for each in sent]


def stored_as(model: Any, values: dict[str, Any], state: dict[str, Any]) -> None:
    """Store an object and change its item; an invalid one is not stored."""
    try:
        made = model.objects.create(**values)
    except Exception:
        return
    item = {**made._stored, **{name: value for name, value in state.items() if value is not None}}
    item = {name: value for name, value in item.items() if not (name in state and state[name] is None)}
    get_table().send(Request("PutItem", {"Item": item}))


@pytest.mark.usefixtures("neighbours")
@settings(max_examples=examples(12, 600), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_both_ways_give_the_same(data: st.DataObject) -> None:
    """Random models, keys and states of items."""
    with forgotten():
        model, kinds = data.draw(declared())
        names = [*model._identity]
        values = {name: data.draw(st.sampled_from(VALUES[kind])) for name, kind in zip(names, kinds, strict=True)}
        state = data.draw(st.sampled_from([*STATES]))
        stored_as(model, values, STATES[state])
        visibilities = ["live", "all", "deleted"] if issubclass(model, models.SoftDeleteModel) else ["live"]
        ways = [QuerySet(model), Careful(model)]
        for _ in range(2):
            run(knowledge.ask(registry.layout_of(model)))

        asked = data.draw(st.sampled_from(["identity", "pk", "something"]))
        given = {"pk": data.draw(st.sampled_from(ANY))}
        if asked == "identity":
            given = {**values, **data.draw(st.dictionaries(st.sampled_from(names), st.sampled_from(ANY), max_size=1))}
        elif asked == "pk":
            given = {"pk": "~~".join(map(str, values.values())) if len(names) > 1 else values[names[0]]}
        note(f"{model._options.primary} {state} {given}")
        assert binding_if_known(model, get_table())
        for visibility in visibilities:
            for consistent in (False, True):
                asking = [each.with_visibility(visibility) for each in ways]
                asking = [each.consistent() for each in asking] if consistent else asking
                assert outcome(asking[0], given) == outcome(asking[1], given)


@pytest.fixture
def memo(table: Table) -> Iterator[Any]:
    """Return a plain model with a trash and a compiled lookup."""
    with forgotten():
        model = declare(
            "Memo",
            ("MEMO#{memo_id}", "#METADATA"),
            bases=(models.SoftDeleteModel,),
            memo_id=models.IdAttribute(),
            text=models.UnicodeAttribute(default="t"),
        )
        model.objects.create(memo_id="m1")
        for _ in range(2):
            model.objects.get(pk="m1")
        yield model


@pytest.mark.parametrize("visibility", ["live", "deleted", "all"])
def test_plain_model_has_a_lookup(memo: Any, visibility: Any) -> None:
    assert get.lookup(memo, visibility, False) is not None
    assert binding_if_known(memo, get_table())


def test_object_that_expires_has_no_lookup(memo: Any) -> None:
    """The result depends on the time."""
    ticket = declare("Pass", ("PASS#{code}", "#M"), code=models.UnicodeAttribute(), gone_at=models.TTLAttribute())
    assert get.lookup(ticket, "live", False) is None


def test_listener_hears_of_each_object(memo: Any) -> None:
    heard: list[Any] = []

    def hear(**told: Any) -> None:
        heard.append(told["instance"].pk)

    post_init.connect(hear, sender=memo)
    try:
        memo.objects.get(pk="m1")
    finally:
        post_init.disconnect(hear, sender=memo)
    assert heard == ["m1"]


class LowerAttribute(models.UnicodeAttribute[Any]):
    """A custom string attribute with lookups in lower case."""

    def lookup_value(self, value: object) -> object:
        return str(value).lower()


class LowerField(TextField):
    """A field of a project, which does the same."""

    def get_prep_value(self, value: object) -> object:
        return str(value).lower()


class LowerFieldAttribute(models.UnicodeAttribute[Any]):
    field_class = LowerField


@pytest.mark.parametrize("attribute", [LowerAttribute, LowerFieldAttribute])
def test_get_takes_the_lookup_value_of_a_project(memo: Any, attribute: Any) -> None:
    model = declare("Tag", ("TAG#{word}", "#METADATA"), word=attribute())
    model.objects.create(word="blue")
    assert model.objects.get(pk="BLUE").word == "blue"


class CodeAttribute(models.UnicodeAttribute[Any]):
    """A custom string attribute that rejects a value as late as possible."""

    def encode(self, value: str) -> str:
        if value == "none":
            raise InvalidValue("There is no such code.")
        return value


@pytest.mark.parametrize("way", ["get", "filter"])
def test_value_that_a_project_cannot_store_is_refused(memo: Any, way: str) -> None:
    """``create()`` raises the same error, for a complete key and for an index."""
    keys = {"by_kind": models.IndexKey("gs1", "KIND#{kind}", "{code}")}
    model = declare("Part", ("PART#{code}", "#M"), keys, code=CodeAttribute(), kind=CodeAttribute())
    with pytest.raises(InvalidValue, match="There is no such code"):
        model.objects.get(pk="none") if way == "get" else list(model.objects.filter(kind="none"))


def test_proxy_gives_its_own_objects(memo: Any) -> None:
    meta: Any = type("Meta", (), {"app_label": "catalog", "proxy": True})
    proxy: Any = type(models.Model)("MemoProxy", (memo,), {"__module__": __name__, "Meta": meta})
    for _ in range(3):
        assert type(proxy.objects.get(pk="m1")) is proxy
