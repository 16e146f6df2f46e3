"""Every string of this app on the admin's pages can be translated, and ``makemessages`` finds it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from html import unescape
from pathlib import Path
from typing import Any, get_args

import pytest
from django.test import Client, override_settings

from dynamo_single.contrib.doctor.findings import FindingKind
from dynamo_single.contrib.table_admin.health import KINDS
from dynamo_single.table import Request, Table, get_table
from dynamo_single.translated import sentence
from project.directory.models import Company, Person
from tests.catalog.records import Receipt
from tests.contract.admin.test_admin_documents import form_of_text
from tests.contract.conftest import NO_INLINES, Pages, Registering, superuser
from tests.contract.pseudo import codes, names, pseudo, unlisted, untranslated
from tests.ready import table_ready

COMPANY = "directory/company/"
ROOT = Path(__file__).resolve().parents[3]
#: Stored, requested and submitted strings that pages show unchanged.
DATA = re.compile(
    r"(company|person|user|bundle|receipt)-[\w-]+|A \w+ one|[\w•]*#[\w•#-]*|•••|SESSION\S+|^admin$|^(SOME|ITEM|Other)$"
    r"|^SOME / ITEM$|\d+-a de .*|\bgs\d(pk|sk)?\b|\b(Batch|Describe|Get|Put|Update|Transact|Query|Scan)\w*"
    r"|a@example\.com|^[\d ]*(company|companies|people|person)$|^(Companies|People): \d+$|^pk$"
    # Labels from the schema of a list, and Python's name of an object.
    r"|^(Steps|Marks)$|^Receipt object"
)


class World:
    """Live and deleted companies, one with a person, and damaged items."""

    def __init__(self, pages: Pages) -> None:
        self.pages = pages
        self.live = Company.objects.create(name="A live one", stock="x")
        self.binned = Company.objects.create(name="A binned one")
        Person.objects.create(company=self.live, name="A good one", email="a@example.com")
        self.binned.delete()
        table = get_table()
        table.send(Request("PutItem", {"Item": {"pk": {"S": "SOME"}, "sk": {"S": "ITEM"}, "itemType": {"S": "Other"}}}))

    def change(self, **sent: str) -> Any:
        """Return the response to a form of the live company."""
        return self.pages.post(f"{COMPANY}{self.live.pk}/change/", {"name": "x", **NO_INLINES, **sent})

    def after(self, answer: Any) -> Any:
        """Return the page that a response redirects to."""
        return self.pages.client.get(answer["Location"])

    def stale(self) -> Any:
        """Return the response to a form of a company that has changed since."""
        address = f"{COMPANY}{self.live.pk}/change/"
        form = form_of_text(self.pages.get(address))
        Company.objects.filter(pk=self.live.pk).update(name="A second one")
        return self.pages.post(address, {**form, "name": "A third one"})

    def chosen(self, query: str = "", action: str = "delete_selected") -> Any:
        """Return the response to an action on a company in the list."""
        one = self.binned if query else self.live
        return self.pages.post(f"{COMPANY}{query}", {"action": action, "_selected_action": [one.pk]})


def opens(path: str) -> Callable[[World], Any]:
    """The page of an address."""
    return lambda world: world.pages.get(path.format(live=world.live.pk, binned=world.binned.pk))


PAGES: Mapping[str, Callable[[World], Any]] = {
    **{
        path: opens(path)
        for path in (
            *(
                "",
                "directory/",
                COMPANY,
                f"{COMPANY}?q=A",
                f"{COMPANY}?trash=yes",
                f"{COMPANY}?q=x&scan=",
                f"{COMPANY}add/",
            ),
            *(f"{COMPANY}{{live}}/{page}/" for page in ("change", "delete", "history")),
            *(f"{COMPANY}{{binned}}/{page}/" for page in ("change", "delete", "history")),
            *("dynamodb/table/", "dynamodb/table/?pk=COMPANY%23{live}", "dynamodb/table/?pk=NONE", "password_change/"),
            *("dynamodb/table/?begins=COMPANY", "dynamodb/item/?pk=SOME&sk=ITEM"),
            *("dynamodb/item/?pk=COMPANY%23{live}&sk=%23METADATA", "dynamodb/table/?alias=none", "dynamodb/log/"),
            *(
                "dynamodb/pictures/",
                "dynamodb/patterns/",
                "dynamodb/patterns.svg",
                "dynamodb/health/",
                "dynamodb/health/?check=",
            ),
            *("dynamodb/log/?user=admin", "dynamodb/log/?day=2024-05-01", f"{COMPANY}?stock__x=1"),
        )
    },
    "a form with errors": lambda world: world.change(name="", founded="x"),
    "a form that was saved": lambda world: world.after(world.change(stock="A new one")),
    "a stale form": World.stale,
    "what is chosen": World.chosen,
    "what is chosen of the trash": lambda world: world.chosen("?trash=yes"),
    "what is restored": lambda world: world.pages.client.get(
        world.chosen("?trash=yes", "restore_selected")["Location"]
    ),
    "a visitor": lambda world: Client().get("/admin/login/"),
}


#: Each page ends with its costs.
PANEL = {"ADMIN_PANEL": True}


@pytest.fixture
def with_panel(settings: Any) -> None:
    """The test also turns on the panel."""
    settings.DYNAMO_SINGLE_COSTS = PANEL


def literals(answer: Any, known: set[str]) -> set[str]:
    """Return the strings of a page that are not translated, known or data."""
    found = {text.strip(" \u203a:|*") for text in untranslated(answer.content.decode())}
    left = {re.sub(r"\s+", " ", DATA.sub("", text)).strip(" \u203a:|*.,;()/=…&-") for text in found - known}
    return {text for text in left - known if re.search("[A-Za-z]{2}", text)}


@pytest.fixture(scope="module")
def opened(engine: Table) -> tuple[dict[str, set[str]], set[str]]:
    """Open all pages once; return the untranslated strings of each page, and all requested translations."""
    table = table_ready()
    world = World(superuser(table))
    with pseudo() as language, override_settings(DYNAMO_SINGLE_COSTS=PANEL):
        known = names() | codes()
        left = {name: literals(page(world), known) for name, page in PAGES.items()}
    table_ready()
    return {name: texts for name, texts in left.items() if texts}, language.asked


def test_a_page_has_no_text_of_ours_that_is_not_translated(opened: tuple[dict[str, set[str]], set[str]]) -> None:
    """The test language puts brackets around every translated string."""
    left, _ = opened
    assert left == {}


@pytest.mark.usefixtures("with_panel")
@pytest.mark.parametrize("address", ["add/", "r/change/", "", "?o=2", "?q=T"])
def test_forms_with_rows_and_large_lists_have_none_either(registered: Registering, address: str) -> None:
    """This includes the explanations of omitted parts."""
    shown = {"list_display": ("receipt_id", "points"), "search_fields": ("receipt_id",), "list_max_in_memory": 1}
    pages = registered(Receipt, **shown)
    for pk in ("r", "s"):
        Receipt.objects.create(receipt_id=pk, lines=[{"name": "Tea"}], points=[1], data={"steps": [{"name": "Tea"}]})
    with pseudo():
        known = names() | codes()
        assert literals(pages.get(f"catalog/receipt/{address}"), known) == set()
        if address.endswith(("add/", "change/")):
            form = form_of_text(pages.get(f"catalog/receipt/{address}"))
            wrong = {"lines.0_0": "", "lines.0_1": "dear", "points.0": "dear", "points.0.position": "x", "data_2": "{"}
            answer = pages.post(f"catalog/receipt/{address}", {**form, **wrong})
            assert answer.status_code == 200
            assert literals(answer, known) == set()


def test_every_kind_of_finding_has_words() -> None:
    """For the page of health."""
    assert {*KINDS} == {*get_args(FindingKind)}


def test_findings_are_in_the_language_of_the_page(pages: Pages) -> None:
    """Sentences and their parts are translated, and commands print English."""
    world = World(pages)
    table = get_table()
    key = {"pk": {"S": f"COMPANY#{world.live.pk}"}, "sk": {"S": "#METADATA"}}
    table.send(Request("UpdateItem", {"Key": key, "UpdateExpression": "REMOVE gs1sk"}))
    with pseudo():
        content = unescape(pages.get("dynamodb/health/?check=").content.decode())
        assert "⟦half index key⟧" in content
        assert "⟦On gs1 it has COMPANY / ⟦nothing⟧, and its attributes give COMPANY / A$_live$_one#" in content
        assert str(sentence("Its owner %(key)s does not exist.", key="x")) == "Its owner x does not exist."


@pytest.mark.skipif(shutil.which("xgettext") is None, reason="there is no xgettext: apt-get install gettext")
def test_makemessages_finds_what_the_pages_translate(
    opened: tuple[dict[str, set[str]], set[str]], tmp_path: Path
) -> None:
    """Each string that a page translates is a literal in the code."""
    _, asked = opened
    with pseudo():
        assert unlisted(asked - names(), [ROOT / "dynamo_single", ROOT / "accounts"], tmp_path) == set()
