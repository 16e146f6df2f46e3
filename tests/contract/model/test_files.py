"""Files and images: the item holds the name, Django's storage the contents, and forms upload them."""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from django import forms
from django.core import serializers
from django.core.files.base import ContentFile
from django.core.files.storage import InMemoryStorage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.forms import modelform_factory

from dynamo_single import models
from dynamo_single.exceptions import InvalidValue, MissingValue
from dynamo_single.testing import assert_requests
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.usefixtures("table")

STORAGE = InMemoryStorage()


def storage() -> InMemoryStorage:
    """The storage of this test."""
    return STORAGE


@pytest.fixture
def paper() -> Iterator[Any]:
    """Return a model with a required and an optional file, and an empty storage."""
    global STORAGE
    STORAGE = InMemoryStorage()
    with forgotten():
        yield declare(
            "Paper",
            ("PAPER#{paper_id}", "#METADATA"),
            {"listed": models.IndexKey("gs1", "PAPER", "{paper_id}")},
            paper_id=models.UnicodeAttribute(),
            title=models.UnicodeAttribute(default=""),
            text=models.FileAttribute(upload_to="texts", storage=storage),
            notes=models.FileAttribute(blank=True, storage=storage),
            cover=models.FileAttribute(null=True, storage=storage),
        )


def content(text: str, name: str) -> Any:
    """Return the uploaded content."""
    return SimpleUploadedFile(name, text.encode())


def test_the_item_holds_the_name_and_the_storage_the_contents(paper: Any) -> None:
    made = paper.objects.create(paper_id="p", text=content("abc", "a.txt"))
    found = paper.objects.get(pk="p")
    assert made._stored["text"] == found._stored["text"] == {"S": "texts/a.txt"}
    assert (found.text.name, found.text.read(), found.text == made.text) == ("texts/a.txt", b"abc", True)
    assert (found.text.size, found.text.storage) == (3, STORAGE)
    assert (found.notes.name, bool(found.notes), bool(found.cover)) == (None, False, False)
    assert "cover" not in found._stored
    assert paper.objects.values_list("text", flat=True).get() == "texts/a.txt"


def test_another_file_is_stored_by_a_save_and_one_that_is_the_same_is_not(paper: Any) -> None:
    made = paper.objects.create(paper_id="p", text=content("abc", "a.txt"))
    found = paper.objects.get(pk="p")
    assert found.text
    with assert_requests(0):
        found.save()
    found.text = content("def", "a.txt")
    with assert_requests(["UpdateItem"]):
        found.save()
    assert found.text.name != made.text.name
    assert paper.objects.get(pk="p").text.read() == b"def"
    found.text = ContentFile(b"ghi", name="c.txt")
    found.title = "T"
    found.save(update_fields=["title"])
    assert not STORAGE.exists("texts/c.txt")


def test_a_file_saves_its_object_as_in_django(paper: Any) -> None:
    """``file.save()`` and ``file.delete()``."""
    made = paper.objects.create(paper_id="p", text=content("abc", "a.txt"))
    made.notes.save("n.txt", ContentFile(b"n"))
    assert paper.objects.get(pk="p").notes.read() == b"n"
    made.notes.delete()
    assert (paper.objects.get(pk="p").notes.name, STORAGE.exists("n.txt")) == (None, False)


def test_what_is_not_in_the_storage_is_refused_where_nothing_stores_it(paper: Any) -> None:
    """Django would store a name that leads nowhere."""
    paper.objects.create(paper_id="p", text=content("abc", "a.txt"))
    with pytest.raises(InvalidValue, match=r"text: b\.txt is not in the storage"):
        paper.objects.filter(pk="p").update(text=content("b", "b.txt"))
    with pytest.raises(MissingValue, match="text is missing"):
        paper.objects.create(paper_id="q")
    with pytest.raises(InvalidValue, match="must be a file, or the name of one in the storage, not int 5"):
        paper.objects.create(paper_id="q", text=5)


def test_several_are_stored_by_bulk_create(paper: Any) -> None:
    paper.objects.bulk_create([paper(paper_id=name, text=content(name, "a.txt")) for name in "pq"])
    assert sorted(each.text.read() for each in paper.objects.all()) == [b"p", b"q"]


def test_a_form_uploads_keeps_and_clears(paper: Any) -> None:
    form_class: Any = modelform_factory(paper, fields=["paper_id", "text", "notes"])
    assert isinstance(form_class().fields["text"], forms.FileField)
    assert form_class({"paper_id": "p"}).errors == {"text": ["This field is required."]}
    form = form_class({"paper_id": "p"}, {"text": content("abc", "a.txt"), "notes": content("n", "n.txt")})
    assert form.is_valid(), form.errors
    assert not STORAGE.exists("n.txt")
    made = form.save()
    form = form_class({"paper_id": "p"}, instance=made)
    with assert_requests(0):
        form.save()
    form = form_class({"paper_id": "p", "notes-clear": "on"}, instance=paper.objects.get(pk="p"))
    with assert_requests(["UpdateItem"]):
        form.save()
    assert (paper.objects.get(pk="p").notes.name, paper.objects.get(pk="p").text.read()) == (None, b"abc")


def test_names_are_found_and_fixtures_hold_them(paper: Any) -> None:
    made = paper.objects.create(paper_id="p", text=content("abc", "a.txt"))
    assert paper.objects.get(text__startswith="texts/").pk == "p"
    assert paper.objects.get(text=made.text, cover=None).pk == "p"
    text = serializers.serialize("json", [made])
    stored = made._stored
    made.delete()
    (found,) = serializers.deserialize("json", text)
    found.save()
    assert paper.objects.get(pk="p")._stored == stored
    assert pickle.loads(pickle.dumps(made.__dict__["text"].name)) == "texts/a.txt"


def test_an_object_with_a_file_that_was_only_set_can_be_read_again_and_deleted(paper: Any) -> None:
    made = paper.objects.create(paper_id="p", text=content("abc", "a.txt"))
    made.text = content("def", "b.txt")
    made.refresh_from_db()
    assert made.text.name == "texts/a.txt"
    made.text = content("def", "b.txt")
    made.delete()
    assert not paper.objects.exists()


def picture(width: int, height: int) -> Any:
    """A small image that Pillow made."""
    image = pytest.importorskip("PIL.Image")
    held = io.BytesIO()
    image.new("RGB", (width, height)).save(held, "PNG")
    return SimpleUploadedFile("p.png", held.getvalue(), "image/png")


def test_an_image_keeps_its_size_and_forms_take_nothing_else() -> None:
    with forgotten():
        photo = declare(
            "Photo",
            ("PHOTO#{photo_id}", "#METADATA"),
            photo_id=models.UnicodeAttribute(),
            image=models.ImageAttribute(storage=InMemoryStorage(), width_field="width", height_field="height"),
            width=models.IntegerAttribute(null=True),
            height=models.IntegerAttribute(null=True),
        )
        assert photo.check() == []
        made = photo.objects.create(photo_id="p", image=picture(3, 2))
        found = photo.objects.get(pk="p")
        assert (found.image.width, found.width, found.height, made.width) == (3, 3, 2, 3)
        found.image = picture(5, 4)
        assert (found.width, found.height) == (5, 4)
        found.save()
        assert photo.objects.values_list("width", "height").get(pk="p") == (5, 4)
        form_class: Any = modelform_factory(photo, fields=["photo_id", "image"])
        form = form_class({"photo_id": "q"}, {"image": content("abc", "a.png")})
        assert list(form.errors) == ["image"]
