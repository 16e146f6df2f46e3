"""Objects that an admin hides: in forms, by a rule for each object, and by a rule that takes requests."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin

from dynamo_single.admin.log import LogEntry
from project.directory.models import Company, Person
from project.service.models import Beneficiary, User
from tests.contract.admin.test_admin_merging import form_of
from tests.contract.conftest import Pages, text_of

pytestmark = pytest.mark.urls("project.urls")


def hiding(monkeypatch: pytest.MonkeyPatch, model: Any, rule: Any) -> None:
    """Let the admin of a model return what a rule makes of its queryset."""
    modeladmin = admin.site.get_model_admin(model)
    own = modeladmin.get_queryset
    monkeypatch.setattr(modeladmin, "get_queryset", lambda request: rule(own(request)))


@pytest.fixture
def ines(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> User:
    """Return a user of a hidden school; another school is visible."""
    hiding(monkeypatch, Beneficiary, lambda queryset: queryset.filter(name__startswith="Open"))
    hidden = Beneficiary.objects.create(beneficiary_id="h", name="Hidden School")
    Beneficiary.objects.create(beneficiary_id="o", name="Open School")
    return User.objects.create(user_id="u", beneficiary=hidden, first_name="Inés", last_name="Gómez")


def sent(beneficiary: str) -> dict[str, str]:
    """The form of a user, with a beneficiary."""
    rows = {f"emails-{name}": "0" for name in ("TOTAL_FORMS", "INITIAL_FORMS")}
    return {"beneficiary": beneficiary, "first_name": "Ines", "last_name": "Gomez", "phone": "", **rows}


def test_hidden_reference_stays_when_saved(pages: Pages, ines: User) -> None:
    """The form offers only its type, and saves other changes."""
    shown = pages.get("service/user/u/change/")
    assert "Hidden School" not in text_of(shown)
    assert '<option value="h" selected>Beneficiary</option>' in shown.content.decode()
    assert pages.post("service/user/u/change/", sent("h")).status_code == 302
    found = User.objects.get(pk=ines.pk)
    assert (found.beneficiary_id, found.first_name) == ("h", "Ines")


@pytest.mark.parametrize("option", ["raw_id_fields", "autocomplete_fields"])
def test_hidden_reference_stays_with_other_widgets(
    pages: Pages, ines: User, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    monkeypatch.setattr(admin.site.get_model_admin(User), option, ("beneficiary",))
    assert "Hidden School" not in text_of(pages.get("service/user/u/change/"))
    assert pages.post("service/user/u/change/", sent("h")).status_code == 302
    found: Any = User.objects.get(pk=ines.pk)
    assert (found.beneficiary_id, found.first_name) == ("h", "Ines")


def test_hidden_reference_stays_in_editable_list(pages: Pages, ines: User, monkeypatch: pytest.MonkeyPatch) -> None:
    users = admin.site.get_model_admin(User)
    monkeypatch.setattr(users, "list_editable", ("first_name", "beneficiary"))
    page = pages.get("service/user/")
    assert "Hidden School" not in text_of(page)
    form = {**form_of(page), "form-0-first_name": "Ines", "_save": "Save"}
    assert form["form-0-beneficiary"] == "h"
    assert pages.post("service/user/", form).status_code == 302
    found: Any = User.objects.get(pk=ines.pk)
    assert (found.beneficiary_id, found.first_name) == ("h", "Ines")


def test_form_refuses_hidden_choice(pages: Pages, ines: User) -> None:
    """A user who guesses the key cannot refer to the object."""
    User.objects.create(user_id="v", beneficiary_id="o", first_name="Vera", last_name="Gómez")
    answer = pages.post("service/user/v/change/", sent("h"))
    assert "Select a valid choice." in text_of(answer)
    assert User.objects.get(pk="v").beneficiary_id == "o"


def test_new_object_refers_to_visible_objects_only(pages: Pages, ines: User) -> None:
    """The select offers no others, and the form does not take them."""
    page = text_of(pages.get("service/user/add/"))
    assert "Open School" in page
    assert "Hidden School" not in page
    assert pages.post("service/user/add/", sent("h")).status_code == 200
    assert pages.post("service/user/add/", sent("o")).status_code == 302


def test_rule_of_one_object_hides_item_and_entry(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """``has_view_permission(request, obj)`` of the project."""
    modeladmin = admin.site.get_model_admin(Company)
    rule = lambda request, obj=None: obj is None or obj.name == "Acme"  # noqa: E731 - as a method is patched
    monkeypatch.setattr(modeladmin, "has_view_permission", rule)
    for number, name in enumerate(("Acme", "Bolt")):
        company = Company.objects.create(company_id=f"c{number}", name=name)
        LogEntry.objects.log_actions(pages.user.pk, [company], 2, "Changed.", single_object=True)
    shown = [text_of(pages.get(path)) for path in ("dynamodb/table/?index=gs1&pk=COMPANY", "dynamodb/log/", "")]
    assert ["Acme" in text for text in shown] == [True, True, True]
    assert ["Bolt" in text for text in shown] == [False, False, False]
    assert pages.get("dynamodb/item/?pk=COMPANY%23c1&sk=%23METADATA").status_code == 404


RULES = {
    "a slice": lambda queryset: queryset[:5],
    "another model": lambda queryset: queryset.filter(company__name="Acme"),
    "a subquery": lambda queryset: queryset.filter(company__in=Company.objects.filter(name="Acme")),
}


@pytest.mark.parametrize("rule", RULES)
def test_rule_that_takes_a_request_hides_all(
    pages: Pages, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, rule: str
) -> None:
    """The log names the admin class of the rule."""
    hiding(monkeypatch, Person, RULES[rule])
    company = Company.objects.create(company_id="c", name="Acme")
    Person.objects.create(company=company, person_id="p", name="Anna")
    shown = text_of(pages.get("dynamodb/table/?pk=COMPANY%23c"))
    assert ("Acme" in shown, "Anna" in shown) == (True, False)
    assert "PersonAdmin.get_queryset() returns a queryset that cannot be matched" in caplog.text
