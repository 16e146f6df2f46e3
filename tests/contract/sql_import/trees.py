"""Models that refer to themselves and to each other, and one with multi-table inheritance."""

from __future__ import annotations

from django.db import models
from django.db.models import CASCADE


class Node(models.Model):
    """An object below a parent of the same model."""

    node_id = models.CharField(max_length=20, primary_key=True)
    parent = models.ForeignKey("self", CASCADE, null=True)
    leaf = models.ForeignKey("Leaf", CASCADE, null=True)

    class Meta:
        app_label = "catalog"

    def __str__(self) -> str:
        return self.node_id


class Leaf(models.Model):
    """The other half of a circle."""

    leaf_id = models.CharField(max_length=20, primary_key=True)
    node = models.ForeignKey(Node, CASCADE, null=True)

    class Meta:
        app_label = "catalog"

    def __str__(self) -> str:
        return self.leaf_id


class Bud(Leaf):
    """A leaf with a column of its own, in a table of its own."""

    colour = models.CharField(max_length=20)

    class Meta:
        app_label = "catalog"
