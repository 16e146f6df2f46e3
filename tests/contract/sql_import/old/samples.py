"""A column of every type."""

from __future__ import annotations

from django.db import models
from django.db.models import CASCADE

from tests.contract.sql_import.old.base import Catalog, Row


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
