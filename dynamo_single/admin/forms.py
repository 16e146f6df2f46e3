"""Formsets over rows that come in a key's order."""

from __future__ import annotations

from typing import Any

from django.forms import BaseModelFormSet


class KeyModelFormSet(BaseModelFormSet):  # type: ignore[type-arg]  # not generic at run time
    """Takes its rows as they come: Django would sort them by ``pk``, which few keys serve."""

    def get_queryset(self) -> Any:
        """The rows, read once."""
        if not hasattr(self, "_rows"):
            model: Any = self.model
            self._rows = list(model._default_manager.all() if self.queryset is None else self.queryset)
        return self._rows
