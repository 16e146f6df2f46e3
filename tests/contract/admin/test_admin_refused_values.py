"""Forms report values that no item can store, in the user's language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.forms import ModelForm
from django.utils.translation import gettext_noop

from dynamo_single import models
from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.schema.registry import attributes_of
from tests.catalog.models import Order, Sample
from tests.catalog.records import Bundle
from tests.contract.conftest import Pages, Registering
from tests.contract.pseudo import pseudo, unlisted, untranslated

ROOT = Path(__file__).resolve().parents[3]
DEEP = "[" * 40 + "]" * 40
#: A model, the input, the form's message, and its parts that are not our text: the path to an element.
CASES: dict[str, tuple[Any, dict[str, str], str, set[str]]] = {
    "digits": (Sample, {"number": "1" * 39}, "This number has 39 digits; 38 can be stored. Round it.", set()),
    "range": (Sample, {"number": "1e126"}, "This number is too large, or too close to zero, to be stored.", set()),
    "infinity": (Sample, {"data": '{"a": 1e400}'}, "data.a: This number is too large", {"data.a:"}),
    "nesting": (Sample, {"things": DEEP}, "This has more than 32 levels of nesting.", set()),
    "name": (Sample, {"data": '{"": 1}'}, "A map has an empty key. Enter a name for it.", set()),
    "text": (Sample, {"data": r'{"a": ["b", "\ud800"]}'}, "data.a[1]: Character 1 of this string", {"data.a[1]:"}),
    "key": (Order, {"customer": "x" * 2100, "number": "1"}, "A key of it would have 2109 bytes", {"customer"}),
    "kind": (
        Bundle,
        {"data": '{"title": 5, "receiver": {"name": "A"}}'},
        "data__title: This must be a string (str).",
        {"data__title:"},
    ),
    "map": (
        Bundle,
        {"data": '{"title": "T", "receiver": 5}'},
        "data__receiver: This must be a map.",
        {"data__receiver:"},
    ),
    "missing": (
        Bundle,
        {"data": '{"title": "T"}'},
        "data__receiver__name: This field must have a value.",
        {"data__receiver__name:"},
    ),
}


def errors_of(answer: Any) -> str:
    """Return the errors on the page of an invalid form."""
    assert answer.status_code == 200
    return "".join(re.findall(r'<ul class="errorlist.*?</ul>', answer.content.decode(), flags=re.DOTALL))


def sent(pages: Pages, name: str) -> str:
    """The errors of a case's form."""
    model, data, _, _ = CASES[name]
    return errors_of(pages.post(f"catalog/{model._meta.model_name}/add/", data))


@pytest.mark.parametrize("name", CASES)
def test_a_form_says_what_is_wrong(registered: Registering, name: str) -> None:
    """In words for people."""
    assert CASES[name][2] in unescape(sent(registered(CASES[name][0]), name))


@pytest.mark.parametrize("name", CASES)
def test_a_form_says_so_in_other_languages(registered: Registering, name: str) -> None:
    """All words are translated except names of attributes."""
    pages = registered(CASES[name][0])
    with pseudo():
        left = untranslated(sent(pages, name))
    assert left <= CASES[name][3]


def test_makemessages_finds_the_words(registered: Registering, tmp_path: Path) -> None:
    """This includes the expected values of a type."""
    asked = {attribute.expects for attribute in attributes_of(Sample).values() if attribute.name != "parent_id"}
    for name, (model, *_) in CASES.items():
        pages = registered(model)
        with pseudo() as language:
            sent(pages, name)
        asked |= language.asked
    assert unlisted(asked, [ROOT / "dynamo_single"], tmp_path) == set()


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Return samples whose save fails although the form is valid."""

    def refuse(self: Any, *args: Any, **kwargs: Any) -> None:
        raise InvalidValue("catalog.Sample: text takes less.", words="Less!")

    monkeypatch.setattr(Sample, "save", refuse)
    yield


@pytest.mark.usefixtures("refusing")
def test_a_save_that_is_refused_says_it_in_words(registered: Registering) -> None:
    """Superusers read the message as well."""
    said = errors_of(registered(Sample, fields=("text",)).post("catalog/sample/add/", {"text": "x"}))
    assert "Less! For developers: catalog.Sample: text takes less." in said


def test_who_checks_an_object_reads_the_same() -> None:
    """A form of a project's own, too."""

    class OrderForm(ModelForm):  # type: ignore[type-arg]  # not generic at run time
        class Meta:
            model = Order
            fields = ("customer", "number")

    form = OrderForm({"customer": "x" * 2100, "number": 1})
    assert {*form.errors["__all__"]} == {
        "A key of it would have 2109 bytes; 2048 can be stored. Make this shorter: customer."
    }


def test_words_are_those_of_the_error_that_another_one_wraps() -> None:
    """An error without user-facing words shows the wrapped error's words, or else its own message."""
    inner = InvalidValue("inner", words=gettext_noop("Too much."))
    outer = InvalidValue("outer")
    outer.__cause__ = inner
    assert (outer.in_words(), InvalidValue("plain").in_words(), str(outer)) == ("Too much.", "plain", "outer")


def test_an_attribute_of_a_projects_own_has_words_too() -> None:
    """The words come from the attribute's own expectation."""
    attribute = models.UnicodeAttribute()
    attribute.name, attribute.expects = "colour", "a colour"
    assert attribute.refuse(5).in_words() == "This must be a colour."
