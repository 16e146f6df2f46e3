"""Generic foreign keys and generic relations of our models, without SQL: items store the label of the model."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.contenttypes.fields import GenericRelation
from django.contrib.contenttypes.models import ContentType
from django.core import serializers
from django.db.models import Count, Max, Q
from django.forms import modelform_factory

from dynamo_single import models
from dynamo_single.checks.references import check_on_delete
from dynamo_single.exceptions import InvalidValue, NotSupported
from dynamo_single.orm.rollout import shard_record
from dynamo_single.orm.schema import registry
from dynamo_single.table import Table
from dynamo_single.table.request import Request
from dynamo_single.table.table import get_table
from dynamo_single.testing import assert_requests, frozen_time
from tests.catalog.tags import Animal, Emblem, Mineral
from tests.unit.declaring import declare, forgotten

NOW = datetime(2026, 1, 1, tzinfo=UTC)

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


def test_queryset_of_content_types_is_read_first(lion: Animal) -> None:
    """The way out of the error gives the objects."""
    kinds = ContentType.objects.filter(model="animal")
    emblems = Emblem.objects.filter(object_id="a")
    with pytest.raises(NotSupported, match=r"Read its values first: list\(queryset\.values_list\('pk', flat=True\)\)"):
        list(emblems.filter(content_type__in=kinds))
    found = emblems.filter(content_type__in=list(kinds.values_list("pk", flat=True)))
    assert found.count() == lion.tags.count()


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
    with pytest.raises(InvalidValue, match="content_type_id must be a content type"):
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


# crossings


@pytest.fixture
def stickers() -> Iterator[Any]:
    """Two boxes, one with three stickers, in which stickers expire and go to the trash; another model has the key."""
    with forgotten(), frozen_time(NOW):
        sticker = declare(
            "Sticker",
            ("STICKER#{sticker_id}", "#METADATA"),
            {"by_object": models.IndexKey("gs1", "STICKER#{content_type_id}#{object_id}", "{word}#{sticker_id}")},
            bases=(models.SoftDeleteModel,),
            sticker_id=models.IdAttribute(),
            word=models.UnicodeAttribute(),
            content_type=models.ReferenceAttribute(ContentType, on_delete=models.CASCADE),
            object_id=models.UnicodeAttribute(),
            gone=models.TTLAttribute(null=True),
        )
        box = declare(
            "Box",
            ("BOX#{box_id}", "#METADATA"),
            {"all": models.IndexKey("gs2", "BOX", "{box_id}")},
            bases=(models.SoftDeleteModel,),
            box_id=models.UnicodeAttribute(),
            stickers=GenericRelation(sticker),
        )
        full, _ = box.objects.create(box_id="a"), box.objects.create(box_id="b")
        for word in ("x", "y", "z"):
            full.stickers.create(word=word)
        sticker.objects.create(word="other", content_type_id="catalog.mineral", object_id="a")
        yield SimpleNamespace(box=box, sticker=sticker, full=full)


def counted(stickers: Any) -> list[tuple[str, int]]:
    found = stickers.box.objects.allow_in_memory().annotate(n=Count("stickers"))
    return sorted(found.values_list("box_id", "n"))


def test_aggregate_over_relation_reads_its_key(stickers: Any) -> None:
    with assert_requests(["Query", "Query", "Query"]):
        assert counted(stickers) == [("a", 3), ("b", 0)]


def test_aggregate_over_relation_with_condition(stickers: Any) -> None:
    found = stickers.box.objects.allow_in_memory().annotate(n=Count("stickers", filter=Q(stickers__word__gt="x")))
    assert [each.pk for each in found.filter(n=2)] == ["a"]
    assert stickers.box.objects.allow_in_memory().aggregate(Max("stickers__word")) == {"stickers__word__max": "z"}


def test_aggregate_over_relation_names_a_way_out_that_works(stickers: Any) -> None:
    with pytest.raises(NotSupported, match=r"Or call \.allow_in_memory\(limit=1000\) first"):
        list(stickers.box.objects.annotate(n=Count("stickers")))


def test_order_over_relation_is_computed(stickers: Any) -> None:
    """A result for each object, as SQL's joins give."""
    found = stickers.box.objects.allow_in_memory().order_by("-stickers__word")
    assert [each.pk for each in found] == ["a", "a", "a", "b"]


ABSENT: dict[str, Any] = {
    "trash": lambda sticker: sticker.delete(),
    "expiry": lambda sticker: type(sticker).objects.filter(pk=sticker.pk).update(gone=NOW - timedelta(hours=1)),
}


@pytest.mark.parametrize("name", ABSENT)
def test_absent_objects_are_in_no_result(stickers: Any, name: str) -> None:
    ABSENT[name](stickers.full.stickers.get(word="x"))
    box = stickers.box.objects.prefetch_related("stickers").get(pk="a")
    assert words(box.stickers.all()) == words(stickers.full.stickers.all()) == ["y", "z"]
    assert counted(stickers) == [("a", 2), ("b", 0)]
    assert [*stickers.box.objects.allow_in_memory().filter(stickers__word="x")] == []


def test_deletion_and_restore_take_objects_along(stickers: Any) -> None:
    stickers.full.delete()
    assert words(stickers.sticker.deleted_objects.allow_scan()) == ["x", "y", "z"]
    stickers.box.deleted_objects.get(pk="a").restore()
    assert words(stickers.full.stickers.all()) == ["x", "y", "z"]


def test_relation_is_read_in_all_shards(table: Table) -> None:
    with forgotten(), frozen_time(NOW) as clock:
        note = declare(
            "Note",
            ("NOTE", "{note_id}"),
            note_id=models.IdAttribute(),
            word=models.UnicodeAttribute(),
            at=models.TimestampAttribute(auto_now_add=True, immutable=True),
            content_type=models.ReferenceAttribute(ContentType, on_delete=models.CASCADE),
            object_id=models.UnicodeAttribute(),
            Keys=type(
                "Keys",
                (),
                {
                    "shards": models.Shards("note_id", at="at"),
                    "primary": models.Key("NOTE", "{note_id}", sharded=True),
                    "by_object": models.IndexKey(
                        "gs1", "NOTE#{content_type_id}#{object_id}", "{word}#{note_id}", sharded=True
                    ),
                },
            ),
        )
        notes = GenericRelation(note)
        page = declare("Page", ("PAGE#{page_id}", "#METADATA"), page_id=models.IdAttribute(), notes=notes)
        shard_record.record_first(table, registry.layout_of(note), 4)
        clock.move(timedelta(days=1))
        made = page.objects.create(page_id="p")
        for word in "abcdefgh":
            made.notes.create(word=word)
        assert len({str(each._stored["pk"]) for each in made.notes.all()}) > 1
        assert words(made.notes.all()) == [*"abcdefgh"]
        assert [each.pk for each in page.objects.filter(pk="p", notes__word="h").allow_in_memory()] == ["p"]
