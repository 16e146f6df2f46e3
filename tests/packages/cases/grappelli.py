"""The list, the form and the pages of this app's admin in this theme."""

from tests.packages.case import admin_pages, start

PACKAGE = "django-grappelli"
RESULT = "with lines"
LINES = '`"grappelli"` before the admin in `INSTALLED_APPS`, and `path("grappelli/", include("grappelli.urls"))`'

start("dynamo_single.admin.apps.DynamoAdminConfig", before=("grappelli",))

from django.urls import include, path

admin_pages(path("grappelli/", include("grappelli.urls")))
