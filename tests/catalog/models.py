"""Models that only the tests need: every attribute type, the field pattern, a record schema, expiring items."""

from __future__ import annotations

from dynamo_single import models
from tests.catalog import (  # noqa: F401 - their models belong to this app
    boards,
    chat,
    clubs,
    kinds,
    library,
    places,
    queues,
    records,
    safes,
    seats,
    servers,
    service,
    shops,
    stocks,
    studios,
    tenants,
)


class Sample(models.Model):
    """One attribute of every type."""

    sample_id = models.IdAttribute(prefix="sample")
    text = models.UnicodeAttribute(null=True, max_length=40)
    email = models.EmailAttribute(null=True)
    integer = models.IntegerAttribute(null=True)
    number = models.NumberAttribute(null=True)
    decimal = models.DecimalAttribute(null=True, max_digits=12, decimal_places=2)
    flag = models.BooleanAttribute(null=True)
    moment = models.TimestampAttribute(null=True)
    day = models.DateAttribute(null=True)
    time = models.TimeAttribute(null=True)
    duration = models.DurationAttribute(null=True)
    slug = models.SlugAttribute(null=True)
    url = models.URLAttribute(null=True)
    address = models.IPAddressAttribute(null=True)
    token = models.UUIDAttribute(null=True, secret=False)
    json = models.JSONAttribute(null=True)
    data = models.MapAttribute(null=True)
    things = models.ListAttribute(null=True)
    words = models.UnicodeSetAttribute()
    numbers = models.NumberSetAttribute()
    blobs = models.BinarySetAttribute()
    blob = models.BinaryAttribute(null=True)
    parent = models.ReferenceAttribute("catalog.Sample", on_delete=models.DO_NOTHING, null=True)

    class Keys:
        primary = models.Key("SAMPLE#{sample_id}", "#METADATA")
        listed = models.IndexKey("gs1", "SAMPLE", "{sample_id}")


class Firm(models.Model):
    """The root of the field pattern, with the prefixes and the separator that its table has."""

    firm_id = models.UnicodeAttribute(attr_name="id")
    name = models.UnicodeAttribute()
    stock = models.UnicodeAttribute()

    staff = models.Children("Employee")
    sites = models.Children("Site")

    class Keys:
        primary = models.Key("{firm_id}", "root_{firm_id}")


class Employee(models.Model):
    """One element of the list of people."""

    firm = models.ReferenceAttribute(Firm, on_delete=models.DO_NOTHING)
    employee_id = models.UnicodeAttribute(attr_name="pid")
    name = models.UnicodeAttribute(null=True)

    class Keys:
        primary = models.Key("{firm_id}", "people_{employee_id}")
        by_id = models.IndexKey("gs1", "people_{employee_id}", "{firm_id}")


class Site(models.Model):
    """One element of the list of offices."""

    firm = models.ReferenceAttribute(Firm, on_delete=models.DO_NOTHING)
    site_id = models.UnicodeAttribute()

    class Keys:
        primary = models.Key("{firm_id}", "office_{site_id}")
        by_id = models.IndexKey("gs1", "office_{site_id}", "{firm_id}")


class Product(models.TimestampedModel, models.SoftDeleteModel):
    """The record schema: an identifier, a map that holds the core, and metadata."""

    product_id = models.IdAttribute(prefix="product", uuid_version=1, attr_name="id")
    data = models.MapAttribute(default=dict)

    class Keys:
        primary = models.Key("{product_id}", "#RECORD")


class Order(models.Model):
    """Numbers and datetimes in a sort key, and an optional part."""

    customer = models.UnicodeAttribute()
    number = models.IntegerAttribute()
    placed_at = models.TimestampAttribute(null=True)
    status = models.UnicodeAttribute(default="open")
    coupon = models.UnicodeAttribute(null=True)
    total = models.DecimalAttribute(null=True)

    class Keys:
        primary = models.Key("CUSTOMER#{customer}", "ORDER#{number}")
        by_time = models.IndexKey("gs1", "ORDER", "{placed_at}#{customer}#{number}")
        by_coupon = models.IndexKey("gs2", "COUPON#{coupon}", "{customer}#{number}")


class Ticket(models.Model):
    """Items that expire."""

    code = models.UnicodeAttribute()
    expires_at = models.TTLAttribute()

    class Keys:
        primary = models.Key("TICKET#{code}", "#METADATA")
        listed = models.IndexKey("gs1", "TICKET", "{code}")


class Coupon(models.Model):
    """Items that expire and hold a unique value."""

    code = models.UnicodeAttribute()
    email = models.EmailAttribute(unique=True)
    expires_at = models.TTLAttribute()

    class Keys:
        primary = models.Key("COUPON#{code}", "#METADATA")


class Member(models.SoftDeleteModel):
    """Two unique attributes, one of them without regard to case."""

    member_id = models.IdAttribute()
    email = models.EmailAttribute(unique=True, canonical=True)
    badge = models.IntegerAttribute(null=True, unique=True)
    name = models.UnicodeAttribute(default="")

    class Keys:
        primary = models.Key("MEMBER#{member_id}", "#METADATA")
        listed = models.IndexKey("gs1", "MEMBER", "{email:canonical}")


class Entry(models.SoftDeleteModel):
    """Everything that can make a result wrong: optional parts, numbers, datetimes, deleted and expired items."""

    shelf = models.UnicodeAttribute()
    slot = models.IntegerAttribute()
    title = models.UnicodeAttribute(null=True)
    score = models.DecimalAttribute(null=True)
    seen_at = models.TimestampAttribute(null=True)
    expires_at = models.TTLAttribute()

    class Keys:
        primary = models.Key("SHELF#{shelf}", "ENTRY#{slot}")
        by_title = models.IndexKey("gs1", "ENTRY", "{title}#{shelf}#{slot}")
        by_score = models.IndexKey("gs2", "SCORE#{shelf}", "{score}#{slot}")


class Resident(models.SoftDeleteModel):
    """Names with case-insensitive lookups, by two kinds of copies."""

    resident_id = models.IdAttribute()
    last_name = models.UnicodeAttribute(attr_name="lastName")
    nickname = models.UnicodeAttribute(null=True)
    room = models.IntegerAttribute(default=0)
    last_name_canonical = models.CanonicalAttribute(source="last_name", fold="letters", attr_name="lastNameCanonical")
    nickname_canonical = models.CanonicalAttribute(source="nickname", attr_name="nicknameCanonical")

    class Keys:
        primary = models.Key("RESIDENT#{resident_id}", "#METADATA")
        by_last_name = models.IndexKey("gs1", "RESIDENT", "{last_name_canonical}#{resident_id}")
