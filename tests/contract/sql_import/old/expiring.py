"""Rows that expire."""

from __future__ import annotations

from django.db import models

from tests.contract.sql_import.old.base import Catalog, Row


class Ticket(Row):
    """An expiring ticket."""

    code = models.CharField(max_length=20, primary_key=True)
    expires_at = models.DateTimeField(null=True)

    class Meta(Catalog):
        pass
