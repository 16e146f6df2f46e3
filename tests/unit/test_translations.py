"""The catalogs of translations. ``make messages`` updates them from the sources and compiles them."""

from __future__ import annotations

import ast
import gettext
import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import django
import pytest

LOCALE = Path("dynamo_single/locale").resolve()
LANGUAGES = ("ar", "de", "es", "fr", "ja", "nl", "pt", "uk", "zh_Hans")
#: Numbers, and the plural form of each in these languages. English has two forms, as German does.
NUMBERS = (0, 1, 2, 3, 5, 10, 11, 12, 21, 22, 25, 99, 100, 101, 102, 103, 111)
FORMS = {
    "ar": (0, 1, 2, 3, 3, 3, 4, 4, 4, 4, 4, 4, 5, 5, 5, 3, 4),
    "fr": (0, 0, *[1] * 15),
    "ja": (0,) * 17,
    "uk": (2, 0, 1, 1, 2, 2, 2, 2, 0, 1, 2, 2, 2, 0, 1, 1, 2),
    "zh_Hans": (0,) * 17,
}
NUMBER = {
    f"%({name}){kind}" for name in ("counter", "count", "number", "repeated", "retries", "left_out") for kind in "ds"
}
_PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|%[sd]|\{\w+\}|</?\w+>")
_FIELD = re.compile(r'^(msg\w+(?:\[\d\])?) ((?:"(?:[^"\\]|\\.)*"\s*)+)', re.MULTILINE)

each_language = pytest.mark.parametrize("language", LANGUAGES)

#: An entry of a catalog: its source, its plural source, and its forms.
Entry = tuple[str, str, list[str]]


@cache
def entries(language: str) -> list[Entry]:
    """Read the source of a catalog, without its header, as gettext's ``msgfmt`` does."""
    text = (LOCALE / language / "LC_MESSAGES/django.po").read_text()
    assert "#, fuzzy" not in text, "Look at the entries that makemessages guessed, and remove their marks."
    found = []
    for block in text.split("\n\n")[1:]:
        parts: Mapping[str, str] = {
            name: "".join(map(ast.literal_eval, re.findall(r'"(?:[^"\\]|\\.)*"', value)))
            for name, value in _FIELD.findall(block)
        }
        source = "\x04".join(filter(None, (parts.get("msgctxt"), parts["msgid"])))
        forms = [value for name, value in parts.items() if name.startswith("msgstr")]
        found.append((source, parts.get("msgid_plural", ""), forms))
    return found


def compiled(language: str) -> Any:
    """Return the compiled catalog, which the wheel holds."""
    with (LOCALE / language / "LC_MESSAGES/django.mo").open("rb") as file:
        return gettext.GNUTranslations(file)


def placeholders(text: str) -> set[str]:
    """Return the placeholders and tags of a string."""
    return set(_PLACEHOLDER.findall(text))


def test_catalogs_exist() -> None:
    """There are nine languages in addition to English."""
    assert tuple(sorted(path.name for path in LOCALE.iterdir() if path.is_dir())) == LANGUAGES


@each_language
def test_word_between_members_of_list_is_djangos(language: str) -> None:
    """Django joins the fields of a unique constraint by it; our catalog overrides Django's."""
    with (Path(django.__file__).parent / f"conf/locale/{language}/LC_MESSAGES/django.mo").open("rb") as file:
        assert compiled(language).gettext("and") == gettext.GNUTranslations(file).gettext("and")


@each_language
def test_catalog_has_every_text(language: str) -> None:
    """The catalogs have the same strings, without empty entries."""
    found = entries(language)
    assert [source for source, _, forms in found if "" in forms] == [], "Translate these, and run make messages."
    assert {source for source, *_ in found} == {source for source, *_ in entries("de")}


@each_language
def test_committed_catalog_is_compiled_from_source(language: str) -> None:
    """The compiled file has the entries of its source."""
    wanted: dict[object, str] = {}
    for source, of_many, forms in entries(language):
        wanted |= {(source, number): form for number, form in enumerate(forms)} if of_many else {source: forms[0]}
    assert {key: text for key, text in vars(compiled(language))["_catalog"].items() if key != ""} == wanted


@each_language
def test_plural_forms_are_those_of_the_language(language: str) -> None:
    """Zero, one, two, few, and many, as CLDR has them."""
    wanted = FORMS.get(language) or tuple(int(number != 1) for number in NUMBERS)
    assert tuple(map(compiled(language).plural, NUMBERS)) == wanted


@each_language
def test_each_plural_has_every_form(language: str) -> None:
    """A missing form would show English."""
    catalog = vars(compiled(language))["_catalog"]
    count = max(map(compiled(language).plural, range(1000))) + 1
    plurals = {key[0] for key in catalog if isinstance(key, tuple)}
    assert {key[0]: key for key in plurals if not all((key, form) in catalog for form in range(count))} == {}


@each_language
def test_translations_keep_placeholders(language: str) -> None:
    """The placeholders are those of the singular or the plural; a form for one number may omit it."""
    plural = compiled(language).plural
    uses = Counter(plural(number) for number in range(1000))
    differing = {}
    for source, of_many, forms in entries(language):
        wanted = [placeholders(text) for text in (source, of_many or source)]
        for form, text in enumerate(forms):
            found = placeholders(text)
            left_out = NUMBER if of_many and uses[form] == 1 else set()
            if found not in wanted and not wanted[0] - left_out <= found <= wanted[1]:
                differing[source] = text
    assert differing == {}
