"""Its models are rows of SQL: `check` names them (W912)."""

from tests.packages.case import checked, start

PACKAGE = "django-waffle"
RESULT = "refused"
REASON = "Its flags are rows of SQL. `check` warns (W912). Keep flags in settings, or in a model of your own."

start("waffle", middleware=("waffle.middleware.WaffleMiddleware",))
assert "waffle.Flag" in checked("W912")
