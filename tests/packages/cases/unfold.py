"""The list, the form and the pages of this app's admin in this theme."""

from tests.packages.case import admin_pages, start

PACKAGE = "django-unfold"
RESULT = "with lines"
LINES = (
    '`"unfold.apps.BasicAppConfig"` and a config with `default_site` in `INSTALLED_APPS`; '
    "`class Site(DynamoAdminSite, UnfoldAdminSite)` is this site"
)

start("tests.packages.themed.UnfoldConfig", before=("unfold.apps.BasicAppConfig",))
admin_pages()
