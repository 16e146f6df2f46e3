"""SQL models with references to models in DynamoDB that no column, or no database, can follow."""

import django
from django.db import models as sql

from dynamo_single import models
from project.directory.models import Company


class Day(models.Model):
    """A model whose items are stored by day."""

    day = models.DateAttribute()
    name = models.UnicodeAttribute(unique=True)

    class Keys:
        primary = models.Key("DAY#{day}", "#METADATA")


class Plan(sql.Model):
    """Refers to a day, which no column can hold, and to another by its name."""

    day = sql.ForeignKey(Day, sql.CASCADE, related_name="+")
    named = sql.ForeignKey(Day, sql.CASCADE, to_field="name", related_name="+")

    def __str__(self) -> str:
        return f"Plan {self.pk}"


class Fair(sql.Model):
    """Is visited by companies."""

    companies = sql.ManyToManyField(Company, related_name="+")

    def __str__(self) -> str:
        return f"Fair {self.pk}"


if django.VERSION >= (6, 1):

    class Stall(sql.Model):
        """Is left to the database."""

        company = sql.ForeignKey(Company, sql.DB_CASCADE, related_name="+")

        def __str__(self) -> str:
            return f"Stall {self.pk}"
