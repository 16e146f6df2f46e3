"""Edit a company in DynamoDB and a group in SQL through the admin, and print responses and the log as JSON."""

import json
import sys
import warnings
from typing import Any

import django
from django.test import Client
from django.test.utils import setup_test_environment


def main() -> None:
    """Run the steps in the project of DJANGO_SETTINGS_MODULE; a warning raises an error."""
    warnings.simplefilter("error")
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
    rows = permission_rows()
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
    index = client.get("/admin/").content.decode()
    in_dynamodb = history.is_in_dynamodb()
    entries = history.log_entries().filter(user_id=user.pk) if in_dynamodb else SQLLogEntry.objects.all()
    result = {
        "answers": answers,
        "in_dynamodb": in_dynamodb,
        "log": [str(entry) for entry in entries],
        "permissions": rows,
        "after_migrating_again": permission_rows(),
        "sql_groups_on_the_index": 'href="/admin/auth/group/"' in index,
        "staff": staff_answers(in_dynamodb=in_dynamodb),
    }
    json.dump(result, sys.stdout)


def permission_rows() -> list[str]:
    """The permissions of the directory's models that SQL holds."""
    from django.contrib.auth.models import Permission

    found = Permission.objects.filter(content_type__app_label="directory", content_type__model="company")
    return [f"{row.codename}: {row.name}" for row in found.order_by("codename")]


def staff_answers(*, in_dynamodb: bool) -> dict[str, Any]:
    """Return the trash's responses to a member of a group that may view and restore companies, and to a former one."""
    from django.contrib.auth import get_user_model
    from django.contrib.auth.models import Group, Permission

    from project.directory.models import Company

    codes = ["view_company", "restore_company"]
    user = get_user_model()._default_manager.create_user("staff", "staff@example.com", "secret", is_staff=True)
    if in_dynamodb:
        from accounts.models import Group as OwnGroup

        user.groups.create(name="Staff", permission_names={f"directory.{code}" for code in codes})
        assert OwnGroup.objects.get().user_set.get() == user
    else:
        group = Group.objects.create(name="Staff")
        group.permissions.set(Permission.objects.filter(codename__in=codes))
        user.groups.add(group)
    client = Client()
    client.force_login(user)
    acme = Company.objects.create(name="Acme in the trash")
    acme.delete()
    page = f"/admin/directory/company/{acme.pk}/"
    shown = client.get(f"{page}change/").content.decode()
    answers: dict[str, Any] = {
        "restore button": "/restore/" in shown,
        "delete button": "/delete/" in shown,
        "delete": client.post(f"{page}delete/", {"post": "yes"}).status_code,
        "restore": client.post(f"{page}restore/").status_code,
        "restored": Company.objects.filter(pk=acme.pk).exists(),
    }
    user.groups.clear()
    answers["list after leaving the group"] = client.get("/admin/directory/company/").status_code
    return answers


if __name__ == "__main__":
    main()
