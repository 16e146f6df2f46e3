"""The pages in each language that has a catalog: no page mixes it with English."""

from __future__ import annotations

import gettext
import re
from pathlib import Path

import django
import pytest
from django.test import override_settings
from django.utils.text import capfirst
from django.utils.translation import override, to_language

import dynamo_single
from dynamo_single.table import Table
from tests.contract.admin.test_admin_texts import PAGES, PANEL, World
from tests.contract.conftest import superuser
from tests.contract.pseudo import codes, names, untranslated
from tests.deep import deep
from tests.ready import table_ready

OURS = Path(dynamo_single.__file__).parent / "locale"
DJANGO = Path(django.__file__).parent / "contrib/admin/locale"
LANGUAGES = sorted(folder.name for folder in OURS.iterdir() if folder.is_dir())


def english(language: str) -> set[str]:
    """Return the English strings of pages that differ from a language's translations."""
    found: set[str] = set()
    words: set[str] = set()
    for folder in (OURS, DJANGO):
        with (folder / language / "LC_MESSAGES/django.mo").open("rb") as file:
            entries = vars(gettext.GNUTranslations(file))["_catalog"]
        words |= {form for text in entries.values() for form in (text, capfirst(text))}
        found |= {key for key, text in entries.items() if isinstance(key, str) and "%" not in key and key != text}
    return {form for text in found - {""} for form in (text, capfirst(text))} - words


def mixed(page: str, texts: set[str]) -> set[str]:
    """Return the English strings on a page: whole strings, or parts with at least two words."""
    shown = {text.strip(" \u203a:|*") for text in untranslated(page)}
    long = "|".join(rf"\b{re.escape(text)}\b" for text in texts if re.search(r"\w \w", text))
    return {text for text in shown if text in texts or re.search(long, text)}


@pytest.mark.parametrize("language", [pytest.param(name, marks=[deep] * (name != "de")) for name in LANGUAGES])
def test_no_page_mixes_languages(language: str, engine: Table) -> None:
    """Django's strings and this app's are both in the page's language."""
    world = World(superuser(table_ready()))
    with (
        override_settings(LANGUAGE_CODE=to_language(language), DYNAMO_SINGLE_COSTS=PANEL),
        override(to_language(language)),
    ):
        texts = english(language) - names() - codes()
        answers = {name: page(world).content.decode() for name, page in PAGES.items()}
    table_ready()
    assert {name: found for name, page in answers.items() if (found := mixed(page, texts))} == {}
    assert [
        name for name, page in answers.items() if "<html" in page and f'lang="{to_language(language)}"' not in page
    ] == []
