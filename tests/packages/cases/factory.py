"""Factories with sub-factories and sequences, and `create_batch()`."""

from tests.packages.case import start

PACKAGE = "factory-boy"
RESULT = "unchanged"

start()

import factory

from project.directory.models import Company, Person


class CompanyFactory(factory.django.DjangoModelFactory):
    name = factory.Sequence("Company {}".format)

    class Meta:
        model = Company


class PersonFactory(factory.django.DjangoModelFactory):
    company = factory.SubFactory(CompanyFactory)
    name = factory.Faker("name")

    class Meta:
        model = Person


person = PersonFactory()
assert Person.objects.get(pk=person.pk).company.name == "Company 0"
assert len(CompanyFactory.create_batch(3)) == 3
