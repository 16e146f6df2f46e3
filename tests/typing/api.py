"""The types that a checker must infer for the public API; ``tests/unit/test_typing.py`` runs mypy and pyright on it.

Nothing imports it.
"""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from typing import Any, ClassVar, Literal, Self, assert_type

from django.contrib import admin
from django.core.files.base import ContentFile
from django.db.models import F, Q
from django.db.models.fields.files import FieldFile, ImageFieldFile
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.views.generic import ListView
from pynamodb.pagination import ResultIterator

from dynamo_single import models
from dynamo_single.admin import DynamoModelAdmin
from dynamo_single.pagination import CursorListMixin, CursorPage, Page
from project.directory.models import Company, Person


class Loud(models.UnicodeAttribute):
    """A custom attribute that does not declare ``null``."""


class Note(models.SoftDeleteModel, models.TimestampedModel):
    """A user's model: bases in the other order, lazy labels, a reference by name, ``company_id`` announced."""

    company = models.ReferenceAttribute(Company, on_delete=models.DO_NOTHING, related_name="+")
    company_id: str
    author = models.ReferenceAttribute("directory.Person", on_delete=models.DO_NOTHING, null=True)
    editor = models.ReferenceAttribute["Person"]("directory.Person", on_delete=models.DO_NOTHING)
    reader = models.ReferenceAttribute["Person", Literal[True]](
        "directory.Person", on_delete=models.DO_NOTHING, null=True
    )
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
    summary = models.OneToOneAttribute(Company, on_delete=models.DO_NOTHING, null=True, related_name="+")
    address = models.EmailAttribute("address", null=True, max_length=80)
    code = models.IdAttribute(prefix="c", null=True)
    rank = models.IntegerAttribute(null=True)
    price = models.DecimalAttribute(null=True, max_digits=9)
    weight = models.NumberAttribute(null=True)
    done = models.BooleanAttribute(null=True)
    key = models.UUIDAttribute(null=True)
    raw = models.BinaryAttribute(null=True)
    seen_at = models.TimestampAttribute(null=True)
    ends_at = models.TTLAttribute()
    settings = models.MapAttribute(null=True)
    lines = models.ListAttribute(default=list)
    anything = models.JSONAttribute()
    tags = models.UnicodeSetAttribute()
    version = models.VersionAttribute()
    folded = models.CanonicalAttribute(source="text")
    loud = Loud(null=True)

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
    assert_type(company.founded, datetime.date | None)
    assert_type(company.created_at, datetime.datetime)
    assert_type(company.is_deleted, bool)
    assert_type(person.company, Company)
    assert_type(person.company.name, str)
    assert_type(note.company_id, str)
    assert_type(note.author, Any | None)
    assert_type(note.editor, Person)
    assert_type(note.reader, Person | None)
    assert_type(note.stars, int)
    assert_type(note.summary, Company | None)
    assert_type(note.paper, FieldFile)
    assert_type(note.photo, ImageFieldFile)
    note.paper = ContentFile(b"")
    assert_type(note.partition_key, str)
    assert_type(company.delete(), tuple[int, dict[str, int]])
    company.save(update_fields=["name"])
    company.restore()


def what_may_be_null_may_be_none(note: Note) -> None:
    assert_type(note.remind_at, datetime.time | None)
    assert_type(note.takes, datetime.timedelta | None)
    assert_type((note.slug, note.source, note.sender), tuple[str | None, str | None, str | None])
    assert_type((note.address, note.code), tuple[str | None, str | None])
    assert_type((note.rank, note.price, note.weight), tuple[int | None, Decimal | None, float | None])
    assert_type((note.done, note.key, note.raw), tuple[bool | None, uuid.UUID | None, bytes | None])
    assert_type((note.seen_at, note.deleted_at), tuple[datetime.datetime | None, datetime.datetime | None])
    assert_type(note.settings, dict[str, Any] | None)
    if note.rank is not None:
        assert_type(note.rank, int)
    note.rank = None


def some_attributes_may_always_be_none(note: Note) -> None:
    assert_type(note.ends_at, datetime.datetime | None)
    assert_type(note.tags, set[str] | None)
    assert_type((note.version, note.folded), tuple[int | None, str | None])


def others_are_never_none(note: Note) -> None:
    assert_type((note.text, note.note_id), tuple[str, str])
    assert_type(note.lines, list[Any])
    assert_type(note.anything, Any)
    assert_type(note.updated_at, datetime.datetime)
    assert_type(note.loud, str)


def a_class_gives_the_attribute() -> None:
    of_text: models.UnicodeAttribute = Note.text
    assert_type(of_text.multiline, bool)
    assert_type(Note.rank, models.IntegerAttribute[Literal[True]])
    of_a_number: models.IntegerAttribute = Note.rank
    assert_type(of_a_number.null, bool)


def a_wrong_null_is_found() -> None:
    models.ReferenceAttribute["Person"]("directory.Person", on_delete=models.DO_NOTHING, null=True)  # type: ignore[arg-type]  # says Person alone


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
    for each in found:
        assert_type(each, Company)
    for each in Company.objects.iterator():
        assert_type(each, Company)


async def the_asynchronous_twins_do_too(company: Company) -> None:
    found = Company.objects.filter(name__startswith="A")
    assert_type(await Company.objects.aget(pk="company-1"), Company)
    assert_type(await Company.objects.acreate(name="Acme"), Company)
    assert_type(await Company.objects.aget_or_create(name="Acme"), tuple[Company, bool])
    assert_type(await found.afirst(), Company | None)
    assert_type(await found.acount(), int)
    assert_type(await found.apage(2), Page[Company])
    assert_type(await Company.objects.apage(2), Page[Company])
    assert_type(await Company.objects.ain_bulk(["company-1"]), dict[Any, Company])
    async for each in found:
        assert_type(each, Company)
    async for each in Company.objects.aiterator():
        assert_type(each, Company)
    await company.asave(update_fields=["name"])


class FirmQuerySet(models.QuerySet["Firm"]):
    """A user's queryset."""

    def in_town(self, town: str) -> Self:
        return self.filter(town=town)


class FirmManager(models.Manager["Firm"]):
    """A user's manager, whose querysets are of the user's class too."""

    def get_queryset(self) -> FirmQuerySet:
        return FirmQuerySet(self.model)

    def in_town(self, town: str) -> FirmQuerySet:
        return self.get_queryset().in_town(town)


class Firm(models.SoftDeleteModel):
    """A user's model with managers of their own, and with children of a model that is declared later."""

    firm_id = models.IdAttribute(prefix="firm")
    town = models.UnicodeAttribute()

    objects = FirmManager()
    by_town = FirmQuerySet.as_manager()
    made = models.Manager.from_queryset(FirmQuerySet)()
    live: ClassVar[models.SoftDeleteManager[Firm]] = models.SoftDeleteManager("live")

    branches = models.Children["Branch"]("Branch")
    companies = models.Children(Company)
    people = models.Children("directory.Person")

    class Keys:
        primary = models.Key("FIRM#{firm_id}", "#METADATA")

    def __str__(self) -> str:
        return self.town


class Branch(models.Model):
    """A child, whose model's manager is a queryset's."""

    firm = models.ReferenceAttribute(Firm, on_delete=models.DO_NOTHING)
    number = models.IntegerAttribute()

    objects = FirmQuerySet.as_manager()

    class Keys:
        primary = models.Key("FIRM#{firm_id}", "BRANCH#{number}")

    def __str__(self) -> str:
        return str(self.number)


def managers_of_ones_own_are_known() -> None:
    assert_type(Firm.objects, FirmManager)
    assert_type(Firm.objects.in_town("Ulm").get(), Firm)
    assert_type(Firm.objects.filter(town="Ulm"), models.QuerySet[Firm])
    assert_type(Firm.objects.create(town="Ulm"), Firm)
    assert_type(Firm.live.page(3), Page[Firm])
    assert_type(Firm.deleted_objects.all(), models.QuerySet[Firm])


def so_are_those_of_a_queryset_of_ones_own() -> None:
    assert_type(Firm.by_town.in_town("Ulm").filter(firm_id="firm-1").in_town("Bonn"), FirmQuerySet)
    assert_type(Firm.by_town.first(), Firm | None)
    assert_type(Firm.made.in_town("Ulm").get(), Firm)
    assert_type(Firm.made.create(town="Ulm"), Firm)
    assert_type(Branch.objects.in_town("Ulm"), FirmQuerySet)


def children_are_of_their_model(firm: Firm) -> None:
    assert_type(firm.branches.all(), models.QuerySet[Branch])
    assert_type(firm.branches.create(number=3), Branch)
    assert_type(firm.companies.first(), Company | None)
    assert_type(firm.people.all(), models.QuerySet[Any])
    assert_type(Firm.branches, models.Children[Branch])


class Notes(CursorListMixin, ListView[Note]):
    """A user's list view."""

    paginate_by = 20

    def get_queryset(self) -> models.QuerySet[Note]:
        return Note.objects.filter(stars=5)


class NoteAdmin(DynamoModelAdmin[Note]):
    """A user's admin, of a model that checkers know as well."""

    list_display = ("text", "stars")

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Note]:
        found = super().get_queryset(request)
        assert_type(found, models.QuerySet[Note])
        return found.filter(stars=5).allow_in_memory()


class Memo(models.Record):
    """A user's record."""

    topic = models.ExtractedAttribute("data__topic")
    folded = models.CanonicalAttribute(source="id")

    class Data:
        topic = models.UnicodeAttribute(null=True)

    class Keys(models.Record.Keys):
        by_topic = models.IndexKey("gs1", "MEMO#{topic}", "{id}")


def records_have_the_types_of_their_attributes(memo: Memo) -> None:
    assert_type(memo.id, str)
    assert_type(memo.data, dict[str, Any])
    assert_type(memo.topic, Any)
    assert_type(memo.folded, str | None)
    assert_type(memo.created_at, datetime.datetime)
    assert_type(memo.deleted_at, datetime.datetime | None)
    assert_type(Memo.deleted_objects.get(), Memo)
    assert_type(Memo.objects.filter(topic="x").first(), Memo | None)


@admin.register(Firm)
class FirmAdmin(DynamoModelAdmin):
    """A user's admin, whose model Django alone knows."""

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Firm]:
        return super().get_queryset(request).using_index("by_town")


def views_and_the_admin_know_their_model(view: Notes, note_admin: NoteAdmin, request: HttpRequest) -> None:
    assert_type(view.get_queryset(), models.QuerySet[Note])
    assert_type(view.paginate_queryset(Note.objects.all(), 20)[1], CursorPage)
    assert_type(note_admin.get_queryset(request), models.QuerySet[Note])
    assert_type(note_admin.get_object(request, "note-1"), Note | None)


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
    print(Company.objects.fliter(name="Acme"))  # type: ignore[attr-defined]  # as above
    print(Firm.by_town.in_twon("Ulm"))  # type: ignore[attr-defined]  # as above
    print(company.stock.lower())  # type: ignore[union-attr]  # it may be None
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
