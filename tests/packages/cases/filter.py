"""A filter set of the attributes of a key."""

from tests.packages.case import start

PACKAGE = "django-filter"
RESULT = "unchanged"

start("django_filters")

import django_filters

from project.directory.models import Company


class Companies(django_filters.FilterSet):
    class Meta:
        model = Company
        fields = {"name": ["exact", "startswith"], "stock": ["exact"]}


Company.objects.create(name="Acme", stock="ACM")
assert [each.name for each in Companies({"name__startswith": "Ac"}, Company.objects.all()).qs] == ["Acme"]
assert [each.name for each in Companies({}, Company.objects.all()).qs] == ["Acme"]
assert [each.name for each in Companies({"stock": "ACM", "name": "Acme"}, Company.objects.all()).qs] == ["Acme"]
