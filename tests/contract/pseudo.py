"""A language with every translated string in brackets: text outside them is not translated."""

from __future__ import annotations

import ast
import gettext
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import django
from django.apps import apps
from django.test import override_settings
from django.utils.text import capfirst
from django.utils.translation import trans_real

from dynamo_single.conf import aliases
from dynamo_single.contrib.doctor.patterns import patterns_of
from dynamo_single.orm.schema import registry

#: A language of Django's without translations of this app.
LANGUAGE = "eo"
OURS = {"dynamo_single", "accounts"}
DJANGO = Path(django.__file__).parent
_INNERMOST = re.compile("⟦[^⟦⟧]*⟧")
_ATTRIBUTES = {"title", "placeholder", "aria-label", "alt", "data-confirm", "label"}
_VOID = {"br", "img", "input", "hr", "link", "meta", "rect"}
_BUTTONS = {"submit", "button", "reset"}


class Pseudo(gettext.NullTranslations):
    """Wrap and record the requested strings."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[str] = set()
        self.domain = "django"

    def gettext(self, message: str) -> str:
        """The text in brackets."""
        self.asked.add(message)
        return _wrapped(message.rpartition("\x04")[2])

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        """Return the singular or the plural."""
        self.asked.add(msgid1)
        return _wrapped((msgid1 if n == 1 else msgid2).rpartition("\x04")[2])

    def to_language(self) -> str:
        """Return the name as Django expects it."""
        return LANGUAGE

    def language(self) -> str:
        """Return the same name."""
        return LANGUAGE


def _wrapped(text: str) -> str:
    return f"⟦{text}⟧" if text else text


@contextmanager
def pseudo() -> Iterator[Pseudo]:
    """Show everything in that language."""
    with override_settings(LANGUAGE_CODE=LANGUAGE):
        found = Pseudo()
        kept = trans_real._translations
        trans_real._translations = {LANGUAGE: found}  # type: ignore[attr-defined]  # private to Django
        trans_real._default = None  # type: ignore[attr-defined]  # private to Django
        try:
            yield found
        finally:
            trans_real._translations = kept  # type: ignore[attr-defined]  # private to Django
            trans_real._default = None  # type: ignore[attr-defined]  # private to Django


class _Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.skipped: list[str] = []
        self._run = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._end()
        given = dict(attrs)
        if self.skipped:
            self.skipped += [tag] if tag not in _VOID else []
            return
        # Code, and keys of items.
        if tag in {"script", "style", "code", "pre"} or "dynamo-key" in (given.get("class") or ""):
            self.skipped.append(tag)
        self.texts += [given[name] or "" for name in _ATTRIBUTES & given.keys()]
        if tag == "input" and given.get("type") in _BUTTONS:
            self.texts.append(given.get("value") or "")

    def handle_endtag(self, tag: str) -> None:
        self._end()
        if tag in self.skipped:
            while self.skipped.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if not self.skipped:
            self._run += data

    def _end(self) -> None:
        if self._run.count("⟦") > self._run.count("⟧"):
            return  # a link within a translated text
        self.texts.append(self._run)
        self._run = ""


def untranslated(page: str) -> set[str]:
    """Return the strings of a page outside brackets that contain a word, without code and scripts."""
    parser = _Texts()
    parser.feed(page)
    parser.close()
    found = set()
    for text in parser.texts:
        left, before = text, ""
        while left != before:
            left, before = _INNERMOST.sub(" ", left), left
        left = " ".join(left.split())
        if re.search("[A-Za-z]{2}", left):
            found.add(left)
    return found


def names() -> set[str]:
    """Return the names of models, fields, choices and apps, which their project translates."""
    found = {"DynamoDB", "Search", "True", "False", "None"}
    for config in apps.get_app_configs():
        found |= {str(config.verbose_name)} if config.name not in OURS else set()
    for model in apps.get_models():
        if model.__module__.partition(".")[0] in OURS:
            continue
        ours = {name for base in model.__mro__ if base.__module__.startswith("dynamo_single.") for name in vars(base)}
        found |= {str(model._meta.verbose_name), str(model._meta.verbose_name_plural)}
        for field in model._meta.get_fields():
            if hasattr(field, "verbose_name") and field.name not in ours:
                found.add(str(field.verbose_name))
                found |= {str(label) for _, label in getattr(field, "flatchoices", ())}
    return {*found, *map(capfirst, found)}


def codes() -> set[str]:
    """Return the declarations that the pages about the table show unchanged."""
    found = {*aliases(), "ms", "R", "W"}
    for model in registry.all_models():
        found |= {attribute.attr_name for attribute in registry.attributes_of(model).values()}
        for pattern in patterns_of(model):
            found |= {pattern.label, pattern.item_type, pattern.name, pattern.index, pattern.partition, pattern.sort}
            found |= {f"{pattern.partition} / {pattern.sort}", *map(str, pattern.answers)}
            found |= {f"{pattern.partition} / {pattern.sort} ({pattern.index})"}
    return found


def unlisted(asked: set[str], folders: list[Path], scratch: Path) -> set[str]:
    """Return the translated strings that neither Django's catalogs contain nor ``makemessages`` finds."""
    known = {message for path in DJANGO.glob("**/locale/en/LC_MESSAGES/*.po") for message in messages(path)}
    for folder in folders:
        copy = scratch / folder.name
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("__pycache__", "locale"))
        (copy / "locale").mkdir()
        command = [sys.executable, "-m", "django", "makemessages", "--locale", LANGUAGE, "--no-location"]
        environment = {**os.environ, "DJANGO_SETTINGS_MODULE": ""}
        subprocess.run(command, cwd=copy, check=True, capture_output=True, env=environment)  # noqa: S603 - our own words
        known |= messages(copy / "locale" / LANGUAGE / "LC_MESSAGES" / "django.po")
    return {text for text in asked if text.rpartition("\x04")[2] not in known}


def messages(path: Path) -> set[str]:
    """Return the strings of a catalog without their contexts."""
    found = re.findall(r'^msgid((?:\s*"(?:[^"\\]|\\.)*")+)', path.read_text(), flags=re.MULTILINE)
    return {"".join(map(ast.literal_eval, re.findall(r'"(?:[^"\\]|\\.)*"', text))) for text in found}
