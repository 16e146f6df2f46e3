"""The programs whose start is measured. Each runs in a separate Python process and prints the CPU seconds of two parts.

They are templates: ``$url`` is the setting of the table, ``$endpoint`` the engine's address.
"""

from __future__ import annotations

_DJANGO = """
import django
from django.conf import settings
settings.configure(SECRET_KEY="none", USE_TZ=True, DYNAMO_SINGLE={{"default": "$url"}},
    DATABASES={{"default": {database}}},
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", {apps}])
django.setup()
"""
_PLAIN = _DJANGO.format(
    apps='"benchmarks.sql"', database='{"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}'
)
_OURS = _DJANGO.format(apps='"dynamo_single", "project.directory"', database='{"ENGINE": "dynamo_single.backend"}')
_MANY_PLAIN = _DJANGO.format(
    apps='"benchmarks.sql", "benchmarks.many.plain"',
    database='{"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}',
)
_MANY_OURS = _DJANGO.format(
    apps='"dynamo_single", "project.directory", "benchmarks.many.ours"',
    database='{"ENGINE": "dynamo_single.backend"}',
)
_CLIENT = """("dynamodb", region_name="us-east-1", endpoint_url="$endpoint",
    aws_access_key_id="local", aws_secret_access_key="local")
client.get_item(TableName="single-table", Key={"pk": {"S": "START#1"}, "sk": {"S": "x"}})
"""
_PYNAMODB = """
from pynamodb.attributes import UnicodeAttribute
from pynamodb.models import Model
class Start(Model):
    class Meta:
        table_name, region, host = "single-table", "us-east-1", "$endpoint"
        aws_access_key_id = aws_secret_access_key = "local"
    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
"""
_PYNAMODB_FIRST = """
try:
    Start.get("START#1", "x")
except Start.DoesNotExist:
    pass
"""
_OURS_GET = """
from project.directory.models import Company
try:
    Company.objects.get(pk="company-3f0d2a54-7d2b-4c1e-9a0e-5b8f6c7d1e22")
except Company.DoesNotExist:
    pass
"""
_OURS_FIRST = """
from project.directory.models import Company
Company.objects.filter(company_id="company-3f0d2a54-7d2b-4c1e-9a0e-5b8f6c7d1e22").first()
"""

DJANGO = "Django and pynamodb"
#: By name, the code before the first request, and the first request.
PROGRAMS = {
    DJANGO: (_PLAIN + "import pynamodb.models", ""),
    "Django alone": (_PLAIN, ""),
    "botocore": ("import botocore.session", f"client = botocore.session.get_session().create_client{_CLIENT}"),
    "boto3": ("import boto3", f"client = boto3.client{_CLIENT}"),
    "PynamoDB": (_PYNAMODB, _PYNAMODB_FIRST),
    "ours": (_OURS, _OURS_FIRST),
}

#: The programs with a hundred more models, and ours with a first ``get()`` instead of a filter.
MANY = {DJANGO: (_MANY_PLAIN + "import pynamodb.models", ""), "ours": (_MANY_OURS, "")}
GET = {"PynamoDB": PROGRAMS["PynamoDB"], "ours": (_OURS, _OURS_GET)}
