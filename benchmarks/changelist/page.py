"""Request the first page of the admin's companies as a logged-in user, in the child process."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

from benchmarks.harness.pages import begin

#: The number of objects on a page of the admin.
COMPANIES = 100


def prepare() -> Callable[[], Any]:
    """Create the companies and the user, and log in."""
    is_sql = begin()
    # Import after ``begin()``, because the child's settings decide which apps exist.
    from django.apps import apps
    from django.contrib.auth import get_user_model
    from django.test import Client

    company = apps.get_model("sql", "SqlCompany") if is_sql else apps.get_model("directory", "Company")
    for number in range(COMPANIES):
        name = f"Company {number:03}"
        company.objects.create(name=name, stock=f"C{number}", founded=date(2000, 1, 1), public=bool(number % 2))
    user = get_user_model().objects.create_superuser("walker", "walker@example.com", "a walk in the park")
    client = Client(SERVER_NAME="localhost")
    client.force_login(user)
    address = f"/admin/{company._meta.app_label}/{company._meta.model_name}/"

    def read() -> None:
        answer = client.get(address)
        if answer.status_code != 200 or b"Company 042" not in answer.content:
            raise RuntimeError(f"{address} answered {answer.status_code}.")

    return read
