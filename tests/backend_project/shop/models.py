"""One model for an SQL database, with migrations."""

from django.db import models


class Thing(models.Model):
    """Something that would be a row."""

    name = models.CharField(max_length=20)

    def __str__(self) -> str:
        return self.name
