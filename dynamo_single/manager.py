"""Managers: the querysets that a model's objects come from."""

from __future__ import annotations

from typing import Any, Self, TypeVar

from django.db import models

from dynamo_single.query import Visibility
from dynamo_single.queryset import QuerySet

M = TypeVar("M", bound=models.Model, covariant=True)


class Manager(models.Manager.from_queryset(QuerySet)[M]):  # type: ignore[misc]  # made by Django at run time
    """A model's objects; everything of ``QuerySet`` is here too."""


class SoftDeleteManager(Manager[M]):
    """The objects of a model with soft delete: the live ones, the deleted ones, or all."""

    def __init__(self, visibility: Visibility = "live") -> None:
        super().__init__()
        self.visibility = visibility

    def get_queryset(self) -> Any:
        """A queryset of the manager's kind of objects."""
        return super().get_queryset().with_visibility(self.visibility)
