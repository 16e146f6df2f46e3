"""Every way to write keeps extracted values and their keys correct."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest
from django.core import serializers
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.core.validators import MinValueValidator
from django.db.models import F
from django.forms import modelform_factory

from dynamo_single import models, transactions
from dynamo_single.exceptions import InvalidValue, MissingValue, NotSupported, StaleObject, UniqueViolation
from dynamo_single.models import REMOVE
from dynamo_single.table import Request, Table
from dynamo_single.testing import assert_requests
from tests.catalog.records import Treatise
from tests.contract.racing import before_write
from tests.contract.tables import assert_consistent, everything
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.usefixtures("table")

OLD = {"author": {"firstname": "Ann", "lastname": "Old"}, "price": Decimal("1.25"), "title": "T"}
NEW = {"author": {"firstname": "Ann", "lastname": "New"}, "price": Decimal("2.5"), "title": "T"}


def made(**data: Any) -> Any:
    """A stored treatise."""
    return Treatise.objects.create(data={**OLD, **data})


def stored(table: Table, treatise: Any) -> dict[str, Any]:
    """Return an item's extracted values and the key that contains them."""
    item = everything(table)[treatise.id, "#TREATISE"]
    return {name: next(iter(item[name].values())) for name in ("author", "price", "gs1pk", "gs1sk") if name in item}


def expected(treatise: Any, lastname: str, price: str) -> dict[str, Any]:
    """Return the stored values for an author and a price."""
    return {"author": lastname, "price": price, "gs1pk": f"TREATISE#{lastname}", "gs1sk": treatise.id}


def changed(treatise: Any) -> Any:
    """Change the object's author and price in place."""
    treatise.data["author"]["lastname"] = "New"
    treatise.data["price"] = Decimal("2.5")
    return treatise


def by_form(treatise: Any) -> None:
    """A form with the document as JSON text."""
    form_class = modelform_factory(Treatise, fields=("data",))
    form = form_class({"data": json.dumps(NEW, default=str).replace('"2.5"', "2.5")}, instance=treatise)
    assert form.is_valid(), form.errors
    form.save()


def by_fixture(treatise: Any) -> None:
    """Load a fixture, which contains the document without extracted values."""
    (row,) = json.loads(serializers.serialize("json", [treatise]))
    assert not {"author", "price"} & row["fields"].keys()
    row["fields"]["data"] = {**NEW, "price": 2.5}
    for found in serializers.deserialize("json", json.dumps([row])):
        found.save()


def by_paths(treatise: Any) -> None:
    """Two places where they are."""
    found = Treatise.objects.filter(pk=treatise.pk)
    assert found.update(data__author__lastname="New", data__price=Decimal("2.5")) == 1


def by_expression(treatise: Any) -> None:
    """A sum that DynamoDB would make, and a copy of another place."""
    found = Treatise.objects.filter(pk=treatise.pk)
    assert found.update(data__author={"lastname": "New"}, data__price=F("data__price") + Decimal("1.25")) == 1


def by_merging(treatise: Any) -> None:
    """Two objects of one item, each of which changes another place."""
    other = Treatise.objects.get(pk=treatise.pk)
    other.data["price"] = Decimal("2.5")
    treatise.data["author"]["lastname"] = "New"
    other.save()
    treatise.save()


def by_transaction(treatise: Any) -> None:
    """A block."""
    with transactions.atomic():
        changed(treatise).save()


def by_upsert(treatise: Any) -> None:
    """Call ``bulk_create()`` for an existing object."""
    Treatise.objects.bulk_create([Treatise(id=treatise.id, data=NEW)], update_conflicts=True, update_fields=["data"])


WRITERS: dict[str, Callable[[Any], Any]] = {
    "save": lambda treatise: changed(treatise).save(),
    "update_fields": lambda treatise: changed(treatise).save(update_fields=["data"]),
    "asave": lambda treatise: asyncio.run(changed(treatise).asave()),
    "update": lambda treatise: Treatise.objects.filter(pk=treatise.pk).update(data=NEW),
    "aupdate": lambda treatise: asyncio.run(
        Treatise.objects.filter(pk=treatise.pk).aupdate(data__author__lastname="New", data__price=Decimal("2.5"))
    ),
    "update of places": by_paths,
    "update by expressions": by_expression,
    "update of a listing": lambda treatise: Treatise.objects.filter(author="Old").update(data=NEW),
    "update_or_create": lambda treatise: Treatise.objects.update_or_create(id=treatise.id, defaults={"data": NEW}),
    "bulk_update": lambda treatise: Treatise.objects.bulk_update([changed(treatise)], ["data"]),
    "abulk_update": lambda treatise: asyncio.run(Treatise.objects.abulk_update([changed(treatise)], ["data"])),
    "bulk_create over it": by_upsert,
    "a block": by_transaction,
    "two writers": by_merging,
    "a form": by_form,
    "a fixture": by_fixture,
    "not refreshed, forced": lambda treatise: changed(treatise).save(force_update=True),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_every_way_to_write_extracts_anew(write: Callable[[Any], Any], table: Table) -> None:
    treatise = made()
    assert stored(table, treatise) == expected(treatise, "Old", "1.25")
    write(treatise)
    assert stored(table, treatise) == expected(treatise, "New", "2.5")
    assert_consistent()


@pytest.mark.parametrize(
    "create",
    [
        lambda: made(),
        lambda: Treatise.objects.bulk_create([Treatise(data=OLD)])[0],
        lambda: asyncio.run(Treatise.objects.acreate(data=OLD)),
        lambda: Treatise.objects.get_or_create(id="treatise-1", defaults={"data": OLD})[0],
    ],
    ids=["create", "bulk_create", "acreate", "get_or_create"],
)
def test_every_way_to_create_extracts(create: Callable[[], Any], table: Table) -> None:
    treatise = create()
    assert stored(table, treatise) == expected(treatise, "Old", "1.25")
    assert (treatise.author, treatise.price) == ("Old", Decimal("1.25"))


def test_an_object_shows_what_its_document_gives_before_it_is_saved() -> None:
    treatise = Treatise(data={"author": {"lastname": "A"}})
    treatise.data["author"]["lastname"] = "B"
    assert (treatise.author, treatise.price) == ("B", None)


def test_what_goes_from_the_document_leaves_the_index(table: Table) -> None:
    treatise = made()
    Treatise.objects.filter(pk=treatise.pk).update(data__author=REMOVE)
    assert stored(table, treatise) == {"price": "1.25"}
    treatise = made()
    del treatise.data["author"]
    treatise.save()
    assert stored(table, treatise) == {"price": "1.25"}


def test_the_trash_and_back(table: Table) -> None:
    """The document can change in the trash, and a restored object has its current key."""
    treatise = made()
    treatise.delete()
    assert list(Treatise.objects.filter(author="Old")) == []
    trashed = Treatise.deleted_objects.get(pk=treatise.pk)
    changed(trashed).save()
    trashed.restore()
    assert stored(table, treatise) == expected(treatise, "New", "2.5")
    assert_consistent()


def test_moving_takes_it_along(table: Table) -> None:
    treatise = made()
    changed(treatise).move(id="treatise-2")
    assert stored(table, treatise) == expected(treatise, "New", "2.5")
    asyncio.run(treatise.amove(id="treatise-3"))
    assert stored(table, treatise) == expected(treatise, "New", "2.5")
    assert len(everything(table)) == 1


def test_other_places_of_the_document_change_by_one_request() -> None:
    """Only the element itself and its parent are read first."""
    treatise = made()
    found = Treatise.objects.filter(pk=treatise.pk)
    with assert_requests(["UpdateItem"]):
        assert found.update(data__title="Else", data__author__firstname="Bob") == 1
    with assert_requests(["GetItem", "UpdateItem"]):
        assert found.update(data__author__lastname="Else") == 1
    with assert_requests(["GetItem", "UpdateItem"]):
        assert found.update(data__author={"lastname": "Third"}) == 1


def test_a_key_is_held_to_its_source_as_read_and_to_nothing_else_of_the_document(table: Table) -> None:
    """If another writer has changed the element, the object's outdated key is rejected."""
    with forgotten():
        model = declare(
            "Ranked",
            ("RANKED#{ranked_id}", "#METADATA"),
            {"by_place": models.IndexKey("gs1", "RANKED#{place}", "{rank}")},
            ranked_id=models.IdAttribute(),
            rank=models.IntegerAttribute(default=0),
            data=models.MapAttribute(default=dict),
            place=models.ExtractedAttribute("data__place"),
        )
        obj = model.objects.create(data={"place": "here", "other": 1})
        key = {"pk": {"S": f"RANKED#{obj.pk}"}, "sk": {"S": "#METADATA"}}
        names = {"#d": "data", "#p": "other"}
        values = {":v": {"S": "there"}}
        change = {"Key": key, "UpdateExpression": "SET #d.#p = :v", "ExpressionAttributeValues": values}
        table.send(Request("UpdateItem", {**change, "ExpressionAttributeNames": names}))
        obj.rank = 1
        obj.save()
        late = model.objects.get(pk=obj.pk)
        table.send(Request("UpdateItem", {**change, "ExpressionAttributeNames": {**names, "#p": "place"}}))
        late.rank = 2
        with pytest.raises(StaleObject):
            late.save()
        obj.data["other"] = 2
        obj.save()  # no key is written, and no element that a key depends on


def test_a_document_that_is_written_whole_is_not_put_beside_anothers_value(table: Table) -> None:
    """``update(data=...)`` replaces the whole document together with the extracted values, or fails."""
    treatise = made()
    late = Treatise.objects.get(pk=treatise.pk)
    changed(treatise).save()
    with pytest.raises(StaleObject):
        late.save(update_fields=["data"])
    assert stored(table, treatise) == expected(treatise, "New", "2.5")
    assert_consistent()


@pytest.mark.parametrize(
    ("write", "lastname"),
    [
        (lambda found: found.update(data=OLD), "Old"),
        (lambda found: found.update(data__price=Decimal("2.5")), "New"),
        (lambda found: found.update(data__author__lastname="Third"), "Third"),
        (lambda found: Treatise.objects.bulk_update([changed(found.get())], ["data"]), "New"),
    ],
    ids=["the document", "another place", "the same place", "bulk_update"],
)
def test_another_writer_between_reading_and_writing(write: Callable[[Any], Any], lastname: str, table: Table) -> None:
    """A forced write replaces the other process's value and the key; any other write keeps the other value."""
    treatise = made()
    other = Treatise.objects.get(pk=treatise.pk)
    other.data["author"]["lastname"] = "New"
    with before_write(1, other.save):
        write(Treatise.objects.filter(pk=treatise.pk))
    assert stored(table, treatise)["gs1pk"] == f"TREATISE#{lastname}"
    assert_consistent()


def test_a_map_that_was_none_is_not_written_over_anothers_value(table: Table) -> None:
    """The element is missing before and after the change, but another process has set it in the meantime."""
    treatise = made(author=None)
    late = Treatise.objects.get(pk=treatise.pk)
    treatise.data["author"] = {"lastname": "New"}
    treatise.save()
    late.data["author"] = "text"
    with pytest.raises(StaleObject):
        late.save()
    assert stored(table, treatise)["author"] == "New"
    assert_consistent()


def test_a_fixture_is_not_put_beside_anothers_value(table: Table) -> None:
    treatise = made()
    other = Treatise.objects.get(pk=treatise.pk)
    treatise.data["title"] = "U"
    (found,) = serializers.deserialize("json", serializers.serialize("json", [treatise]))
    other.data["author"]["lastname"] = "New"
    with before_write(2, other.save), pytest.raises(StaleObject):
        found.save()
    assert_consistent()


def test_an_item_older_than_the_attribute_gets_it_with_the_next_save(table: Table) -> None:
    treatise = made()
    key = {"pk": {"S": treatise.id}, "sk": {"S": "#TREATISE"}}
    table.send(Request("UpdateItem", {"Key": key, "UpdateExpression": "REMOVE author, price, gs1pk, gs1sk"}))
    old, late = (Treatise.objects.get(pk=treatise.pk) for _ in range(2))
    with assert_requests(["UpdateItem"]):
        old.save()
    assert stored(table, treatise) == expected(treatise, "Old", "1.25")
    late.data["title"] = "Else"
    with pytest.raises(StaleObject):
        late.save()


@pytest.mark.parametrize(
    "action",
    [
        lambda treatise: Treatise(data={}, author="b"),
        lambda treatise: setattr(treatise, "author", "b"),
        lambda treatise: treatise.save(update_fields=["author"]),
        lambda treatise: Treatise.objects.filter(pk=treatise.pk).update(author="b"),
        lambda treatise: Treatise.objects.bulk_update([treatise], ["author"]),
    ],
)
def test_it_is_never_set(action: Callable[[Any], Any]) -> None:
    """The error names the source of the value."""
    treatise = made()
    with assert_requests(0), pytest.raises(NotSupported, match=r"author.* (extracted|compute[ds]) .*from data__author"):
        action(treatise)


@pytest.mark.parametrize(
    "write",
    [
        lambda treatise: made(price="cheap"),
        lambda treatise: made(author={"lastname": 5}),
        lambda treatise: Treatise.objects.filter(pk=treatise.pk).update(data__price={"eur": 5}),
        lambda treatise: Treatise.objects.filter(pk=treatise.pk).update(data__author__lastname=True),
    ],
)
def test_a_value_of_another_kind_is_refused_by_its_place(write: Callable[[Any], Any], table: Table) -> None:
    treatise = made()
    with pytest.raises(InvalidValue, match=r"It is extracted from data__(price|author__lastname)"):
        write(treatise)
    assert stored(table, treatise) == expected(treatise, "Old", "1.25")


def test_validation_reports_a_value_of_another_kind() -> None:
    treatise = Treatise(data={"price": "cheap"})
    with pytest.raises(ValidationError, match="data__price"):
        treatise.full_clean()
    form_class = modelform_factory(Treatise, fields=("data",))
    assert "data__price" in str(form_class({"data": '{"price": "cheap"}'}).errors)


def test_what_null_false_asks_for_is_required() -> None:
    with forgotten():
        model = declare(
            "Strict",
            ("STRICT#{strict_id}", "#METADATA"),
            strict_id=models.IdAttribute(),
            data=models.MapAttribute(default=dict),
            place=models.ExtractedAttribute("data__place", null=False),
        )
        with assert_requests(0), pytest.raises(MissingValue, match="place is missing"):
            model.objects.create(data={})


def test_it_can_be_unique(table: Table) -> None:
    with forgotten():
        model = declare(
            "Isbn",
            ("ISBN#{isbn_id}", "#METADATA"),
            isbn_id=models.IdAttribute(),
            data=models.MapAttribute(default=dict),
            number=models.ExtractedAttribute("data__isbn", unique=True),
        )
        first = model.objects.create(data={"isbn": "1"})
        second = model.objects.create(data={"isbn": "2"})
        with pytest.raises(UniqueViolation):
            model.objects.filter(pk=second.pk).update(data__isbn="1")
        model.objects.filter(pk=first.pk).update(data__isbn="3")
        second.data["isbn"] = "1"
        second.save()
        assert model.objects.get(number="1").pk == second.pk
        assert_consistent()


def test_elements_of_lists_and_values_of_json_are_extracted_too(table: Table) -> None:
    with forgotten():
        model = declare(
            "Listing",
            ("LISTING#{listing_id}", "#METADATA"),
            listing_id=models.IdAttribute(),
            tags=models.ListAttribute(default=list),
            notes=models.JSONAttribute(default=dict),
            first=models.ExtractedAttribute("tags__0"),
            second=models.ExtractedAttribute("notes__by__1"),
        )
        obj = model.objects.create(tags=["a", "b"], notes={"by": ["x", "y"]})
        assert (obj.first, obj.second) == ("a", "y")
        obj.tags.insert(0, "c")
        obj.save()
        model.objects.filter(pk=obj.pk).update(tags=models.Append(["d"]), notes={"by": []})
        (item,) = everything(table).values()
        assert item["first"] == {"S": "c"}
        assert "second" not in item


def test_it_is_read_as_any_attribute() -> None:
    """Filtered by, picked, ordered by, and read without its document."""
    for name in ("B", "A"):
        made(author={"lastname": name}, price=Decimal(len(name)))
    with assert_requests(["Query"]):
        assert list(Treatise.objects.filter(price__gte=1).values_list("author", flat=True)) == ["B", "A"]
    assert [each.author for each in Treatise.objects.only("author").order_by("author").allow_in_memory()] == ["A", "B"]


def test_fixtures_of_a_project_leave_it_out(table: Table) -> None:
    treatise = made()
    out = io.StringIO()
    call_command("dumpdata", "catalog.Treatise", stdout=out)
    (row,) = json.loads(out.getvalue())
    assert not {"author", "price"} & row["fields"].keys()
    treatise.hard_delete()
    for found in serializers.deserialize("json", out.getvalue()):
        found.save()
    assert stored(table, treatise) == expected(treatise, "Old", "1.25")
    assert_consistent()


def test_an_item_of_another_writer_is_found_and_repaired(table: Table) -> None:
    """``dynamo_verify`` reports the difference from the document; ``dynamo_rebuild`` writes the value and the key."""
    treatise = made()
    key = {"pk": {"S": treatise.id}, "sk": {"S": "#TREATISE"}}
    change = {"UpdateExpression": "SET author = :v", "ExpressionAttributeValues": {":v": {"S": "Else"}}}
    table.send(Request("UpdateItem", {"Key": key, **change}))
    out = io.StringIO()
    with pytest.raises(CommandError):
        call_command("dynamo_verify", stdout=out)
    assert "extracted value" in out.getvalue()
    call_command("dynamo_rebuild", stdout=out)
    assert stored(table, treatise) == expected(treatise, "Old", "1.25")


@pytest.fixture
def graded() -> Iterator[Any]:
    """A model whose extracted values have choices, validators and no way to be missing."""
    output = models.UnicodeAttribute(choices=[("a", "A"), ("b", "B")])
    with forgotten():
        yield declare(
            "Graded",
            ("GRADED#{g}", "#X"),
            g=models.UnicodeAttribute(),
            data=models.MapAttribute(default=dict, blank=True),
            grade=models.ExtractedAttribute("data__grade", output=output),
            price=models.ExtractedAttribute(
                "data__price", output=models.DecimalAttribute(validators=[MinValueValidator(0)])
            ),
            title=models.ExtractedAttribute("data__title", null=False),
        )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"title": "T", "grade": "c"}, "data__grade: Value 'c' is not a valid choice."),
        ({"title": "T", "price": -1}, "data__price: Ensure this value is greater than or equal to 0."),
        ({"title": "T", "price": "dear"}, "data__price: This must be a decimal number."),
        ({}, "data__title: This field cannot be null."),
    ],
)
def test_full_clean_holds_what_is_extracted_to_what_was_declared(graded: Any, data: Any, message: str) -> None:
    """The error belongs to the document, which users enter, and no request is sent."""
    obj = graded(g="x", data=data)
    with assert_requests(0), pytest.raises(ValidationError) as found:
        obj.clean_fields()
    (said,) = found.value.message_dict["data"]
    assert said.startswith(message)


def test_full_clean_takes_what_fits(graded: Any) -> None:
    """Optional values may be missing."""
    graded(g="x", data={"title": "T", "grade": "a"}).clean_fields()
