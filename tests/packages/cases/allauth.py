"""Its addresses and accounts elsewhere are rows of SQL."""

from tests.packages.case import checked, start

PACKAGE = "django-allauth"
RESULT = "refused"
REASON = "Its addresses and accounts elsewhere are rows of SQL; beside an SQL database it [works](../how-to/sql-beside.md). Without one use `dynamo_single.contrib.accounts`."

start("allauth", "allauth.account", middleware=("allauth.account.middleware.AccountMiddleware",), is_checked=False)
assert "account.EmailAddress" in checked("W912")
