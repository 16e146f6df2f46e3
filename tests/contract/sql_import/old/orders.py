"""Columns with other names."""

from __future__ import annotations

from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.db.models import CASCADE

from tests.contract.sql_import.old.base import Catalog, Row


class Order(Row):
    """An order, which has other names in DynamoDB."""

    buyer = models.CharField(max_length=20)
    number = models.IntegerField()
    about = models.ForeignKey(ContentType, CASCADE, null=True)

    class Meta(Catalog):
        pass
