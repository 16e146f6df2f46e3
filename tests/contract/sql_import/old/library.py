"""Counted and copied rows."""

from __future__ import annotations

from django.db import models
from django.db.models import CASCADE

from tests.contract.sql_import.old.base import Catalog, Row


class Aisle(Row):
    """An aisle, which counts, and has a trash here too."""

    aisle_id = models.CharField(max_length=20, primary_key=True)
    name = models.CharField(max_length=20)
    deleted_at = models.DateTimeField(null=True)

    class Meta(Catalog):
        pass


class Volume(Row):
    """A counted volume with claims, copies and times."""

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
