"""Import and export of rows, new and changed ones."""

from tests.packages.case import start

PACKAGE = "django-import-export"
RESULT = "with lines"
LINES = "`IMPORT_EXPORT_USE_TRANSACTIONS = False`, because it would roll back a transaction of SQL"

start("dynamo_single.admin.apps.DynamoAdminConfig", "import_export", IMPORT_EXPORT_USE_TRANSACTIONS=False)

import tablib
from import_export import resources

from project.directory.models import Company


class CompanyResource(resources.ModelResource):
    class Meta:
        model = Company
        import_id_fields = ["company_id"]
        fields = ["company_id", "name", "stock"]


rows = tablib.Dataset(["c1", "Acme", "ACM"], ["c2", "Beta", ""], headers=["company_id", "name", "stock"])
result = CompanyResource().import_data(rows, raise_errors=True)
assert result.totals["new"] == 2, result.totals
assert Company.objects.get(pk="c1").name == "Acme"
rows = tablib.Dataset(["c1", "Newer", "ACM"], headers=["company_id", "name", "stock"])
assert CompanyResource().import_data(rows, raise_errors=True).totals["update"] == 1
exported = CompanyResource().export(Company.objects.all())
assert sorted(exported["name"]) == ["Beta", "Newer"]
