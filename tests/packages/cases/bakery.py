"""Objects with random values, with references, and several at once."""

from dynamo_single.contrib.model_bakery import GENERATORS
from tests.packages.case import start

PACKAGE = "model-bakery"
RESULT = "with lines"
LINES = "`BAKER_CUSTOM_FIELDS_GEN = dynamo_single.contrib.model_bakery.GENERATORS`"

start(BAKER_CUSTOM_FIELDS_GEN=GENERATORS)

from model_bakery import baker

from project.directory.models import Company, Office, Person

company = baker.make(Company, name="Acme")
assert Company.objects.get(pk=company.pk).name == "Acme"
assert baker.make(Person, company=company, email="a@example.com").company_id == company.pk
assert len(baker.make(Company, _quantity=3, _bulk_create=True)) == 3
made = baker.make(Office, _fill_optional=["opened", "hours"])
assert Office.objects.get(pk=made.pk).company.pk == made.company_id
