"""Django's own forms, shortcuts, views, serializers and relations on these models, unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django import forms
from django.core import serializers
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.forms import modelform_factory
from django.http import Http404
from django.shortcuts import get_list_or_404, get_object_or_404
from django.test import RequestFactory
from django.views.generic import CreateView, DetailView, ListView, UpdateView

from dynamo_single import models
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Office, Person
from tests.catalog.models import Product, Sample
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.usefixtures("table")

CompanyForm: Any = modelform_factory(Company, fields=["name", "stock", "founded", "public"])
PersonForm: Any = modelform_factory(Person, fields=["company", "name", "email", "role"])


def test_a_model_form_has_djangos_fields() -> None:
    """Each attribute brings the form field that Django has for its kind."""
    kinds = {name: type(field) for name, field in CompanyForm().fields.items()}
    assert kinds == {
        "name": forms.CharField,
        "stock": forms.CharField,
        "founded": forms.DateField,
        "public": forms.BooleanField,
    }


def test_a_model_form_creates_and_updates() -> None:
    """A valid form saves a new object with one request and a changed one with one more."""
    form = CompanyForm({"name": "Acme", "stock": "", "founded": "1999-01-31"})
    assert form.is_valid(), form.errors
    with assert_requests(["PutItem"]):
        company = form.save()
    assert (company.stock, str(company.founded), company.public) == (None, "1999-01-31", False)
    form = CompanyForm({"name": "Acme", "stock": "ACM", "founded": "1999-01-31"}, instance=company)
    with assert_requests(["UpdateItem"]):
        form.save()
    assert Company.objects.get(pk=company.pk).stock == "ACM"


@pytest.mark.parametrize(
    ("data", "errors"),
    [
        ({"name": ""}, {"name": ["This field is required."]}),
        ({"name": "n" * 121}, {"name": ["Ensure this value has at most 120 characters (it has 121)."]}),
        ({"name": "x", "founded": "soon"}, {"founded": ["Enter a valid date."]}),
    ],
)
def test_a_model_form_reports_bad_input_on_its_fields(data: dict[str, Any], errors: dict[str, list[str]]) -> None:
    """Validation is Django's, without a request."""
    with assert_requests(0):
        assert CompanyForm(data).errors == errors


def test_a_reference_is_a_choice_of_objects() -> None:
    """A foreign key's form field lists the other model's objects and gives back the chosen one."""
    company = Company.objects.create(company_id="c1", name="Acme")
    form = PersonForm({"company": "c1", "name": "Mike", "email": "", "role": "member"})
    assert '<option value="c1">Acme</option>' in str(PersonForm())
    assert form.is_valid(), form.errors
    assert form.save().company == company


def test_a_form_reports_a_taken_unique_value_on_its_field() -> None:
    """The error belongs to the field, as in Django."""
    Company.objects.create(company_id="c1", name="Acme")
    Person.objects.create(company_id="c1", name="Mike", email="mike@example.org")
    form = PersonForm({"company": "c1", "name": "Other", "email": "MIKE@example.org", "role": "member"})
    assert form.errors == {"email": ["Person with this E-mail address already exists."]}


def test_documents_and_sets_survive_a_form_unchanged() -> None:
    """A form returns exactly the shown map, list or set, including decimal digits."""
    from decimal import Decimal

    form_class: Any = modelform_factory(Sample, fields=["data", "things", "words", "numbers", "json"])
    sample = Sample.objects.create(
        data={"price": Decimal("456.6700000000000000001")},
        things=[1, "é"],
        words={"a", "b"},
        numbers={1, Decimal("2.5")},
    )
    shown = form_class(instance=sample)
    form = form_class({name: shown[name].value() or "" for name in shown.fields}, instance=sample)
    assert form.is_valid(), form.errors
    assert form.changed_data == []
    with assert_requests(0):
        form.save()


@pytest.mark.parametrize(
    ("field", "text", "message"),
    [
        ("data", "{", "Enter valid JSON: see line 1, column 2."),
        ("numbers", "1\nx", 'Line 2: "x" is no number.'),
    ],
)
def test_a_form_refuses_text_that_is_no_document(field: str, text: str, message: str) -> None:
    """Bad JSON and bad numbers are form errors."""
    form_class: Any = modelform_factory(Sample, fields=[field])
    assert form_class({field: text}).errors == {field: [message]}


def test_get_object_or_404() -> None:
    """The shortcut finds by pk and turns a missing object into a 404."""
    Company.objects.create(company_id="c1", name="Acme")
    with assert_requests(["GetItem", "GetItem"]):
        assert get_object_or_404(Company, pk="c1").name == "Acme"
        with pytest.raises(Http404):
            get_object_or_404(Company, pk="c2")
    with pytest.raises(Http404):
        get_list_or_404(Company, name="nobody")


def test_a_list_view_lists() -> None:
    """A ListView pages through a model with a count and one Query."""
    for name in ("A", "B", "C"):
        Company.objects.create(name=name)
    view: Any = ListView.as_view(model=Company, paginate_by=2)
    request = RequestFactory().get("/", {"page": "2"})
    with assert_requests(["Query", "Query"]):
        response = view(request)
        assert [company.name for company in response.context_data["object_list"]] == ["C"]
    assert response.template_name == ["directory/company_list.html"]


def test_a_detail_view_finds_by_pk() -> None:
    """A DetailView takes the joined identity from the URL."""
    Person.objects.create(company_id="c1", person_id="p1", name="Mike")
    view: Any = DetailView.as_view(model=Person)
    response = view(RequestFactory().get("/"), pk="c1~~p1")
    assert response.context_data["person"].name == "Mike"


def test_a_paginator_counts_and_slices() -> None:
    """Django's paginator works on a queryset."""
    for name in ("A", "B", "C"):
        Company.objects.create(name=name)
    page = Paginator(Company.objects.all(), 2).page(1)
    assert ([company.name for company in page], page.has_next()) == (["A", "B"], True)


def test_objects_are_serialized_and_loaded_again() -> None:
    """Fixtures hold every attribute, and loading one twice replaces instead of failing."""
    company = Company.objects.create(company_id="c1", name="Acme")
    Person.objects.create(company=company, person_id="p1", name="Mike", email="mike@example.org")
    Product.objects.create(product_id="x", data={"price": 5})
    found = [*Company.objects.all(), *Person.objects.all(), Product.objects.get(pk="x")]
    text = serializers.serialize("json", found)
    for each in found:
        each.hard_delete()
    for _ in range(2):
        for loaded in serializers.deserialize("json", text):
            loaded.save()
    person = Person.objects.get(pk="c1~~p1")
    assert (person.email, person.company.name, Product.objects.get(pk="x").data) == (
        "mike@example.org",
        "Acme",
        {"price": 5},
    )


def test_the_reverse_of_a_reference_is_djangos_manager() -> None:
    """``company.person_set`` filters by the company and creates with it."""
    company = Company.objects.create(company_id="c1", name="Acme")
    company.person_set.create(name="Mike")
    company.offices.create(city="Rome")
    assert [person.name for person in company.person_set.all()] == ["Mike"]
    assert [office.city for office in Office.objects.filter(company=company)] == ["Rome"]


def test_a_reference_to_a_deleted_object_still_resolves() -> None:
    """A reference to an object in the trash can still be shown."""
    company = Company.objects.create(company_id="c1", name="Acme")
    person = Person.objects.create(company_id="c1", name="Mike")
    company.delete()
    assert person.company.name == "Acme"


def test_refresh_reads_the_object_again() -> None:
    """``refresh_from_db`` is one strongly consistent GetItem, also for chosen fields."""
    company = Company.objects.create(company_id="c1", name="Acme", stock="A")
    Company.objects.filter(pk="c1").update(stock="B")
    company.name = "unsaved"
    with assert_requests(["GetItem"]) as sent:
        company.refresh_from_db(fields=["stock"])
    assert sent[0].params["ConsistentRead"] is True
    assert (company.name, company.stock) == ("unsaved", "B")
    company.refresh_from_db()
    assert company.name == "Acme"


def test_a_stock_create_view_formats_its_success_url() -> None:
    """The view takes the URL's parts from the new object's ``__dict__``."""
    view = CreateView.as_view(model=Sample, fields=["text"], success_url="/samples/{sample_id}/{text}/")
    response = view(RequestFactory().post("/", {"text": "a"}))
    assert response.url == f"/samples/{Sample.objects.allow_scan().get().pk}/a/"


def test_a_stock_update_view_formats_its_success_url() -> None:
    """The view takes the URL's parts from the loaded and changed object's ``__dict__``."""
    Sample.objects.create(sample_id="s", text="a")
    view = UpdateView.as_view(model=Sample, fields=["text"], success_url="/samples/{sample_id}/{text}/")
    assert view(RequestFactory().post("/", {"text": "b"}), pk="s").url == "/samples/s/b/"


def _noted(cls: Any, db: Any, field_names: Any, values: Any, **options: Any) -> Any:
    """Override it as in Django's documentation."""
    found = models.Model.from_db.__func__(cls, db, field_names, values, **options)  # type: ignore[attr-defined]
    found.loaded = dict(zip(field_names, values, strict=True))
    return found


def _by_itself(cls: Any, db: Any, field_names: Any, values: Any, **options: Any) -> Any:
    given = dict(zip(field_names, values, strict=True))
    del given["identity"]
    return cls(**given)


@contextmanager
def loading(from_db: Any) -> Iterator[Any]:
    """A model with a ``from_db()`` of its own, and one object of it."""
    with forgotten():
        model = declare(
            "Loading",
            ("LOADING#{group}", "LOADING#{loading_id}"),
            loading_id=models.UnicodeAttribute(),
            group=models.UnicodeAttribute(),
            text=models.UnicodeAttribute(default=""),
            from_db=classmethod(from_db),
        )
        model.objects.create(loading_id="n", group="g", text="a")
        yield model.objects.filter(group="g", loading_id="n")


def test_from_db_is_called_for_an_object_that_is_read() -> None:
    """The hook receives the names of the attributes and the identity, and their values."""
    with loading(_noted) as queryset:
        assert queryset.get().loaded == {"identity": "g~~n", "loading_id": "n", "group": "g", "text": "a"}


def test_from_db_of_a_class_is_replaced_later() -> None:
    """This applies to a list and a key, and after the removal."""
    with forgotten():
        model = declare(
            "Loading",
            ("LOADING", "{loading_id}"),
            loading_id=models.UnicodeAttribute(),
        )
        model.objects.create(loading_id="n")
        read = (lambda: model.objects.get(pk="n"), lambda: model.objects.all()[0])
        assert not any(hasattr(each(), "loaded") for each in read)
        model.from_db = classmethod(_noted)
        assert [each().loaded["loading_id"] for each in read] == ["n", "n"]
        del model.from_db
        assert not any(hasattr(each(), "loaded") for each in read)


def test_from_db_is_told_what_was_read_in_part() -> None:
    """The names do not include deferred attributes, as in Django."""
    with loading(_noted) as queryset:
        found = queryset.defer("text").get()
        assert "text" not in found.loaded
        assert found.text == "a"


@pytest.mark.parametrize("from_db", [_noted, _by_itself])
def test_an_object_that_from_db_gave_is_saved_by_its_difference(from_db: Any) -> None:
    """The object knows its item like any object, even if it was created without ``super()``."""
    with loading(from_db) as queryset:
        found = queryset.get()
        with assert_requests(0):
            found.save()
        found.text = "b"
        with assert_requests(["UpdateItem"]):
            found.save()


def test_a_reference_is_checked_without_an_object() -> None:
    """The check reads the referenced object, as in ``createsuperuser``."""
    Sample.objects.create(sample_id="there")
    field = Sample._meta.get_field("parent")
    with assert_requests(["GetItem", "GetItem"]):
        assert field.clean("there", None) == "there"
        with pytest.raises(ValidationError, match="not a valid choice"):
            field.clean("gone", None)
