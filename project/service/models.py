"""Users and e-mail addresses of a large service. Lists are divided into shards, which are read in parallel."""

from __future__ import annotations

from dynamo_single import clock, models


class Beneficiary(models.Model):
    """An organization to which users belong."""

    beneficiary_id = models.SlugAttribute(attr_name="beneficiaryId")
    name = models.UnicodeAttribute(max_length=80)

    class Keys:
        primary = models.Key("beneficiary", "beneficiaryId#{beneficiary_id}")

    class Meta:
        verbose_name_plural = "beneficiaries"

    def __str__(self) -> str:
        return self.name


class User(models.Model):
    """A user of the service, with keys by id, time of creation, beneficiary and canonical last name."""

    user_id = models.IdAttribute(kind="nanoid", attr_name="userId")
    beneficiary = models.ReferenceAttribute(Beneficiary, on_delete=models.DO_NOTHING, attr_name="beneficiaryId")
    created = models.TimestampAttribute(default=clock.now, immutable=True, editable=False, unit="s")
    first_name = models.UnicodeAttribute(max_length=80, attr_name="firstName")
    first_name_canonical = models.CanonicalAttribute(
        source="first_name", fold="letters", attr_name="firstNameCanonical"
    )
    last_name = models.UnicodeAttribute(max_length=80, attr_name="lastName")
    last_name_canonical = models.CanonicalAttribute(source="last_name", fold="letters", attr_name="lastNameCanonical")
    phone = models.UnicodeAttribute(null=True, blank=True, max_length=16)
    updated = models.TimestampAttribute(auto_now=True, unit="s")

    class Keys:
        shards = models.Shards("user_id", at="created")
        primary = models.Key("user", "userId#{user_id}", sharded=True)
        by_created = models.IndexKey("gs1", "user", "{created}#{user_id}", sharded=True)
        by_beneficiary = models.IndexKey("gs2", "user#{beneficiary_id}", "{created}#{user_id}", sharded=True)
        by_last_name = models.IndexKey("gs3", "user", "{last_name_canonical}#{user_id}", sharded=True)

    class Meta:
        item_type = "service.User"  # accounts.User is stored as User
        verbose_name = "service user"

    def __str__(self) -> str:
        return f"{self.first_name} {self.last_name}"


class Email(models.Model):
    """An e-mail address of one user. It never changes."""

    email = models.EmailAttribute("e-mail address", immutable=True)
    user = models.ReferenceAttribute(
        User, on_delete=models.DO_NOTHING, attr_name="userId", immutable=True, related_name="emails"
    )
    created = models.TimestampAttribute(default=clock.now, immutable=True, editable=False, unit="s")

    class Keys:
        shards = models.Shards("email", at="created")
        primary = models.Key("email", "email#{email}", sharded=True)
        by_user = models.IndexKey("gs1", "email#{user_id}", "{created}#{email}")

    class Meta:
        verbose_name = "e-mail address"
        verbose_name_plural = "e-mail addresses"

    def __str__(self) -> str:
        return self.email
