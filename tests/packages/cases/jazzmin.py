"""The list, the form and the pages of this app's admin in this theme."""

from tests.packages.case import admin_pages, start

PACKAGE = "django-jazzmin"
RESULT = "unchanged"

start("dynamo_single.admin.apps.DynamoAdminConfig", before=("jazzmin",))
admin_pages()
