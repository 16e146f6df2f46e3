"""Companies with their people and offices: one item collection for each company."""

from __future__ import annotations

from dynamo_single import models


class Company(models.TimestampedModel, models.SoftDeleteModel):
    """A company; its partition also holds its people and offices."""

    company_id = models.IdAttribute(prefix="company")
    name = models.UnicodeAttribute(max_length=120)
    stock = models.UnicodeAttribute("ticker", null=True, max_length=12)
    founded = models.DateAttribute(null=True)
    public = models.BooleanAttribute("publicly traded", default=False)

    people = models.Children("Person")
    offices = models.Children("Office")

    class Keys:
        primary = models.Key("COMPANY#{company_id}", "#METADATA")
        by_name = models.IndexKey("gs1", "COMPANY", "{name}#{company_id}")

    class Meta:
        verbose_name_plural = "companies"

    def __str__(self) -> str:
        return self.name


class Person(models.TimestampedModel, models.SoftDeleteModel):
    """A person who works at a company."""

    company = models.ReferenceAttribute(Company, on_delete=models.CASCADE)
    person_id = models.IdAttribute(prefix="person")
    name = models.UnicodeAttribute(max_length=120)
    email = models.EmailAttribute("e-mail address", null=True, unique=True, canonical=True)
    role = models.UnicodeAttribute(
        default="member", choices=[("member", "Member"), ("manager", "Manager"), ("founder", "Founder")]
    )

    class Keys:
        primary = models.Key("COMPANY#{company_id}", "PEOPLE#{person_id}")
        by_id = models.IndexKey("gs1", "PERSON#{person_id}", "#METADATA")
        by_name = models.IndexKey("gs2", "PERSON", "{name}#{person_id}")

    class Meta:
        verbose_name_plural = "people"

    def __str__(self) -> str:
        return self.name


class Opening:
    """The opening hours of an office on a day of the week."""

    day = models.UnicodeAttribute(
        choices=[(day, day) for day in ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")]
    )
    opens = models.TimeAttribute()
    closes = models.TimeAttribute()


class Office(models.TimestampedModel, models.SoftDeleteModel):
    """A place where a company works."""

    company = models.ReferenceAttribute(Company, on_delete=models.CASCADE)
    office_id = models.IdAttribute(prefix="office")
    city = models.UnicodeAttribute(max_length=80)
    address = models.UnicodeAttribute(blank=True, multiline=True)
    opened = models.DateAttribute(null=True)
    hours = models.ListAttribute("opening hours", schema=Opening, null=True)

    class Keys:
        primary = models.Key("COMPANY#{company_id}", "OFFICE#{office_id}")
        by_city = models.IndexKey("gs1", "OFFICE", "{city}#{office_id}")

    def __str__(self) -> str:
        return self.city
