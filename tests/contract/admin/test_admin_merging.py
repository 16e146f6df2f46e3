"""Two tabs on one object: another user's changes are shown and merged."""

from __future__ import annotations

import re
from typing import Any

import pytest

from project.directory.models import Company, Office, Person
from tests.contract.conftest import NO_INLINES, Pages, text_of

CHANGE = "directory/company/acme/change/"


@pytest.fixture
def acme(pages: Pages) -> Any:
    """A company."""
    return Company.objects.create(company_id="acme", name="Acme", stock="ACM")


def form_of(response: Any) -> dict[str, Any]:
    """Return a browser's submission of a page's form."""
    content = response.content.decode()
    form = content[content.index("<form ") :]
    data = {}
    for tag in re.findall(r"<input [^>]*>", form):
        found = dict(re.findall(r'(\w+)="([^"]*)"', tag))
        if found.get("type") == "checkbox" and "checked" not in tag:
            continue
        if "name" in found and found.get("type") not in {"submit", "button"}:
            data[found["name"]] = found.get("value", "")
    for name, chosen in re.findall(
        r'<select name="([\w.-]+)".*?<option value="([^"]*)" selected', form, flags=re.DOTALL
    ):
        data[name] = chosen
    for name, text in re.findall(r'<textarea name="([\w.-]+)"[^>]*>\s*(.*?)</textarea>', form, flags=re.DOTALL):
        data[name] = text
    data.pop("csrfmiddlewaretoken", None)
    return {name: value for name, value in data.items() if not name.startswith("_")}


def test_a_field_that_both_have_changed_shows_both_values(pages: Pages, acme: Any) -> None:
    """The first attempt does not save, and the field keeps the input."""
    sent = {**form_of(pages.get(CHANGE)), "name": "Mine"}
    Company.objects.filter(pk="acme").update(name="Theirs")
    answer = pages.post(CHANGE, sent)
    assert 'Someone else has changed this to "Theirs" since you opened the form. Your value is kept here.' in text_of(
        answer
    )
    assert form_of(answer)["name"] == "Mine"
    assert Company.objects.get(pk="acme").name == "Theirs"


def test_sent_again_it_is_saved(pages: Pages, acme: Any) -> None:
    """A user who has seen the other value decides."""
    sent = {**form_of(pages.get(CHANGE)), "name": "Mine"}
    Company.objects.filter(pk="acme").update(name="Theirs")
    again = form_of(pages.post(CHANGE, sent))
    assert pages.post(CHANGE, again).status_code == 302
    assert Company.objects.get(pk="acme").name == "Mine"


def test_a_field_that_only_they_have_changed_is_taken_over(pages: Pages, acme: Any) -> None:
    """The second submission saves both changes."""
    sent = {**form_of(pages.get(CHANGE)), "name": "Mine"}
    Company.objects.filter(pk="acme").update(stock="NEW")
    answer = pages.post(CHANGE, sent)
    assert 'Someone else has changed this to "NEW" since you opened the form.' in text_of(answer)
    assert pages.post(CHANGE, form_of(answer)).status_code == 302
    stored = Company.objects.get(pk="acme")
    assert (stored.name, stored.stock) == ("Mine", "NEW")


def test_what_they_change_while_it_is_merged_is_shown_too(pages: Pages, acme: Any) -> None:
    """The second time as the first."""
    sent = {**form_of(pages.get(CHANGE)), "name": "Mine"}
    Company.objects.filter(pk="acme").update(name="Theirs")
    again = form_of(pages.post(CHANGE, sent))
    Company.objects.filter(pk="acme").update(name="Theirs again")
    assert "Theirs again" in text_of(pages.post(CHANGE, again))


def test_who_has_changed_nothing_overwrites_nothing(pages: Pages, acme: Any) -> None:
    """A submission of the unchanged form keeps the other user's values."""
    sent = form_of(pages.get(CHANGE))
    Company.objects.filter(pk="acme").update(name="Theirs")
    assert pages.post(CHANGE, sent).status_code == 302
    assert Company.objects.get(pk="acme").name == "Theirs"


def test_two_who_make_the_same_change_agree(pages: Pages, acme: Any) -> None:
    """The values are the same."""
    sent = {**form_of(pages.get(CHANGE)), "name": "Same"}
    Company.objects.filter(pk="acme").update(name="Same")
    assert pages.post(CHANGE, sent).status_code == 302


def test_an_object_that_nobody_else_has_changed_is_saved_at_once(pages: Pages, acme: Any) -> None:
    """The comparison does not send requests."""
    sent = {**form_of(pages.get(CHANGE)), "name": "Mine"}
    pages.post(CHANGE, sent, sends=["GetItem", "TransactWriteItems"])
    assert Company.objects.get(pk="acme").name == "Mine"


def test_a_form_of_somebody_elses_program_is_saved_as_it_is(pages: Pages, acme: Any) -> None:
    """Without the hidden field, the shown values are unknown."""
    Company.objects.filter(pk="acme").update(stock="NEW")
    assert pages.post(CHANGE, {"name": "Mine", "stock": "ACM", **NO_INLINES}).status_code == 302
    assert Company.objects.get(pk="acme").stock == "ACM"


def test_a_hidden_field_of_another_object_counts_as_none(pages: Pages, acme: Any) -> None:
    """The signature of the field includes its object."""
    Company.objects.create(company_id="other", name="Other")
    other = form_of(pages.get("directory/company/other/change/"))
    sent = {**form_of(pages.get(CHANGE)), "name": "Mine", "as_shown": other["as_shown"]}
    assert pages.post(CHANGE, sent).status_code == 302


def test_a_row_of_an_inline_is_merged(pages: Pages, acme: Any) -> None:
    """Rows of inlines are merged like the object."""
    Person.objects.create(company=acme, person_id="anna", name="Anna")
    sent = {**form_of(pages.get(CHANGE)), "person_set-0-name": "Mine"}
    Person.objects.filter(company_id="acme", person_id="anna").update(name="Theirs")
    answer = pages.post(CHANGE, sent)
    assert 'Someone else has changed this to "Theirs"' in text_of(answer)
    assert pages.post(CHANGE, form_of(answer)).status_code == 302
    assert Person.objects.get(company_id="acme", person_id="anna").name == "Mine"


def test_a_row_that_nobody_touched_keeps_what_they_have_made_of_it(pages: Pages, acme: Any) -> None:
    """A save of another field keeps the other user's values in the row."""
    Person.objects.create(company=acme, person_id="anna", name="Anna")
    Office.objects.create(company=acme, office_id="o1", city="Graz", address="One\nTwo")
    sent = {**form_of(pages.get(CHANGE)), "name": "Mine"}
    Person.objects.filter(company_id="acme", person_id="anna").update(name="Theirs", role="founder")
    assert pages.post(CHANGE, sent).status_code == 302
    stored = Person.objects.get(company_id="acme", person_id="anna")
    assert (stored.name, stored.role, Company.objects.get(pk="acme").name) == ("Theirs", "founder", "Mine")


def test_who_may_only_look_has_no_hidden_field(staff: Any, acme: Any) -> None:
    """This includes the object and its children."""
    Person.objects.create(company=acme, person_id="anna", name="Anna")
    pages = staff("directory.view_company", "directory.view_person", "directory.view_office")
    shown = pages.get(CHANGE)
    assert shown.status_code == 200
    assert b"as_shown" not in shown.content
    assert b"As shown" not in shown.content
