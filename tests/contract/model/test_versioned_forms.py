"""A form that was shown before another process's change is rejected."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.core.signing import Signer
from django.forms import modelform_factory, modelformset_factory
from django.test import override_settings

from dynamo_single.exceptions import ConfigurationError, StaleObject
from dynamo_single.forms import VersionedModelForm
from dynamo_single.testing import assert_requests
from project.directory.models import Company
from tests.catalog.library import Ledgered

pytestmark = pytest.mark.usefixtures("table")

Form: Any = modelform_factory(Ledgered, form=VersionedModelForm, fields=["number", "title"])
CHANGED = {"__all__": ["This ledgered was changed by someone else after you opened the form. Nothing "
                       "was saved. Open it "
                       "again to see the current version."]}  # fmt: skip
UNKNOWN = "This form does not contain the version of the ledgered that it was opened for"


def tab(obj: Any, **typed: Any) -> dict[str, Any]:
    """Return a browser's submission of a shown form."""
    form = Form(instance=Ledgered.objects.get(pk=obj.pk))
    (hidden,) = re.findall('<input type="hidden" name="read_version" value="([^"]*)"', form.as_p())
    return {"number": obj.number, "title": obj.title, "read_version": hidden, **typed}


def sent(obj: Any, data: dict[str, Any]) -> Any:
    """The form of a view that has read the object again."""
    return Form(data, instance=Ledgered.objects.get(pk=obj.pk))


@pytest.fixture
def ledgered(table: Any) -> Any:
    """A stored object."""
    return Ledgered.objects.create(number=1, title="a")


def test_the_second_of_two_tabs_is_refused(ledgered: Any) -> None:
    """A resubmission is rejected too."""
    first, second = tab(ledgered, title="first"), tab(ledgered, title="second")
    sent(ledgered, first).save()
    form = sent(ledgered, second)
    assert form.errors == CHANGED
    assert 'value="second"' in form.as_p()
    (hidden,) = re.findall('<input type="hidden" name="read_version" value="([^"]*)"', form.as_p())
    assert sent(ledgered, {**second, "read_version": hidden}).errors == CHANGED
    assert Ledgered.objects.get(pk=1).title == "first"
    sent(ledgered, tab(ledgered, title="second")).save()
    assert Ledgered.objects.get(pk=1).title == "second"


def test_the_field_is_no_data_of_the_form(ledgered: Any) -> None:
    """The field is not in the cleaned or changed data, and a form without changes does not submit it."""
    form = sent(ledgered, tab(ledgered))
    assert form.is_valid()
    assert (form.cleaned_data, form.changed_data) == ({"number": 1, "title": "a"}, [])
    with assert_requests(0):
        form.save()


def test_a_new_object_has_no_version_to_be_held_to() -> None:
    form = Form({"number": 2, "title": "new"})
    assert form.is_valid(), form.errors
    assert form.save().version == 1


@pytest.mark.parametrize("given", ["", "x", "bnVsbA:x", Signer(salt="other").sign_object(["catalog.ledgered", "1", 1])])
def test_a_form_that_does_not_say_its_version_is_refused(ledgered: Any, given: str) -> None:
    """This includes a forged version."""
    form = sent(ledgered, tab(ledgered, read_version=given))
    assert form.errors["__all__"][0].startswith(UNKNOWN)


def test_the_version_of_another_object_is_refused(ledgered: Any) -> None:
    other = Ledgered.objects.create(number=2, title="b")
    form = sent(ledgered, tab(ledgered, read_version=tab(other)["read_version"]))
    assert form.errors["__all__"][0].startswith(UNKNOWN)


def test_a_secret_key_that_is_replaced_keeps_the_forms_that_are_shown(ledgered: Any) -> None:
    """By ``SECRET_KEY_FALLBACKS``."""
    with override_settings(SECRET_KEY="former"):
        data = tab(ledgered, title="b")
    with override_settings(SECRET_KEY="present", SECRET_KEY_FALLBACKS=["former"]):
        assert sent(ledgered, data).is_valid()
    with override_settings(SECRET_KEY="present", SECRET_KEY_FALLBACKS=[]):
        assert not sent(ledgered, data).is_valid()


def test_a_write_between_the_question_and_the_save_is_stale(ledgered: Any) -> None:
    form = sent(ledgered, tab(ledgered, title="mine"))
    assert form.is_valid()
    Ledgered.objects.filter(pk=1).update(title="theirs")
    with pytest.raises(StaleObject):
        form.save()


def test_an_object_that_is_older_than_its_version_has_one_too(ledgered: Any) -> None:
    """None at all is a version as well."""
    table = Ledgered._get_connection()
    table.update_item(*(ledgered._stored[name]["S"] for name in ("pk", "sk")), actions=[Ledgered.version.remove()])
    assert Ledgered.objects.get(pk=1).version is None
    data = tab(ledgered, title="b")
    assert sent(ledgered, data).is_valid()
    Ledgered.objects.filter(pk=1).update(title="c")
    assert sent(ledgered, data).errors == CHANGED


def test_each_form_of_a_formset_has_its_own(ledgered: Any) -> None:
    formset_class: Any = modelformset_factory(Ledgered, form=Form, extra=0)
    shown = formset_class(queryset=Ledgered.objects.filter(pk=1))
    data = {"form-TOTAL_FORMS": "1", "form-INITIAL_FORMS": "1"}
    data |= {f"form-0-{name}": str(shown.forms[0][name].value()) for name in ("number", "title", "read_version")}
    assert formset_class(data, queryset=Ledgered.objects.filter(pk=1)).is_valid()
    Ledgered.objects.filter(pk=1).update(title="b")
    assert formset_class(data, queryset=Ledgered.objects.filter(pk=1)).errors == [CHANGED]


def test_a_model_without_a_version_is_refused() -> None:
    form_class: Any = modelform_factory(Company, form=VersionedModelForm, fields=["name"])
    with pytest.raises(ConfigurationError, match=r"directory\.Company has no version"):
        form_class()
