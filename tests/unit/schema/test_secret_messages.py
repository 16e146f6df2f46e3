"""Secrets are in no message of an operation that takes a value and sends no request."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django import forms
from django.core import serializers
from django.db.models import (
    BooleanField,
    Case,
    Count,
    Exists,
    ExpressionWrapper,
    F,
    Max,
    Q,
    Subquery,
    Sum,
    Value,
    When,
)
from django.db.models.functions import Concat

from dynamo_single import models
from dynamo_single.conf.shapes import BY_ID
from dynamo_single.management.commands.loaddata import Command
from dynamo_single.orm.items.encode import key_of_pk
from dynamo_single.table.shaped import joined
from dynamo_single.table.shaped.translator import Translator
from tests.catalog.safes import VALUES, WRONG, Safe, said, said_of, told
from tests.catalog.secret_lookups import PATHS, conditions_on
from tests.deep import IS_DEEP
from tests.unit.declaring import declare, forgotten

#: Every value of a wrong type; a normal run uses four types.
GIVEN = WRONG if IS_DEEP else (*WRONG[:2], *WRONG[-4:-1])
SECRETS = {name: value for name, value in VALUES.items() if name != "parent_id"} | {"parent": "swordfish-parent"}


@pytest.mark.parametrize("path", PATHS)
def test_explain_tells_no_secret(path: str) -> None:
    """Each lookup is explained or rejected."""
    found = {}
    for condition in conditions_on(path):
        text = said(lambda: explained(Safe.objects.filter(**condition)))  # noqa: B023 - called at once
        if leaks := told(text):
            found[repr(condition)] = leaks

    assert found == {}


def explained(queryset: Any) -> str:
    """Return the explanation of a query with a key, and with a scan."""
    asked = [queryset.explain, queryset.allow_scan().explain]
    if IS_DEEP:
        asked.append(queryset.allow_in_memory().order_by("number").explain)
    return "\n".join(map(said, asked))


class SafeForm(forms.ModelForm):
    """A form with an input for each secret."""

    class Meta:
        model = Safe
        fields = "__all__"  # noqa: DJ007 - each secret has an input

    def validate_unique(self) -> None:
        """Read no other objects."""


def form_of(name: str, value: object) -> str:
    """Return the errors of a form, as text, as JSON, and with their parameters."""
    sent = json.dumps(value, default=str) if isinstance(value, list | dict) else value
    form = SafeForm({"safe_id": "s1", "name": "Front", name: sent})
    # They are not read for this.
    form.fields["parent"].queryset = Safe.objects.none()
    errors = [one for each in form.errors.as_data().values() for one in each]
    return "\n".join((form.errors.as_json(), form.errors.as_text(), *(text for one in errors for text in said_of(one))))


#: Uses of a value in a Django field.
FIELD: dict[str, Callable[[Any, Any], object]] = {
    "to_python": lambda field, value: field.to_python(value),
    "clean": lambda field, value: field.clean(value, Safe(safe_id="s1")),
    "validate": lambda field, value: field.is_relation or field.validate(value, Safe(safe_id="s1")),
    "run_validators": lambda field, value: field.run_validators(value),
    "get_prep_value": lambda field, value: field.is_relation or field.get_prep_value(value),
    "get_db_prep_value": lambda field, value: field.get_db_prep_value(value, None),
    "get_db_prep_save": lambda field, value: field.get_db_prep_save(value, None),
    "formfield": lambda field, value: field.is_relation or (field.formfield() and field.formfield().clean(value)),
}
#: Uses of a value in an attribute.
ATTRIBUTE: dict[str, Callable[[Any, Any], object]] = {
    "prepare": lambda attribute, value: attribute.prepare(value),
    "check_whole": lambda attribute, value: attribute.check_whole(value),
    "lookup_value": lambda attribute, value: attribute.lookup_value(value),
    "to_attribute_value": lambda attribute, value: attribute.to_attribute_value(value),
    "operand": lambda attribute, value: attribute.operand(value),
    "serialize": lambda attribute, value: attribute.serialize(value),
    "deserialize": lambda attribute, value: attribute.deserialize(value),
    "from_attribute_value": lambda attribute, value: attribute.from_attribute_value({attribute.attr_type: value}),
    "to_text": lambda attribute, value: attribute.to_text(value),
    "from_text": lambda attribute, value: attribute.from_text(value),
}


def refused(call: Callable[[], object]) -> str:
    """Return the error of a call as a log would have it, or nothing."""
    return said(lambda: call() and None)


@pytest.mark.parametrize("operation", [*FIELD, *ATTRIBUTE])
def test_conversion_tells_no_secret(operation: str) -> None:
    found = {}
    for name, own in SECRETS.items():
        field: Any = Safe._meta.get_field(name)
        call, subject = (FIELD[operation], field) if operation in FIELD else (ATTRIBUTE[operation], field.attribute)
        for value in (own, *WRONG):
            if leaks := told(refused(lambda: call(subject, value))):  # noqa: B023 - called at once
                found[name, repr(value)] = leaks

    assert found == {}


def case(name: str, value: object) -> Case:
    """Return an expression that compares with a value, and gives it."""
    return Case(When(**{name: value}, then=Value(value)))


def front() -> Any:
    """Return a queryset that a key supports."""
    return Safe.objects.filter(name="Front")


#: Expressions with a value, which are explained, or rejected before any read.
EXPRESSIONS: dict[str, Callable[[str, Any], object]] = {
    "aggregate of Case": lambda name, value: front().aggregate(n=Count(case(name, value))),
    "aggregate of sum": lambda name, value: front().aggregate(n=Max(F(name) + value)),
    "annotate Case": lambda name, value: front().annotate(n=case(name, value)),
    "annotate sum": lambda name, value: front().annotate(n=F(name) + value),
    "annotate Q": lambda name, value: front().annotate(n=Q(**{name: value})),
    "annotate wrapped Q": lambda name, value: front().annotate(
        n=ExpressionWrapper(Q(**{name: value}), output_field=BooleanField())
    ),
    "annotate Exists": lambda name, value: front().annotate(n=Exists(Safe.objects.filter(**{name: value}))),
    "annotate Subquery": lambda name, value: front().annotate(n=Subquery(front().filter(**{name: value}).values("pk"))),
    "count children": lambda name, value: front().annotate(n=Count("locks", filter=Q(**{name: value}))),
    "count children by theirs": lambda name, value: front().annotate(n=Count("locks", filter=Q(locks__code=value))),
    "filtered count": lambda name, value: front().annotate(n=Count("name", filter=Q(**{name: value}))).explain(),
    "filter Case": lambda name, value: (
        front().filter(Case(When(**{name: value}, then=Value(True)), output_field=BooleanField())).explain()
    ),
    "filter by Case": lambda name, value: front().filter(**{name: case(name, value)}).explain(),
    "filter by function": lambda name, value: front().filter(**{name: Concat(F(name), Value(value))}).explain(),
    "filter by sum": lambda name, value: front().filter(**{name: F("name") + value}).explain(),
    "filter by F": lambda name, value: front().filter(Q(**{name: F("name")}) | Q(**{name: value})).explain(),
    "filter Exists": lambda name, value: front().filter(Exists(front().filter(**{name: value}))).explain(),
    "order by Case": lambda name, value: front().order_by(case(name, value)).explain(),
    "order by sum": lambda name, value: front().order_by(F(name) + value).explain(),
    "values": lambda name, value: front().values(x=case(name, value)),
    "values_list": lambda name, value: front().values_list(case(name, value)),
    "update by Case": lambda name, value: front().update(**{name: case(name, value)}),
    "update another by Case": lambda name, value: front().update(name=case(name, value)),
    "update by function": lambda name, value: front().update(**{name: Concat(F(name), Value(value))}),
    "sum's default": lambda name, value: str(Sum(name, default=value)) and front().annotate(n=Sum(name, default=value)),
}
#: Other uses of a value without a request, or rejected before it.
OTHERS: dict[str, Callable[[str, Any], object]] = {
    "form": form_of,
    "clean_fields": lambda name, value: Safe(safe_id="s1", name="x", **{name: value}).clean_fields(exclude=["parent"]),
    "fixture": lambda name, value: fixture(name, value),
}


def fixture(name: str, value: object) -> None:
    """Read an object of a fixture, and report it as ``loaddata`` does."""
    row = {"model": "catalog.safe", "pk": "s1", "fields": {name: value}}

    class Reading(Command):
        def __init__(self) -> None:
            """Read no arguments."""

    def load_label(self: object, label: str) -> None:
        list(serializers.deserialize("python", [row]))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("django.core.management.commands.loaddata.Command.load_label", load_label)
        Reading().load_label("safes")


@pytest.mark.parametrize("operation", [*EXPRESSIONS, *OTHERS])
def test_operation_tells_no_secret(operation: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    call = (EXPRESSIONS | OTHERS)[operation]
    found = {}
    for name, own in SECRETS.items():
        for value in (own, *GIVEN):
            if leaks := told(said(lambda: call(name, value))):  # noqa: B023 - called at once
                found[name, repr(value)] = leaks

    assert found == {}
    assert [record.getMessage() for record in caplog.records if told(record.getMessage())] == []


class Drawer:
    """A map with a secret that has an ordinary name."""

    place = models.UnicodeAttribute(secret=True, null=True, choices=[("a", "A")])
    amount = models.DecimalAttribute(secret=True, null=True, max_digits=4, decimal_places=2)
    inner = models.MapAttribute(null=True)


@pytest.fixture
def vault() -> Iterator[Any]:
    """Return a model with secrets in its key and inside its documents."""
    with forgotten():
        vault = declare(
            "Vault",
            ("VAULT#{code:04d}", "BOX#{phrase}"),
            code=models.IntegerAttribute(secret=True),
            phrase=models.UnicodeAttribute(secret=True),
            drawer=models.MapAttribute(schema=Drawer, null=True),
            drawers=models.ListAttribute(schema=Drawer, null=True),
            sealed=models.MapAttribute(schema=Drawer, secret=True, null=True),
            papers=models.MapAttribute(null=True),
            amount=models.DecimalAttribute(secret=True, null=True, max_digits=4, decimal_places=2),
            level=models.UnicodeAttribute(secret=True, null=True, choices=[("a", "A")]),
        )
        yield vault


#: Values for the places of a vault. None of them fits.
INSIDE: dict[str, tuple[Any, ...]] = {
    "drawer": (
        *({"place": value} for value in (*WRONG, "swordfish")),
        *({"amount": value} for value in (814281, "swordfish", 10**50 + 814281)),
        *([{"place": "swordfish"}], {"place": {"inner": "swordfish"}}),
    ),
    "drawers": ([{"place": 814281}], [{"place": "swordfish"}], ["swordfish"], [{"place": "swordfish\ud800"}]),
    "sealed": ({"place": 814281}, {"inner": ["swordfish"]}, "swordfish", {"inner": {"a": object, "b": "swordfish"}}),
    "papers": (
        *({"apiKey": value} for value in (object, "swordfish\ud800", 10**50 + 814281, {1: "swordfish"})),
        {"deep": [{"password": "swordfish\ud800"}]},
    ),
    "amount": (814281, "swordfish", 10**50 + 814281),
    "level": ("swordfish",),
}
#: Calls with a value for an attribute of a vault, which are rejected before any request.
WRITES: dict[str, Callable[[Any, str, Any], object]] = {
    "prepare": lambda vault, name, value: getattr(vault, name).prepare(value),
    "check_whole": lambda vault, name, value: getattr(vault, name).check_whole(value),
    "clean": lambda vault, name, value: vault._meta.get_field(name).clean(value, vault(code=1, phrase="b")),
    "formfield": lambda vault, name, value: vault._meta.get_field(name).formfield().clean(value),
    "to_python": lambda vault, name, value: vault._meta.get_field(name).to_python(value),
    "update": lambda vault, name, value: vault.objects.filter(pk="1~~b").update(**{name: value}),
}


@pytest.mark.parametrize("operation", WRITES)
def test_nested_secret_is_not_told(vault: Any, operation: str) -> None:
    found = {
        (name, repr(value)): leaks
        for name, values in INSIDE.items()
        for value in values
        if (leaks := told(refused(lambda: WRITES[operation](vault, name, value))))  # noqa: B023 - called at once
    }

    assert found == {}


#: Calls with a key of secrets that is invalid or too long.
KEYS: dict[str, Callable[[Any], object]] = {
    "padding": lambda vault: vault(code=814281, phrase="b").to_attribute_values(),
    "key": lambda vault: key_of_pk(vault, "814281~~b"),
    "number of parts": lambda vault: vault._meta.pk.split("swordfish"),
    "escape": lambda vault: vault._meta.pk.split("1~~swordfish~zz"),
    "spelling": lambda vault: vault._meta.pk.split("0814281~~b"),
    "kind": lambda vault: vault._meta.pk.split("swordfish~~b"),
    "assignment": lambda vault: setattr(vault(), "pk", "swordfish"),
    "joined": lambda vault: joined.id_of_pair("VAULT#0001", "BOX#" + "swordfish" * 400),
    "joined partition": lambda vault: joined.id_of_pair("VAULT#" + "swordfish" * 400, "BOX#b"),
    "parted": lambda vault: joined.pair_of_id("#VAULT#swordfish~2|BOX#b"),
    "stored": lambda vault: Translator(BY_ID).written(
        {"pk": {"S": "VAULT#814281"}, "sk": {"S": "BOX#swordfish"}, "id": {"S": "other"}}
    ),
}


@pytest.mark.parametrize("call", KEYS)
def test_key_of_secrets_is_not_told(vault: Any, call: str) -> None:
    with pytest.raises(Exception) as error:
        KEYS[call](vault)

    assert told("\n".join(said_of(error.value))) == []


def test_fixture_masks_key_of_secrets(vault: Any) -> None:
    text = "Problem installing fixture 'a.json': wrong: (catalog.vault:pk=swordfish) field_value was 'x'"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dynamo_single.management.commands.loaddata.apps.get_model", lambda label: vault)
        from dynamo_single.management.commands.loaddata import _without_secrets

        assert _without_secrets(text, is_hidden=False).endswith("(catalog.vault:pk=•••) field_value was 'x'")


def test_form_error_keeps_its_words() -> None:
    form = SafeForm({"safe_id": "s1", "name": "Front", "uuid": "swordfish", "slug": "sword fish"})

    assert form.errors["uuid"] == ["Enter a valid UUID."]
    assert form.errors.as_data()["slug"][0].code == "invalid"
