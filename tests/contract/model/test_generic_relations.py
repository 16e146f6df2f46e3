"""Generic foreign keys and generic relations of our models, without SQL: items store the label of the model."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from django.contrib.contenttypes.fields import GenericRelation
from django.contrib.contenttypes.models import ContentType
from django.core import serializers
from django.forms import modelform_factory

from dynamo_single import models
from dynamo_single.checks.references import check_on_delete
from dynamo_single.exceptions import InvalidValue, NotSupported
from dynamo_single.table.request import Request
from dynamo_single.table.table import get_table
from dynamo_single.testing import assert_requests
from tests.catalog.tags import Animal, Emblem, Mineral
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.usefixtures("table")


@pytest.fixture
def lion() -> Animal:
    """An animal with two tags; a mineral with the same pk has one."""
    made = Animal.objects.create(animal_id="a", name="Lion")
    for word in ("fatty", "yellow"):
        Emblem.objects.create(tag_id=word, word=word, content_object=made)
    Emblem.objects.create(
        tag_id="hard", word="hard", content_object=Mineral.objects.create(mineral_id="a", name="Quartz")
    )
    return made


def words(found: Any) -> list[str]:
    return sorted(each.word for each in found)


def stored(pk: str) -> Any:
    key = {"pk": {"S": f"EMBLEM#{pk}"}, "sk": {"S": "#METADATA"}}
    return get_table().send(Request("GetItem", {"Key": key}))["Item"]


def test_item_stores_label(lion: Animal) -> None:
    item = stored("yellow")
    assert item["content_type_id"] == {"S": "catalog.animal"}
    assert "EMBLEM#catalog.animal#a" in [value.get("S") for value in item.values()]


def test_object_is_read_by_key(lion: Animal) -> None:
    tag = Emblem.objects.get(pk="yellow")
    with assert_requests(["GetItem"]):
        assert tag.content_object == lion
    assert tag.content_type == ContentType.objects.get_for_model(Animal)


def test_relation_reads_one_query(lion: Animal) -> None:
    with assert_requests(["Query"]):
        assert words(lion.tags.all()) == ["fatty", "yellow"]
    with assert_requests(["Query"]):
        assert words(lion.tags.filter(word__startswith="y")) == ["yellow"]


def test_relation_creates_and_changes_objects(lion: Animal) -> None:
    made = lion.tags.create(tag_id="big", word="big")
    lion.tags.add(Emblem.objects.get(pk="hard"))
    assert (made.content_object, words(lion.tags.all())) == (lion, ["big", "fatty", "hard", "yellow"])
    lion.tags.remove(Emblem.objects.get(pk="big"))
    assert words(lion.tags.all()) == ["fatty", "hard", "yellow"]
    lion.tags.set([Emblem.objects.get(pk="hard")])
    assert words(Emblem.objects.filter(pk__in=["big", "fatty", "hard", "yellow"])) == ["hard"]
    lion.tags.clear()
    assert words(lion.tags.all()) == []


def test_prefetch_reads_objects_of_each_model(lion: Animal) -> None:
    tags = Emblem.objects.filter(pk__in=["yellow", "fatty", "hard"]).prefetch_related("content_object")
    with assert_requests(["BatchGetItem", "GetItem", "GetItem"]):
        assert {each.word: each.content_object.name for each in tags} == {
            "fatty": "Lion",
            "hard": "Quartz",
            "yellow": "Lion",
        }


def test_content_types_are_read_along(lion: Animal) -> None:
    """They are computed, so no request is sent."""
    with assert_requests(["BatchGetItem"]):
        found = Emblem.objects.filter(pk__in=["yellow", "hard"]).select_related("content_type")
        assert sorted(each.content_type.model for each in found) == ["animal", "mineral"]


def test_filter_by_content_type_reads_no_other_objects(lion: Animal) -> None:
    with assert_requests(["Query"]):
        kinds = {"content_type__app_label": "catalog", "content_type__model": "mineral"}
        assert words(Emblem.objects.filter(**kinds, object_id="a")) == ["hard"]


def test_filter_over_relation(lion: Animal) -> None:
    """A tag of the mineral with the same identifier does not count."""
    Animal.objects.create(animal_id="b", name="Bear")
    animals = Animal.objects.filter(pk__in=["a", "b"]).allow_in_memory(10)
    assert [each.name for each in animals.filter(tags__word="yellow")] == ["Lion"]
    assert [each.name for each in animals.filter(tags__word="hard")] == []
    assert [each.name for each in animals.filter(tags__isnull=False)] == ["Lion"]
    assert [each.name for each in animals.exclude(tags__word="yellow")] == ["Bear"]


def test_filter_over_relation_needs_bound(lion: Animal) -> None:
    with assert_requests([]), pytest.raises(NotSupported, match=r"allow_in_memory\(limit=1000\)"):
        list(Animal.objects.filter(pk__in=["a", "b"], tags__word="yellow"))


def test_prefetch_reads_relation(lion: Animal) -> None:
    Animal.objects.create(animal_id="b", name="Bear").tags.create(word="brown")
    found = Animal.objects.filter(pk__in=["a", "b"]).prefetch_related("tags")
    assert {each.name: words(each.tags.all()) for each in found} == {"Bear": ["brown"], "Lion": ["fatty", "yellow"]}


@pytest.mark.parametrize("delete", [lambda lion: lion.delete(), lambda lion: Animal.objects.filter(pk="a").delete()])
def test_deletion_cascades_to_own_objects(lion: Animal, delete: Any) -> None:
    """The mineral with the same identifier keeps its own."""
    delete(lion)
    assert words(Emblem.objects.filter(pk__in=["yellow", "fatty", "hard"])) == ["hard"]


def test_pynamodb_deletion_is_refused(lion: Animal) -> None:
    with pytest.raises(NotSupported, match=r"catalog\.Emblem\.object_id"), Animal.batch_write() as batch:
        batch.delete(lion)


def test_uninstalled_model_keeps_its_label(lion: Animal) -> None:
    """A change of the object does not lose it, and it has no content type."""
    Emblem.objects.create(tag_id="t", word="old", content_type_id="gone.model", object_id="x")
    tag = Emblem.objects.get(pk="t")
    Emblem(tag_id="u", word="copied", content_type_id=tag.content_type_id, object_id="x").save()
    assert stored("u")["content_type_id"] == {"S": "gone.model"}
    with pytest.raises(ContentType.DoesNotExist):
        assert tag.content_object


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda tag: pickle.loads(pickle.dumps(tag))])
def test_copied_object_can_be_saved(lion: Animal, duplicate: Any) -> None:
    found = duplicate(Emblem.objects.get(pk="yellow"))
    found.word = "golden"
    found.save()
    assert words(lion.tags.all()) == ["fatty", "golden"]


@pytest.mark.parametrize("value", [5, "nothing", 1.5])
def test_unknown_content_type_is_refused(lion: Animal, value: Any) -> None:
    with pytest.raises(InvalidValue, match="content_type_id takes a content type"):
        Emblem.objects.create(word="x", content_type_id=value, object_id="x")


def test_fixture_restores_objects(lion: Animal) -> None:
    text = serializers.serialize("json", Emblem.objects.filter(pk="yellow"), use_natural_foreign_keys=True)
    assert '["catalog", "animal"]' in text
    Emblem.objects.filter(pk="yellow").delete()
    for each in serializers.deserialize("json", text):
        each.save()
    assert words(lion.tags.all()) == ["fatty", "yellow"]


def test_form_chooses_content_type(lion: Animal) -> None:
    kind = ContentType.objects.get_for_model(Mineral)
    form = modelform_factory(Emblem, fields=["word", "content_type", "object_id"])(
        {"word": "sharp", "content_type": str(kind.pk), "object_id": "a"}
    )
    assert form.is_valid(), form.errors
    assert stored(form.save().pk)["content_type_id"] == {"S": "catalog.mineral"}


def test_relation_without_key_is_reported() -> None:
    with forgotten():
        note = declare(
            "Note",
            ("NOTE#{note_id}", "#METADATA"),
            note_id=models.IdAttribute(),
            content_type=models.ReferenceAttribute(ContentType, on_delete=models.CASCADE),
            object_id=models.UnicodeAttribute(),
        )
        page = declare(
            "Page", ("PAGE#{page_id}", "#METADATA"), page_id=models.IdAttribute(), notes=GenericRelation(note)
        )
        (message,) = check_on_delete(page)
        assert [*check_on_delete(note)] == []
    assert (message.id, message.msg) == (
        "dynamo_single.E030",
        "notes: a deletion requires a query for the objects of the relation, but no key of catalog.Note lists them.",
    )
    assert "NOTE#{content_type_id}#{object_id}" in message.hint


def test_order_by_content_type_is_computed(lion: Animal) -> None:
    chosen = Emblem.objects.filter(pk__in=["fatty", "hard", "yellow"]).allow_in_memory()
    ordered = chosen.order_by("-content_type__model", "word")
    assert [each.word for each in ordered] == ["hard", "fatty", "yellow"]
