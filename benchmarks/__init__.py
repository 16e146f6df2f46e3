"""Measurements, one folder a question, each beside a baseline. Importing this package sets Django up."""

from __future__ import annotations

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django.setup()
