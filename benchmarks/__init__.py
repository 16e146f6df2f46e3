"""Benchmarks, one folder each. Each compares its results with a baseline."""

from __future__ import annotations

import os

import django
from django.conf import settings


def set_up(module: str = "tests.settings", *apps: str) -> None:
    """Set up Django with these settings, unless the environment names others, and with additional apps.

    Each folder calls this on import.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", module)
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, *apps]
    django.setup()
