"""Its templates list the content types."""

from tests.packages.case import admin_pages, start

PACKAGE = "django-grappelli"
RESULT = "refused"
REASON = "Its templates list the content types, which are rows of SQL: every page raises `NotSupported`."

start("dynamo_single.admin.apps.DynamoAdminConfig", before=("grappelli",))

from dynamo_single.exceptions import NotSupported

try:
    admin_pages()
except NotSupported as error:
    assert "contenttypes.ContentType" in str(error)
else:
    raise AssertionError("It works now.")
