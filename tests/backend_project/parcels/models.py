"""An SQL model that refers to a model in DynamoDB."""

from django.db import models

from project.directory.models import Company


class Parcel(models.Model):
    """Something that was sent to a company."""

    company = models.ForeignKey(Company, models.DO_NOTHING, related_name="+")

    def __str__(self) -> str:
        return f"Parcel {self.pk}"
