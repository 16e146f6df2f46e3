"""Rows whose keys have several parts there."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import CASCADE

from tests.contract.sql_import.old.base import Catalog, Row


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
