"""A project of one package without SQL: each file in ``cases`` calls ``start()`` and then uses the package.

Each file declares ``PACKAGE``, and one of ``RESULT = "unchanged"``, ``RESULT = "with lines"`` with ``LINES``, or
``RESULT = "refused"`` with ``REASON``.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import Any

import django
from django.conf import settings
from django.core import checks
from django.core.management import call_command

from dynamo_single.testing import setup_table

BASE = (
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "dynamo_single",
    "dynamo_single.contrib.accounts",
    "accounts",
    "project.directory",
)
MIDDLEWARE = (
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
)
#: The module of the addresses of a case.
URLS = "tests_packages_urls"


def start(
    *apps: str, before: tuple[str, ...] = (), middleware: tuple[str, ...] = (), is_checked: bool = True, **others: Any
) -> None:
    """Configure a project without SQL with some apps, create its table, and run ``check`` and ``migrate``."""
    context = [f"django.{'contrib.' if name != 'request' else ''}{path}" for name, path in _CONTEXT]
    given: dict[str, Any] = {
        "SECRET_KEY": "plainly-fake",
        "DEBUG": True,
        "ALLOWED_HOSTS": ["*"],
        "USE_TZ": True,
        "STATIC_URL": "static/",
        "ROOT_URLCONF": URLS,
        "DATABASES": {"default": {"ENGINE": "dynamo_single.backend"}},
        "DYNAMO_SINGLE": {"default": os.environ["DYNAMO_URL"]},
        "AUTH_USER_MODEL": "accounts.User",
        "AUTHENTICATION_BACKENDS": ["dynamo_single.contrib.accounts.backends.EmailOrUsernameBackend"],
        "SESSION_ENGINE": "dynamo_single.sessions",
        "INSTALLED_APPS": [*before, *BASE, *apps],
        "MIDDLEWARE": [*MIDDLEWARE, *middleware],
        "TEMPLATES": [
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "APP_DIRS": True,
                "OPTIONS": {"context_processors": context},
            }
        ],
    }
    settings.configure(**given | others)
    sys.modules.setdefault(URLS, _urls([]))
    django.setup()
    setup_table()
    if is_checked:
        call_command("check")
        call_command("migrate", verbosity=0)


def checked(number: str) -> str:
    """Return the messages of a system check."""
    return "\n".join(str(each) for each in checks.run_checks() if str(each.id).endswith(number))


#: This app's own pages in the admin: pages of the table and of one company, the trash, and a search of the table.
OWN = (
    *(f"dynamodb/{name}/" for name in ("table", "patterns", "pictures", "health", "log", "jobs")),
    "dynamodb/health/?check=",
    "dynamodb/table/?pk=COMPANY%23{pk}",
    "dynamodb/item/?pk=COMPANY%23{pk}&sk=%23METADATA",
    "directory/company/{pk}/delete/",
    "directory/company/?trash=yes",
    "directory/company/?q=x&scan=",
    "directory/person/add/",
)


def admin_pages(*patterns: Any) -> None:
    """Visit the admin's pages as a superuser: lists, forms, the trash, and the pages of the table.

    ``patterns`` are the package's own URL patterns.
    """
    from django.contrib import admin
    from django.contrib.auth import get_user_model
    from django.test import Client
    from django.urls import path

    from project.directory.models import Company

    admin.autodiscover()
    addresses(*patterns, path("admin/", admin.site.urls))
    company = Company.objects.create(name="Acme")
    user = get_user_model().objects.create_superuser("boss", "boss@example.com", "plainly-fake-1")
    client = Client()
    client.force_login(user, "dynamo_single.contrib.accounts.backends.EmailOrUsernameBackend")
    listed = "/admin/directory/company/"
    for address in (
        "/admin/",
        listed,
        f"{listed}add/",
        f"{listed}{company.pk}/change/",
        f"{listed}{company.pk}/history/",
        *(f"/admin/{address.format(pk=company.pk)}" for address in OWN),
    ):
        page = client.get(address)
        assert page.status_code == 200, (address, page.status_code)
    assert b"Acme" in client.get(listed).content
    assert b"Move to the trash" in client.get(f"{listed}{company.pk}/delete/").content
    values = {"name": "Newer", "stock": "", "founded": "", "_save": "Save"}
    inlines = {f"{name}_set-{form}_FORMS": 0 for name in ("person", "office") for form in ("TOTAL", "INITIAL")}
    saved = client.post(f"{listed}{company.pk}/change/", {**values, **inlines})
    assert saved.status_code == 302, saved.content[:3000]
    assert Company.objects.get(pk=company.pk).name == "Newer"


_CONTEXT = (
    ("request", "template.context_processors.request"),
    ("auth", "auth.context_processors.auth"),
    ("messages", "messages.context_processors.messages"),
)


def addresses(*patterns: Any) -> None:
    """Give the project addresses."""
    sys.modules[URLS].urlpatterns[:] = patterns  # type: ignore[attr-defined]


def _urls(patterns: list[Any]) -> ModuleType:
    module = ModuleType(URLS)
    module.urlpatterns = patterns  # type: ignore[attr-defined]
    return module
