"""Its permissions of single objects are rows of SQL."""

from tests.packages.case import checked, start

PACKAGE = "django-guardian"
RESULT = "refused"
REASON = "Its permissions of single objects are rows of SQL. `check` warns (W912)."

start("guardian", is_checked=False, ANONYMOUS_USER_NAME=None)
assert "guardian" in checked("W912")
