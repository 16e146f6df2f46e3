"""The stored sample of a table, from which the admin draws its pictures."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from dynamo_single import models
from dynamo_single.conf import alias_of_own_models


class TableSample(models.Model):
    """The contents of a sample of a table: sizes and numbers by type and partition, and the keys of some items.

    ``found`` is at most about 100 KB. A new sample replaces it.
    """

    alias = models.UnicodeAttribute(_("table"))
    taken_at = models.TimestampAttribute(_("taken"))
    found: Any = models.JSONAttribute(_("contents"))

    class Keys:
        primary = models.Key("TABLESAMPLE#{alias}", "#METADATA")

    class Meta:
        app_label = "dynamo_single"
        table = alias_of_own_models()
        verbose_name = _("sample of a table")
        verbose_name_plural = _("samples of tables")
