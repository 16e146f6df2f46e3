"""Measurements, one folder a question, each beside a baseline."""

from __future__ import annotations

import os

import django
from django.conf import settings


def set_up(module: str = "tests.settings", *apps: str) -> None:
    """Set Django up with these settings, unless the environment names others, and with further apps.

    Each folder does so when it is imported.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", module)
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, *apps]
    django.setup()
