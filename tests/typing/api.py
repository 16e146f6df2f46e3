"""What a checker must see of the public API; ``tests/unit/test_typing.py`` runs mypy on it, and nothing imports it."""

from __future__ import annotations

import datetime
from typing import Any, assert_type

from django.core.files.base import ContentFile
from django.db.models import F, Q
from django.db.models.fields.files import FieldFile, ImageFieldFile
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _
from pynamodb.pagination import ResultIterator

from dynamo_single import models
from dynamo_single.pagination import Page
from project.directory.models import Company, Person


class Note(models.SoftDeleteModel, models.TimestampedModel):
    """A user's model: bases in the other order, lazy labels, a reference by name, ``company_id`` announced."""

    company = models.ReferenceAttribute(Company, related_name="+")
    company_id: str
    author = models.ReferenceAttribute("directory.Person", null=True)
    note_id = models.IdAttribute(prefix="note")
    text = models.UnicodeAttribute(_("text"), help_text=_("What is to be remembered."))
    stars = models.IntegerAttribute(default=0)
    remind_at = models.TimeAttribute(null=True)
    takes = models.DurationAttribute(null=True)
    slug = models.SlugAttribute(null=True)
    source = models.URLAttribute(null=True)
    sender = models.IPAddressAttribute(null=True)
    paper = models.FileAttribute(null=True)
    photo = models.ImageAttribute(null=True)
    summary = models.OneToOneAttribute(Company, null=True, related_name="+")

    class Keys:
        primary = models.Key("COMPANY#{company_id}", "NOTE#{note_id}")

    def __str__(self) -> str:
        return self.text


def an_object_is_of_its_model(person: Person, note: Note) -> None:
    company = Company.objects.get(pk="company-1")
    assert_type(company, Company)
    assert_type(company.company_id, str)
    assert_type(company.name, str)
    assert_type(company.public, bool)
    assert_type(company.founded, datetime.date)
    assert_type(company.created_at, datetime.datetime)
    assert_type(company.is_deleted, bool)
    assert_type(person.company, Company)
    assert_type(person.company.name, str)
    assert_type(note.company_id, str)
    assert_type(note.author, Any)
    assert_type(note.stars, int)
    assert_type(note.remind_at, datetime.time)
    assert_type(note.takes, datetime.timedelta)
    assert_type(note.summary, Company)
    assert_type(note.paper, FieldFile)
    assert_type(note.photo, ImageFieldFile)
    note.paper = ContentFile(b"")
    assert_type((note.slug, note.source, note.sender), tuple[str, str, str])
    assert_type(note.partition_key, str)
    assert_type(company.delete(), tuple[int, dict[str, int]])
    company.save(update_fields=["name"])
    company.restore()


def managers_and_querysets_keep_the_model(company: Company) -> None:
    assert_type(Company.objects, models.Manager[Company])
    found = Company.objects.filter(name__startswith="A")
    assert_type(found, models.QuerySet[Company])
    assert_type(Company.objects.bulk_create([company])[0], Company)
    assert_type(found.bulk_update([company], ["name"]), int)
    assert_type(found.on_progress(print), models.QuerySet[Company])
    company.move(company_id="company-2")
    assert_type(found.order_by("name").allow_scan().consistent(), models.QuerySet[Company])
    assert_type(Company.objects.using_index("by_name"), models.QuerySet[Company])
    assert_type(Company.objects.only("name").defer(None).get(), Company)
    assert_type(Company.objects.prefetch_related("people").select_related(), models.QuerySet[Company])
    assert_type(found[0], Company)
    assert_type(found[:2], models.QuerySet[Company])
    assert_type(found.page(2), Page[Company])
    assert_type(Company.objects.page(2, None, max_requests=3)[0], Company)
    assert_type(found.page(2).next_cursor, str | None)
    assert_type(Company.objects.cursor_for(company, before=True), str)
    assert_type(list(found), list[Company])
    assert_type(found.first(), Company | None)
    assert_type(found.count(), int)
    assert_type(found.allow_in_memory(100).order_by("stock"), models.QuerySet[Company])
    assert_type(Company.objects.allow_in_memory(), models.QuerySet[Company])
    assert_type(Company.objects.allow_reads(100), models.QuerySet[Company])
    assert_type(found.aggregate(), dict[str, Any])
    assert_type(Company.objects.aggregate(), dict[str, Any])
    assert_type(found.explain(), str)
    assert_type(Company.objects.create(name="Acme"), Company)
    assert_type(Company.objects.get_or_create(name="Acme"), tuple[Company, bool])
    assert_type(Company.deleted_objects.all(), models.QuerySet[Company])
    assert_type(Company.all_objects.last(), Company | None)
    assert_type(company.people.all(), models.QuerySet[Any])


def pynamodb_still_works(person: Person) -> None:
    assert_type(Person.query("COMPANY#1", Person.sort_key.startswith("PEOPLE#")), ResultIterator[Person])
    assert_type(Person.scan(filter_condition=Person.name == "Mike"), ResultIterator[Person])
    assert_type(Person.get("COMPANY#1", "PEOPLE#2"), Person)
    assert_type(Person.count("COMPANY#1"), int)
    with Person.batch_write() as batch:
        batch.save(person)


def mistakes_are_found(company: Company) -> None:
    print(company.nmae)  # type: ignore[attr-defined]  # must be refused, or mypy calls the comment unused
    print(Company.objects.get().nmae)  # type: ignore[attr-defined]  # as above
    company.name = 3  # type: ignore[assignment]  # as above
    with Person.batch_write() as batch:
        batch.save(company)  # type: ignore[arg-type]  # as above


def attributes_take_changes_of_what_is_stored(note: Note, person: Person) -> None:
    note.stars = F("stars") + 1
    note.created_at = Now()
    note.text = "text"
    note.save(condition=Q(stars=1))
    note.save(condition=Note.stars > 1)
    assert_type(note.stars, int)
    assert_type(person.delete(condition=Q(name="x")), tuple[int, dict[str, int]])
