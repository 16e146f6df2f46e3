"""The data of ``tests.catalog.models.Order`` and the demo's ``Company`` as Django models."""

from __future__ import annotations

from django.db import models


class SqlOrder(models.Model):
    """An order. The keys of DynamoDB's item are indexes here."""

    customer = models.CharField(max_length=100)
    number = models.IntegerField()
    placed_at = models.DateTimeField(null=True, db_index=True)
    status = models.CharField(max_length=100, default="open")
    coupon = models.CharField(max_length=100, default="", db_index=True)
    total = models.DecimalField(max_digits=12, decimal_places=2, null=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("customer", "number"), name="one_number_a_customer"),)

    def __str__(self) -> str:
        return f"{self.customer} {self.number}"


class SqlCompany(models.Model):
    """A company as the demo's changelist shows it."""

    name = models.CharField(max_length=120, db_index=True)
    stock = models.CharField(max_length=12, default="")
    founded = models.DateField(null=True)
    public = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name
