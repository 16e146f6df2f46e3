"""Stored objects with random values, by `from_model()`."""

from tests.packages.case import start

PACKAGE = "hypothesis"
RESULT = "with lines"
LINES = "`from dynamo_single.contrib.hypothesis import from_model` instead of `hypothesis.extra.django`"

start()

from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_single.contrib.hypothesis import from_model
from project.directory.models import Company, Person


@settings(max_examples=10, deadline=None)
@given(from_model(Person, company=from_model(Company, name=st.just("Acme")), name=...))
def check(person):
    assert Person.objects.get(pk=person.pk).company.name == "Acme"


check()
