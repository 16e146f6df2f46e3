"""Checked references."""

from __future__ import annotations

from django.db import models
from django.db.models import CASCADE

from tests.contract.sql_import.old.base import Catalog, Row


class Theatre(Row):
    """A theatre, the target of a checked reference."""

    theatre_id = models.CharField(max_length=20, primary_key=True)
    deleted_at = models.DateTimeField(null=True)

    class Meta(Catalog):
        pass


class Play(Row):
    """The holder of a checked reference."""

    play_id = models.CharField(max_length=20, primary_key=True)
    theatre = models.ForeignKey(Theatre, CASCADE)
    deleted_at = models.DateTimeField(null=True)

    class Meta(Catalog):
        pass
