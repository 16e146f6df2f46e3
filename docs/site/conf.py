"""The settings of Sphinx, which ``build.py`` runs."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django  # noqa: E402 - it needs the path and the settings

django.setup()

project = "dynamo_single"
html_title = "dynamo_single"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme = "furo"
html_copy_source = False
html_show_sphinx = False
html_permalinks_icon = "#"
myst_heading_anchors = 4
myst_links_external_new_tab = False
#: Links that leave docs/, which the site shows as text.
suppress_warnings = ["myst.header", "docutils"]
autodoc_typehints = "signature"
#: Modules that the environment of the site lacks: django-ninja, and a part of Django 6.1.
autodoc_mock_imports = ["ninja", "pydantic", "django.tasks"]
highlight_language = "python"
