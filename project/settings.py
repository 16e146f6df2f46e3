"""The demo project's settings. Values that differ between machines come from the environment or from ``.env``."""

from pathlib import Path

import environ
from django.core import mail
from django.core.exceptions import ImproperlyConfigured

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.Env()
if (BASE_DIR / ".env").is_file():
    env.read_env(BASE_DIR / ".env")

DEBUG = env.bool("DEBUG", True)
SECRET_KEY = env.str("SECRET_KEY", "")
if not SECRET_KEY:
    if not DEBUG:
        raise ImproperlyConfigured("Set SECRET_KEY in the environment: without DEBUG there is no default for it.")
    SECRET_KEY = "only-for-development-and-tests-not-a-secret"  # noqa: S105 - said to be none
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=[])

# The table. The default is a local engine; its port differs from port 8000 of `manage.py runserver`.
_port = env.str("DYNAMO_PORT", "8001")
if not _port.isdecimal() or not 0 < int(_port) < 65536:
    raise ImproperlyConfigured(f"DYNAMO_PORT must be a port, a number from 1 to 65535, not {_port!r}.")
DYNAMO_PORT = int(_port)
DYNAMO_SINGLE = {
    "default": env.str(
        "DYNAMO_URL", f"dynamodb://127.0.0.1:{DYNAMO_PORT}/single-table?region=us-east-1&indexes=gs1,gs2,gs3"
    ),
}
DATABASES = {"default": {"ENGINE": "dynamo_single.backend"}}
# `manage.py demo` shows the cost of each page of the admin.
if env.bool("ADMIN_PANEL", False):
    DYNAMO_SINGLE_COSTS = {"ADMIN_PANEL": True}

INSTALLED_APPS = [
    "dynamo_single.admin.apps.DynamoAdminConfig",  # instead of django.contrib.admin
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "dynamo_single",
    "project.site",  # before the accounts, whose base template it overrides
    "accounts",
    "dynamo_single.contrib.accounts",
    "project.directory",
    "project.records",
    "project.service",
    "project.chat",
]

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["dynamo_single.contrib.accounts.backends.EmailOrUsernameBackend"]
ACCOUNTS = {
    "LOGIN_WITH": ["email", "username", "phone"],
    "PHONE_SENDER": "project.site.mails.show",
    "SECRETS": {"phone": 6},
}
SESSION_ENGINE = "dynamo_single.sessions"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "account"
# The server prints the demo's e-mails with their links, and shows them at /mails/.
email_backend = env.str("EMAIL_BACKEND", "project.site.mails.EmailBackend")
# MAILERS replaces EMAIL_BACKEND since Django 6.1, which rejects the two together.
if hasattr(mail, "mailers"):
    MAILERS = {"default": {"BACKEND": email_backend}}
else:
    EMAIL_BACKEND = email_backend
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

MIDDLEWARE = [
    "dynamo_single.middleware.UnavailableMiddleware",
    "project.site.costs.page_costs",
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "dynamo_single.authorship.CurrentUserMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

ROOT_URLCONF = "project.urls"
WSGI_APPLICATION = "project.wsgi.application"
STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "var" / "static"
LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True
