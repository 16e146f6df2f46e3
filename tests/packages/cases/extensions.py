"""The names that `shell_plus` imports, and `list_model_info`."""

import io

from tests.packages.case import start

PACKAGE = "django-extensions"
RESULT = "unchanged"

start("django_extensions")

from django.core.management import call_command

out = io.StringIO()
call_command("list_model_info", model="directory.Company", stdout=out)
assert "company_id" in out.getvalue()
from django.core.management.color import no_style
from django_extensions.management.shells import import_objects

assert "Company" in import_objects({"dont_load": [], "quiet_load": True}, no_style())
