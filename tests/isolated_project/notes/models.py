"""One model in DynamoDB, and one for an SQL database."""

from __future__ import annotations

from typing import ClassVar

from django.db import models as sql

from dynamo_single import models


class Note(models.Model):
    """A note."""

    note_id = models.IdAttribute(prefix="note")
    text = models.UnicodeAttribute(default="")
    expires_at = models.TTLAttribute(null=True)

    class Keys:
        """By its identifier, and all in order."""

        primary = models.Key("NOTE#{note_id}", "#METADATA")
        every = models.IndexKey("gs1", "NOTE", "{note_id}")

    def __str__(self) -> str:
        return self.text


class Row(sql.Model):
    """A row, in projects that have SQL."""

    name = sql.CharField(max_length=20)

    class Meta:
        """No migrations: ``migrate --run-syncdb`` makes the table."""

        ordering: ClassVar[list[str]] = ["name"]

    def __str__(self) -> str:
        return self.name
