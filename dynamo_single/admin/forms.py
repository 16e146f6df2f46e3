"""Formsets over rows that come in a key's order."""

from __future__ import annotations

from typing import Any

from django.forms import BaseModelFormSet


class KeyModelFormSet(BaseModelFormSet):  # type: ignore[type-arg]  # not generic at run time
    """Takes its rows as they come: Django would sort them by ``pk``, which few keys serve."""

    def get_queryset(self) -> Any:
        """The rows, read once."""
        if not hasattr(self, "_rows"):
            self._rows = list(self.queryset if self.queryset is not None else self.model._default_manager.all())
        return self._rows
