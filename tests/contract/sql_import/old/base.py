"""The base of all."""

from __future__ import annotations

from django.db import models


class Catalog:
    """The common options of every ``Meta``: the label of the models in DynamoDB."""

    app_label = "catalog"


class Row(models.Model):
    """The base of all."""

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return str(self.pk)
