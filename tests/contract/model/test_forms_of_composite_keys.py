"""Forms of a composite primary key report a taken one like any unique value."""

from __future__ import annotations

from typing import Any

import pytest
from django import forms

from dynamo_single.testing import assert_requests
from tests.catalog.models import Employee, Firm, Order

TAKEN = "Employee with this Firm and Employee id already exists."
TWICE = "Please correct the duplicate values below."


class EmployeeForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """All that an employee has."""

    class Meta:
        model = Employee
        fields = ("firm", "employee_id", "name")


@pytest.fixture
def firm(table: Any) -> Firm:
    """A firm with one employee."""
    firm = Firm.objects.create(firm_id="f1", name="Acme", stock="ACM")
    Employee.objects.create(firm_id="f1", employee_id="e1", name="Ann")
    return firm


def rows(prefix: str, *rows: dict[str, str]) -> dict[str, str]:
    """Return a browser's submission of new rows in a formset."""
    data = {f"{prefix}-TOTAL_FORMS": str(len(rows)), f"{prefix}-INITIAL_FORMS": "0"}
    return data | {f"{prefix}-{number}-{name}": value for number, row in enumerate(rows) for name, value in row.items()}


def test_a_model_form_reports_a_key_that_is_taken(firm: Firm) -> None:
    form = EmployeeForm({"firm": "f1", "employee_id": "e1", "name": "Bob"})

    assert form.errors == {"__all__": [TAKEN]}


def test_a_key_that_is_free_costs_one_request(table: Any) -> None:
    form = forms.modelform_factory(Order, fields=["customer", "number"])({"customer": "ann", "number": "1"})

    with assert_requests(["GetItem"]):
        assert form.is_valid()


def test_an_object_is_not_in_its_own_way(firm: Firm) -> None:
    ann = Employee.objects.get(pk="f1~~e1")

    assert EmployeeForm({"firm": "f1", "employee_id": "e1", "name": "Anna"}, instance=ann).is_valid()


def test_a_form_without_all_of_the_key_does_not_ask(firm: Firm) -> None:
    form = forms.modelform_factory(Employee, fields=["employee_id", "name"])({"employee_id": "e1", "name": "Bob"})

    with assert_requests([]):
        assert form.is_valid()


def test_a_formset_reports_a_key_that_is_taken(firm: Firm) -> None:
    formset_class = forms.modelformset_factory(Employee, EmployeeForm, extra=1)

    formset = formset_class(rows("form", {"firm": "f1", "employee_id": "e1"}), queryset=Employee.objects.none())

    assert formset.errors == [{"__all__": [TAKEN]}]


def test_a_formset_reports_two_new_rows_of_one_key(firm: Firm) -> None:
    formset_class = forms.modelformset_factory(Employee, EmployeeForm, extra=2)
    new = {"firm": "f1", "employee_id": "e9"}

    formset = formset_class(rows("form", new, new), queryset=Employee.objects.none())

    assert formset.errors == [{}, {"__all__": [TWICE]}]


def test_an_inline_reports_a_key_that_is_taken(firm: Firm) -> None:
    formset_class = forms.inlineformset_factory(Firm, Employee, fields=["employee_id", "name"], extra=1)

    formset = formset_class(rows("employee_set", {"employee_id": "e1"}), instance=firm)

    assert formset.errors == [{"__all__": [TAKEN]}]


def test_an_inline_reports_two_new_rows_of_one_key(firm: Firm) -> None:
    formset_class = forms.inlineformset_factory(Firm, Employee, fields=["employee_id", "name"], extra=2)

    formset = formset_class(rows("employee_set", {"employee_id": "e9"}, {"employee_id": "e9"}), instance=firm)

    assert formset.errors == [{}, {"__all__": [TWICE]}]


def test_a_number_in_a_key_is_compared_as_a_number(table: Any) -> None:
    Order.objects.create(customer="ann", number=1)
    form_class = forms.modelform_factory(Order, fields=["customer", "number", "status"])

    form = form_class({"customer": "ann", "number": "01", "status": "open"})

    assert form.errors == {"__all__": ["Order with this Customer and Number already exists."]}


def test_full_clean_reports_the_key_once(firm: Firm) -> None:
    with pytest.raises(forms.ValidationError) as caught, assert_requests(["GetItem"]):
        Employee(firm_id="f1", employee_id="e1").full_clean()

    assert caught.value.message_dict == {"__all__": [TAKEN]}
