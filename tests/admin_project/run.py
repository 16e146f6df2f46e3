"""Edits a company in DynamoDB and a group in SQL through the admin, and prints what was answered and logged as JSON."""

import json
import sys

import django
from django.test import Client
from django.test.utils import setup_test_environment


def main() -> None:
    """Run the steps in the project that DJANGO_SETTINGS_MODULE names."""
    django.setup()
    setup_test_environment()
    from django.contrib.admin.models import LogEntry as SQLLogEntry
    from django.contrib.auth import get_user_model
    from django.contrib.auth.models import Group
    from django.core.management import call_command

    from dynamo_single.admin import history
    from project.directory.models import Company

    call_command("makemigrations", "--check", verbosity=0)
    call_command("migrate", verbosity=0)
    user = get_user_model()._default_manager.create_superuser("admin", "admin@example.com", "secret")
    client = Client()
    client.force_login(user)
    answers = {}

    def post(path: str, **data: str) -> None:
        answers[path] = client.post(f"/admin/{path}", data).status_code

    def get(path: str) -> None:
        answers[path] = client.get(f"/admin/{path}").status_code

    inlines = {
        f"{prefix}-{name}": "0" for prefix in ("person_set", "office_set") for name in ("TOTAL_FORMS", "INITIAL_FORMS")
    }
    post("directory/company/add/", name="Acme", **inlines)
    company = f"directory/company/{Company.objects.all()[0].pk}/"
    for page in ("change/", "delete/", "history/"):
        get(company + page)
    post(f"{company}delete/", post="yes")
    post(f"{company}restore/")
    post("auth/group/add/", name="Editors")
    group = f"auth/group/{Group.objects.get().pk}/"
    for page in ("change/", "delete/", "history/"):
        get(group + page)
    post(f"{group}delete/", post="yes")
    get("")
    in_dynamodb = history.is_in_dynamodb()
    entries = history.entries().filter(user_id=user.pk) if in_dynamodb else SQLLogEntry.objects.all()
    json.dump({"answers": answers, "in_dynamodb": in_dynamodb, "log": [str(entry) for entry in entries]}, sys.stdout)


if __name__ == "__main__":
    main()
