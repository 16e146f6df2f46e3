"""Widgets for choosing several of many, as Django's ``filter_horizontal`` shows them.

Django gives those to many-to-many fields only. Nothing here knows models.
"""

from __future__ import annotations

from typing import Any

from django.contrib.admin.widgets import FilteredSelectMultiple
from django.utils.html import format_html
from django.utils.safestring import SafeString

from dynamo_single.permission_fields import ShowsAllChosen


class FilteredSelect(FilteredSelectMultiple):
    """Two lists with a search: what there is, and what is chosen. ``FilteredSelect(verbose_name)``."""

    def __init__(self, verbose_name: Any, is_stacked: bool = False, attrs: Any = None, choices: Any = ()) -> None:
        super().__init__(verbose_name, is_stacked, attrs, choices)

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        """In a box of its own, as the script that makes the two lists expects; else they come before their label."""
        return format_html('<div class="related-widget-wrapper">{}</div>', super().render(name, value, attrs, renderer))


class PermissionsFilter(ShowsAllChosen, FilteredSelect):
    """The permissions."""
