"""The models of the catalog as they would be in an SQL database: imported with a registry of its own only."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.db.models import CASCADE


class Catalog:
    """What every ``Meta`` has: the label of the models in DynamoDB."""

    app_label = "catalog"


class Row(models.Model):
    """The base of all."""

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return str(self.pk)


class Sample(Row):
    """A column of every type."""

    sample_id = models.CharField(max_length=20, primary_key=True)
    text = models.TextField(null=True)  # noqa: DJ001 - as a missing attribute
    email = models.EmailField(null=True)  # noqa: DJ001 - as a missing attribute
    integer = models.BigIntegerField(null=True)
    number = models.FloatField(null=True)
    decimal = models.DecimalField(null=True, max_digits=12, decimal_places=2)
    flag = models.BooleanField(null=True)
    moment = models.DateTimeField(null=True)
    day = models.DateField(null=True)
    time = models.TimeField(null=True)
    duration = models.DurationField(null=True)
    slug = models.SlugField(null=True)  # noqa: DJ001 - as a missing attribute
    url = models.URLField(null=True)  # noqa: DJ001 - as a missing attribute
    address = models.GenericIPAddressField(null=True)
    token = models.UUIDField(null=True)
    json = models.JSONField(null=True)
    data = models.JSONField(null=True)
    things = models.JSONField(null=True)
    words = models.JSONField(null=True)
    blob = models.BinaryField(null=True)
    parent = models.ForeignKey("self", CASCADE, null=True)

    class Meta(Catalog):
        pass


class Estate(Row):
    """Its key here is a number, and there the tenant and the code."""

    tenant = models.CharField(max_length=20)
    code = models.IntegerField()
    name = models.CharField(max_length=20, default="")

    class Meta(Catalog):
        unique_together: ClassVar[tuple[str, ...]] = ("tenant", "code")


class Lot(Row):
    """A child."""

    estate = models.ForeignKey(Estate, CASCADE)
    number = models.IntegerField()
    title = models.CharField(max_length=20, default="")

    class Meta(Catalog):
        pass


class LotRemark(Row):
    """A grandchild."""

    about = models.ForeignKey(Lot, CASCADE)
    remark_id = models.CharField(max_length=20)

    class Meta(Catalog):
        pass


class Aisle(Row):
    """What counts, and is in the trash here too."""

    aisle_id = models.CharField(max_length=20, primary_key=True)
    name = models.CharField(max_length=20)
    deleted_at = models.DateTimeField(null=True)

    class Meta(Catalog):
        pass


class Volume(Row):
    """What is counted, with claims, copies and times."""

    aisle = models.ForeignKey(Aisle, CASCADE)
    number = models.IntegerField()
    title = models.CharField(max_length=40)
    isbn = models.CharField(max_length=20, null=True)  # noqa: DJ001 - as a missing attribute
    slot = models.IntegerField(null=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    deleted_at = models.DateTimeField(null=True)

    class Meta(Catalog):
        pass


class Ticket(Row):
    """What expires."""

    code = models.CharField(max_length=20, primary_key=True)
    expires_at = models.DateTimeField(null=True)

    class Meta(Catalog):
        pass


class GameTag(Row):
    """A word."""

    word = models.CharField(max_length=20, primary_key=True)

    class Meta(Catalog):
        pass


class GamePlayer(Row):
    """A player."""

    username = models.CharField(max_length=20)

    class Meta(Catalog):
        pass


class GameServer(Row):
    """Three many-to-many relations: with a model, without one, and to itself."""

    name = models.CharField(max_length=20)
    players = models.ManyToManyField(GamePlayer, through="GameMember")
    tags = models.ManyToManyField(GameTag)
    links = models.ManyToManyField("self", symmetrical=False)

    class Meta(Catalog):
        pass


class GameMember(Row):
    """An edge with data."""

    server = models.ForeignKey(GameServer, CASCADE)
    player = models.ForeignKey(GamePlayer, CASCADE)
    role = models.CharField(max_length=20)

    class Meta(Catalog):
        pass


class GameFan(Row):
    """A fan."""

    fan_id = models.CharField(max_length=20, primary_key=True)

    class Meta(Catalog):
        pass


class GameGuild(Row):
    """Its edges are checked there."""

    guild_id = models.CharField(max_length=20, primary_key=True)
    fans = models.ManyToManyField(GameFan)

    class Meta(Catalog):
        pass


class Order(Row):
    """What has other names there."""

    buyer = models.CharField(max_length=20)
    number = models.IntegerField()
    about = models.ForeignKey(ContentType, CASCADE, null=True)

    class Meta(Catalog):
        pass
