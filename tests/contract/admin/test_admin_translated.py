"""The strings of the admin's pages can be translated: the test language puts a mark around each string."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.template.loader import get_template
from django.utils import translation

import dynamo_single
from dynamo_single.admin.batch_actions.models import AdminJob
from dynamo_single.admin.log import LogEntry
from dynamo_single.clock import now
from project.directory.models import Company, Office, Person
from tests.contract.conftest import Pages

TEMPLATES = Path(dynamo_single.__file__).parent / "templates"
#: Words that need no translation in templates: names, symbols and URLs.
PLAIN = {"DynamoDB"}
#: Two words without a mark around them.
SENTENCE = re.compile(r"[A-Za-z]{2,} [A-Za-z]{2,}")


class Texts(HTMLParser):
    """The visible text of a page or template, and the labels of buttons, fields and images."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self._within = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        """Collect the labels of an element."""
        self._within = tag
        given = dict(attrs)
        named = [given.get(name) for name in ("alt", "title", "aria-label", "placeholder")]
        self.found += [text for text in (*named, given.get("value") if given.get("type") == "submit" else "") if text]

    def handle_endtag(self, tag: str) -> None:
        """Leave it."""
        self._within = ""

    def handle_data(self, data: str) -> None:
        """Collect the text of an element, except in scripts, and output of programs and tables."""
        if self._within not in {"script", "style", "pre", "code", "text", "tspan"} and data.strip():
            self.found.append(data.strip())


def unmarked(text: str) -> str:
    """Return the unmarked rest of a text; marks can be nested."""
    while (rest := re.sub(r"⟦[^⟦⟧]*⟧", "", text)) != text:
        text = rest
    return text


@pytest.fixture
def marking(monkeypatch: pytest.MonkeyPatch) -> None:
    """A language in which every text is the English one between marks."""
    marked = {
        "gettext": lambda text: f"⟦{text}⟧",
        "ngettext": lambda one, many, number: f"⟦{one if number == 1 else many}⟧",
        "pgettext": lambda context, text: f"⟦{text}⟧",
        "npgettext": lambda context, one, many, number: f"⟦{one if number == 1 else many}⟧",
    }
    for name, function in marked.items():
        monkeypatch.setattr(translation._trans, name, function)


@pytest.fixture
def paths(pages: Pages) -> list[str]:
    """Addresses of pages with something on them; data are of one word each."""
    acme = Company.objects.create(company_id="acme", name="Acme", stock="ACM")
    Person.objects.create(company=acme, person_id="ann", name="Ann", email="ann@example.com")
    Office.objects.create(company=acme, office_id="ghent", city="Ghent")
    Company.objects.create(company_id="old", name="Old")
    pages.post("directory/company/old/delete/", {"post": "yes"})
    # The message and the log entry have the language of the acting user.
    pages.get("")
    LogEntry.objects.all().delete()
    job = AdminJob.objects.create(
        user_key=str(pages.user.pk),
        label="directory.company",
        action="delete",
        keys=["acme"],
        failures=[["a", "Acme", "Why"]],
        failed=2,
        expires_at=now() + timedelta(hours=1),
    )
    return [
        *("", "directory/company/", "directory/company/?trash=yes", "directory/company/?q=acme"),
        *("directory/company/?q=acme&scan=", "directory/company/?nothing=1", "directory/company/old/delete/"),
        *(f"directory/company/{path}/" for path in ("add", "acme/change", "acme/delete", "acme/history", "old/change")),
        *(
            "directory/person/?trash=yes",
            f"dynamodb/jobs/{job.job_id}/",
            "dynamodb/jobs/",
            "dynamodb/table/?pk=COMPANY%23acme",
        ),
        *("dynamodb/table/", "dynamodb/table/?begins=COMP", "dynamodb/item/?pk=COMPANY%23acme&sk=PEOPLE%23ann"),
        *("dynamodb/health/?check=", "dynamodb/log/", "dynamodb/table/?index=gs9&pk=1"),
    ]


def declared() -> Iterator[str]:
    """Return the names of models and fields, which the project translates."""
    for app in apps.get_app_configs():
        yield str(app.verbose_name)
    for model in apps.get_models(include_auto_created=True):
        yield from (str(model._meta.verbose_name), str(model._meta.verbose_name_plural))
        if model._meta.app_label != "dynamo_single":
            own = (field for field in model._meta.concrete_fields if not field.name.endswith("_at"))
            yield from (str(field.verbose_name) for field in own)


def test_every_sentence_of_a_page_can_be_translated(
    pages: Pages, paths: list[str], settings: Any, request: pytest.FixtureRequest
) -> None:
    """The check includes the costs in the footer; it ignores the project's names and data."""
    names = {name.casefold() for name in declared()}
    settings.DYNAMO_SINGLE_COSTS = {"ADMIN_PANEL": True, "SHOW_KEYS": False}
    request.getfixturevalue("marking")
    left = set()
    for path in paths:
        found = Texts(pages.get(path).content.decode().partition('id="content-start"')[2]).found
        left |= {text for text in found if SENTENCE.search(unmarked(text))}
    assert {text for text in left if unmarked(text).casefold() not in names} == set()


def test_labels_of_our_own_attributes_can_be_translated(pages: Pages, paths: list[str], marking: None) -> None:
    """This includes the labels of times and of the trash."""
    page = pages.get("directory/company/old/change/").content.decode()
    assert [label for label in ("Created", "Updated", "Deleted") if f"<label>{label}" in page] == []


@pytest.mark.parametrize("path", sorted(TEMPLATES.rglob("*.html")), ids=lambda path: path.stem)
def test_a_template_says_nothing_itself(path: Path) -> None:
    """All of its words are in tags that translate."""
    name = path.relative_to(TEMPLATES).as_posix()
    assert get_template(name)
    text = re.sub(r"{% (blocktranslate).*?{% end\1 %}", "", path.read_text(), flags=re.DOTALL)
    text = re.sub(r"{% block bodyclass %}.*?{% endblock %}", "", text)
    text = re.sub(r"{%.*?%}|{{.*?}}|{#.*?#}", "", text, flags=re.DOTALL)
    assert [
        each for each in Texts(text).found if re.search("[A-Za-z]{2}", each) and each.strip(": ") not in PLAIN
    ] == []
