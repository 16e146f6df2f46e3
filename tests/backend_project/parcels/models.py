"""SQL models that refer to models in DynamoDB, in the ways that apps do."""

from django.conf import settings
from django.db import models

from project.directory.models import Company, Person


class Parcel(models.Model):
    """A parcel to a company, which is deleted with it."""

    company = models.ForeignKey(Company, models.CASCADE, related_name="parcels")

    def __str__(self) -> str:
        return f"Parcel {self.pk}"


class Label(models.Model):
    """A label, which is deleted with its parcel."""

    parcel = models.ForeignKey(Parcel, models.CASCADE)

    def __str__(self) -> str:
        return f"Label {self.pk}"


class Invoice(models.Model):
    """An invoice, which prevents the deletion of a company."""

    company = models.ForeignKey(Company, models.PROTECT)

    def __str__(self) -> str:
        return f"Invoice {self.pk}"


class Visit(models.Model):
    """A visit, which stays without its company, and is deleted with its person, whose key has two parts."""

    company = models.ForeignKey(Company, models.SET_NULL, null=True)
    person = models.ForeignKey(Person, models.CASCADE, null=True, related_name="+")

    def __str__(self) -> str:
        return f"Visit {self.pk}"


class Token(models.Model):
    """As REST framework's: one for each user."""

    key = models.CharField(max_length=40, primary_key=True)
    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="token")

    def __str__(self) -> str:
        return self.key
