"""The user service of the scenarios: users and e-mail addresses in sharded partitions."""

from __future__ import annotations

from dynamo_single import models


class Beneficiary(models.Model):
    """Whom users belong to."""

    beneficiary_id = models.UnicodeAttribute(attr_name="beneficiaryId")

    class Keys:
        primary = models.Key("beneficiary", "beneficiaryId#{beneficiary_id}")

    class Meta:
        table = "service"


class ServiceUser(models.SoftDeleteModel):
    """A user, by id, by the time of creation, by beneficiary and by canonical last name."""

    user_id = models.IdAttribute(kind="nanoid", attr_name="userId")
    beneficiary = models.ReferenceAttribute(Beneficiary, on_delete=models.DO_NOTHING, attr_name="beneficiaryId")
    created = models.TimestampAttribute(auto_now_add=True, immutable=True, unit="s")
    first_name = models.UnicodeAttribute(attr_name="firstName")
    first_name_canonical = models.CanonicalAttribute(
        source="first_name", fold="letters", attr_name="firstNameCanonical"
    )
    last_name = models.UnicodeAttribute(attr_name="lastName")
    last_name_canonical = models.CanonicalAttribute(source="last_name", fold="letters", attr_name="lastNameCanonical")
    phone = models.UnicodeAttribute(null=True)
    updated = models.TimestampAttribute(auto_now=True, unit="s")

    class Keys:
        shards = models.Shards("user_id", at="created")
        primary = models.Key("user", "userId#{user_id}", sharded=True)
        by_created = models.IndexKey("gs1", "user", "{created}#{user_id}", sharded=True)
        by_beneficiary = models.IndexKey("gs2", "user#{beneficiary_id}", "{created}#{user_id}", sharded=True)
        by_last_name = models.IndexKey("gs3", "user", "{last_name_canonical}#{user_id}", sharded=True)

    class Meta:
        item_type = "User"
        table = "service"


class ServiceEmail(models.Model):
    """An e-mail address of one user, which never changes."""

    email = models.EmailAttribute(immutable=True)
    user = models.ReferenceAttribute(
        ServiceUser, on_delete=models.DO_NOTHING, attr_name="userId", immutable=True, related_name="emails"
    )
    created = models.TimestampAttribute(auto_now_add=True, immutable=True, unit="s")

    class Keys:
        shards = models.Shards("email", at="created")
        primary = models.Key("email", "email#{email}", sharded=True)
        by_user = models.IndexKey("gs1", "email#{user_id}", "{created}#{email}", sharded=True)

    class Meta:
        item_type = "Email"
        table = "service"


class Visit(models.SoftDeleteModel):
    """A visit, written by many processes: sharded, with a unique value, and listed in two orders."""

    visit_id = models.UnicodeAttribute()
    at = models.TimestampAttribute(immutable=True)
    ticket = models.UnicodeAttribute(null=True, unique=True)
    page = models.UnicodeAttribute(default="/")

    class Keys:
        shards = models.Shards("visit_id", at="at")
        primary = models.Key("visit", "visitId#{visit_id}", sharded=True)
        by_time = models.IndexKey("gs1", "visit", "{at}", sharded=True)
        by_page = models.IndexKey("gs2", "visit#{page}", "{at}#{visit_id}", sharded=True)


class Mailbox(models.SoftDeleteModel):
    """A mailbox with a case-insensitive address: the key and the shards fold it."""

    address = models.EmailAttribute()
    at = models.TimestampAttribute(immutable=True)
    ticket = models.UnicodeAttribute(null=True, unique=True)
    until = models.TTLAttribute(null=True)

    class Keys:
        shards = models.Shards("address", at="at")
        primary = models.Key("mailbox", "address#{address:canonical}", sharded=True)
        by_time = models.IndexKey("gs1", "mailbox", "{at}", sharded=True)


class Alias(models.Model):
    """Found by its key in one place, and listed by an index in shards."""

    address = models.EmailAttribute()
    at = models.TimestampAttribute(immutable=True)

    class Keys:
        shards = models.Shards("address", at="at")
        primary = models.Key("alias#{address:canonical}", "#METADATA")
        by_address = models.IndexKey("gs1", "alias", "{address:canonical}#{at}", sharded=True)
