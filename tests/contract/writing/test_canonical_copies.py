"""Folded copies on the real engine: every way to write keeps them, and lookups without case read by them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core import serializers
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.forms import modelform_factory
from django.test import RequestFactory

from dynamo_single.admin import DynamoAdminSite, DynamoModelAdmin
from dynamo_single.exceptions import EmptyKeyPart, NotSupported, StaleObject
from dynamo_single.table import Request, Table, get_table
from dynamo_single.testing import assert_requests
from tests.catalog.models import Resident

pytestmark = pytest.mark.usefixtures("table")

FULL_NAME = "Gómez-Juárez-Álvarez"


def stored(resident: Any) -> dict[str, Any]:
    """Return the stored strings and keys of a resident's item."""
    answer = get_table("default").send(
        Request("GetItem", {"Key": {"pk": {"S": f"RESIDENT#{resident.pk}"}, "sk": {"S": "#METADATA"}}})
    )
    item: dict[str, Any] = answer["Item"]
    names = ("lastName", "lastNameCanonical", "nickname", "nicknameCanonical", "gs1sk")
    return {name: item[name]["S"] for name in names if name in item}


def expected(resident: Any, name: str, folded: str) -> dict[str, Any]:
    """Return the expected item of a resident with this name."""
    return {"lastName": name, "lastNameCanonical": folded, "gs1sk": f"{folded}#{resident.pk}"}


def by_form(resident: Resident) -> None:
    """The admin's form, saved as the admin saves it."""
    options = DynamoModelAdmin(Resident, DynamoAdminSite())
    request = RequestFactory().post("/")
    form_class = modelform_factory(Resident, fields=("last_name", "room"))
    form = form_class({"last_name": FULL_NAME, "room": "0"}, instance=resident)
    assert form.is_valid(), form.errors
    options.save_model(request, form.save(commit=False), form, change=True)


def by_fixture(resident: Resident) -> None:
    """A fixture, which holds the name and not its copy."""
    text = serializers.serialize("json", [resident])
    (row,) = json.loads(text)
    assert "last_name_canonical" not in row["fields"]
    row["fields"]["last_name"] = FULL_NAME
    for found in serializers.deserialize("json", json.dumps([row])):
        found.save()


def by_save(resident: Resident) -> None:
    """Change and save an object."""
    resident.last_name = FULL_NAME
    resident.save()


def by_update_fields(resident: Resident) -> None:
    """A save that names the text."""
    resident.last_name = FULL_NAME
    resident.save(update_fields=["last_name"])


def by_batch(resident: Resident) -> None:
    """PynamoDB's batch writer."""
    resident.last_name = FULL_NAME
    with Resident.batch_write() as batch:
        batch.save(resident)


WRITERS: dict[str, Callable[[Resident], Any]] = {
    "save": by_save,
    "update_fields": by_update_fields,
    "queryset.update": lambda resident: Resident.objects.filter(pk=resident.pk).update(last_name=FULL_NAME),
    "update_or_create": lambda resident: Resident.objects.update_or_create(
        resident_id=resident.pk, defaults={"last_name": FULL_NAME}
    ),
    "admin": by_form,
    "fixture": by_fixture,
    "batch_write": by_batch,
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_every_way_to_write_folds_anew(write: Callable[[Resident], Any]) -> None:
    """The copy and the key are updated with the string, which is stored unchanged."""
    resident = Resident.objects.create(last_name="Old")
    assert stored(resident) == expected(resident, "Old", "old")
    write(resident)
    assert stored(resident) == expected(resident, FULL_NAME, "gomezjuarezalvarez")


def test_creating_folds() -> None:
    """One PutItem writes the string, its copy and the key; without a string, there is no copy."""
    with assert_requests(["PutItem"]):
        resident = Resident.objects.create(last_name="  Ann O'Neill ", nickname="  The BOSS ")
    assert stored(resident) == expected(resident, "  Ann O'Neill ", "annoneill") | {
        "nickname": "  The BOSS ",
        "nicknameCanonical": "the boss",
    }
    assert (resident.last_name_canonical, resident.nickname_canonical) == ("annoneill", "the boss")
    assert Resident(last_name="ÉÉ").last_name_canonical == "ee"
    assert Resident(last_name="x").nickname_canonical is None


def test_a_text_that_goes_takes_its_copy_along() -> None:
    """Without the text there is nothing to fold."""
    resident = Resident.objects.create(last_name="A", nickname="B")
    resident.nickname = None
    resident.save()
    assert "nicknameCanonical" not in stored(resident)


def test_the_trash_and_back() -> None:
    """A restored object has its key by the copy again."""
    resident = Resident.objects.create(last_name="Ä")
    resident.delete()
    assert Resident.objects.filter(last_name__iexact="a").count() == 0
    resident.restore()
    assert stored(resident)["gs1sk"] == f"a#{resident.pk}"


@pytest.mark.parametrize(
    "action",
    [
        lambda resident: Resident(last_name="A", last_name_canonical="b"),
        lambda resident: setattr(resident, "last_name_canonical", "b"),
        lambda resident: resident.save(update_fields=["last_name_canonical"]),
        lambda resident: Resident.objects.filter(pk=resident.pk).update(last_name_canonical="b"),
    ],
)
def test_a_copy_is_never_set(action: Callable[[Resident], Any]) -> None:
    """The error for a write to a copy names the source attribute."""
    resident = Resident.objects.create(last_name="A")
    with (
        assert_requests(0),
        pytest.raises(NotSupported, match=r"last_name_canonical(, which the app computes| is computed) from last_name"),
    ):
        action(resident)


def test_two_spellings_written_at_once_stay_with_their_copies() -> None:
    """If another process has changed the copy, a write that keeps it fails."""
    resident = Resident.objects.create(last_name="ann")
    other = Resident.objects.get(pk=resident.pk)
    other.last_name = "Bob"
    other.save()
    resident.last_name = "ANN"
    with pytest.raises(StaleObject):
        resident.save()
    assert stored(resident) == expected(resident, "Bob", "bob")


def test_an_item_older_than_its_copy_gets_it_with_the_next_save(table: Table) -> None:
    """Lookups do not find items without the copy. A save adds the copy, unless another process has changed the item."""
    resident = Resident.objects.create(last_name="Ann", nickname="Boss")
    key = {"pk": {"S": f"RESIDENT#{resident.pk}"}, "sk": {"S": "#METADATA"}}
    table.send(Request("UpdateItem", {"Key": key, "UpdateExpression": "REMOVE nicknameCanonical"}))
    old, late = (Resident.objects.get(pk=resident.pk) for _ in range(2))
    assert Resident.objects.filter(nickname__iexact="boss").count() == 0
    with assert_requests(["UpdateItem"]):
        old.save()
    assert stored(old)["nicknameCanonical"] == "boss"
    Resident.objects.filter(pk=resident.pk).update(nickname="Else")
    with pytest.raises(StaleObject):
        late.save()
    assert stored(old)["nicknameCanonical"] == "else"


def test_a_text_of_which_nothing_is_left_cannot_be_in_the_key() -> None:
    """The error names the string, since the copy cannot be set; ``blank=True`` would omit it from the index."""
    with pytest.raises(EmptyKeyPart) as raised:
        Resident.objects.create(last_name="---")
    assert (
        "Give last_name a string that is not empty after normalization, or declare last_name_canonical blank=True"
        in str(raised.value)
    )


# lookups


@pytest.fixture
def residents(table: Any) -> None:
    """Some names."""
    for name, nickname in (("Gómez", "Boss"), ("GOMEZ-Juárez", "the BOSS"), ("Gamez", "Straße"), ("Ólafur", None)):
        Resident.objects.create(resident_id=name, last_name=name, nickname=nickname)


@pytest.mark.usefixtures("residents")
@pytest.mark.parametrize(
    ("conditions", "expected", "filtered"),
    [
        ({"last_name__iexact": "gOMEZ"}, ["Gómez"], False),
        ({"last_name__iexact": "gomez juarez"}, ["GOMEZ-Juárez"], False),
        ({"last_name__istartswith": "gó"}, ["GOMEZ-Juárez", "Gómez"], False),
        ({"last_name__icontains": "MEZ"}, ["GOMEZ-Juárez", "Gamez", "Gómez"], True),
        ({"last_name": "gómez"}, [], True),
        ({"last_name__startswith": "G"}, ["GOMEZ-Juárez", "Gamez", "Gómez"], True),
        ({"last_name_canonical__gte": "gomez"}, ["GOMEZ-Juárez", "Gómez", "Ólafur"], False),
        ({"nickname__iexact": " the boss"}, ["GOMEZ-Juárez"], True),
        ({"nickname__iexact": "STRASSE"}, ["Gamez"], True),
        ({"nickname__icontains": "BoSs"}, ["GOMEZ-Juárez", "Gómez"], True),
        ({"nickname__istartswith": "STR"}, ["Gamez"], True),
        ({"nickname__iexact": None}, ["Ólafur"], True),
    ],
)
def test_a_lookup_without_case_reads_by_the_copy(
    conditions: dict[str, Any], expected: list[str], *, filtered: bool
) -> None:
    """``iexact`` and ``istartswith`` are key conditions if the copy is in the key, and filters otherwise."""
    queryset = Resident.objects.filter(**conditions)
    with assert_requests(["Query"]) as sent:
        assert sorted(resident.pk for resident in queryset) == sorted(expected)
    names = sent[0].params.get("ExpressionAttributeNames", {}).values()
    assert bool({"lastName", "lastNameCanonical", "nickname", "nicknameCanonical"} & set(names)) is filtered
    everything = {"Gómez", "GOMEZ-Juárez", "Gamez", "Ólafur"}
    assert {resident.pk for resident in Resident.objects.exclude(**conditions)} == everything - set(expected)


@pytest.mark.usefixtures("residents")
def test_a_copy_is_read_as_any_attribute() -> None:
    """You can sort by a copy, select it, and read it without its source."""
    names = Resident.objects.order_by("last_name_canonical").values_list("last_name_canonical", flat=True)
    assert list(names) == ["gamez", "gomez", "gomezjuarez", "olafur"]
    with assert_requests(["Query"]):
        assert [r.last_name_canonical for r in Resident.objects.only("last_name_canonical")] == list(names)


def test_fixtures_of_a_project_keep_copies() -> None:
    """``dumpdata`` leaves copies out, and ``loaddata`` computes them."""
    resident = Resident.objects.create(resident_id="r", last_name="Ünal")
    out = io.StringIO()
    call_command("dumpdata", "catalog.Resident", stdout=out)
    assert "anonical" not in out.getvalue()
    resident.hard_delete()
    for found in serializers.deserialize("json", out.getvalue()):
        found.save()
    assert stored(resident) == expected(resident, "Ünal", "unal")


def test_validation_reports_the_text_only() -> None:
    """``full_clean()`` of a new object complains of the text, never of its copy."""
    Resident(last_name="Fine").full_clean()
    with pytest.raises(ValidationError) as raised:
        Resident(last_name="").full_clean()
    assert set(raised.value.message_dict) == {"last_name"}
