"""Measurements, one folder a question, each beside a baseline."""

from __future__ import annotations

import os

import django


def set_up(settings: str = "tests.settings") -> None:
    """Set Django up with these settings, unless the environment names others; what each folder does when imported."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", settings)
    django.setup()
