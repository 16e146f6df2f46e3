"""The catalogs of translations. ``make messages`` updates them from the sources and compiles them."""

from __future__ import annotations

import gettext
import re
import shutil
import subprocess
from pathlib import Path

import pytest

CATALOGS = sorted(Path("dynamo_single/locale").resolve().glob("*/LC_MESSAGES/django.po"))
_PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|%[sd]|\{\w+\}")
#: A form of "one" may leave the number out.
_NUMBERS = {"%(counter)s", "%(count)s", "%(count)d", "%(number)d"}

pytestmark = pytest.mark.skipif(shutil.which("msgfmt") is None, reason="there is no gettext: apt-get install gettext")
each_catalog = pytest.mark.parametrize("path", CATALOGS, ids=lambda path: path.parents[1].name)


def compiled(path: Path, to: Path) -> dict[object, str]:
    """Return the entries of a catalog, compiled by gettext with its checks."""
    subprocess.run(["msgfmt", "--check", "-o", to, path], check=True, capture_output=True)  # noqa: S603, S607 - our own words
    with to.open("rb") as file:
        return vars(gettext.GNUTranslations(file))["_catalog"]


def test_catalogs_exist() -> None:
    """German is complete."""
    assert "de" in {path.parents[1].name for path in CATALOGS}


@each_catalog
def test_committed_catalog_is_compiled_from_source(path: Path, tmp_path: Path) -> None:
    """The compiled file, which the wheel holds, has the entries of its source."""
    with path.with_suffix(".mo").open("rb") as file:
        assert vars(gettext.GNUTranslations(file))["_catalog"] == compiled(path, tmp_path / "django.mo")


@each_catalog
def test_catalog_has_no_gaps(path: Path) -> None:
    """No entry is empty, and none is a guess of ``makemessages``."""
    command = ["msgattrib", "--no-wrap", "--no-obsolete", path]
    found = [
        subprocess.run([*command, which], check=True, capture_output=True, text=True).stdout  # noqa: S603 - our own words
        for which in ("--untranslated", "--only-fuzzy")
    ]
    assert found == ["", ""], "Translate these entries, remove their fuzzy marks, and run make messages."


@each_catalog
def test_translations_keep_placeholders(path: Path, tmp_path: Path) -> None:
    """A translation has the placeholders of its source, in any order."""
    differing = {}
    for source, text in compiled(path, tmp_path / "django.mo").items():
        wanted = set(_PLACEHOLDER.findall(source[0] if isinstance(source, tuple) else str(source)))
        found = set(_PLACEHOLDER.findall(text))
        free = _NUMBERS if isinstance(source, tuple) else set()
        if (wanted ^ found) - free:
            differing[source] = text
    assert differing == {}
