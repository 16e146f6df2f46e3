"""Settings of helpdesk. Values that differ between machines come from the environment."""

import os
from pathlib import Path

from django.core import mail
from django.core.exceptions import ImproperlyConfigured

BASE_DIR = Path(__file__).resolve().parent.parent

DEBUG = os.environ.get("DEBUG", "1") == "1"
SECRET_KEY = os.environ.get("SECRET_KEY", "")
if not SECRET_KEY:
    if not DEBUG:
        raise ImproperlyConfigured("Set SECRET_KEY in the environment: there is no default without DEBUG.")
    SECRET_KEY = "only-for-development-not-a-secret"
ALLOWED_HOSTS = [host for host in os.environ.get("ALLOWED_HOSTS", "").split(",") if host]

# The table. Without DYNAMO_URL it is on a local engine, which `manage.py dynamo_local` runs.
DYNAMO_SINGLE = {
    "default": os.environ.get(
        "DYNAMO_URL", "dynamodb://127.0.0.1:8001/helpdesk?region=us-east-1&indexes=gs1,gs2,gs3,gs4"
    ),
}
# No SQL database: this engine does not store data.
DATABASES = {"default": {"ENGINE": "dynamo_single.backend"}}

INSTALLED_APPS = [
    "dynamo_single.admin.apps.DynamoAdminConfig",  # instead of django.contrib.admin
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "dynamo_single",
    "desk",  # before the accounts, whose frame it replaces
    "dynamo_single.contrib.accounts.ready",
    "dynamo_single.contrib.accounts",
    "dynamo_single.contrib.rest_framework",
    "rest_framework",
]

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["dynamo_single.contrib.accounts.backends.EmailOrUsernameBackend"]
SESSION_ENGINE = "dynamo_single.sessions"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "organizations"
LOGOUT_REDIRECT_URL = "login"
# The server prints e-mails, such as the link that confirms an address, to its console.
EMAIL = os.environ.get("EMAIL_BACKEND", "django.core.mail.backends.console.EmailBackend")
if hasattr(mail, "mailers"):  # Django 6.1 and later
    MAILERS = {"default": {"BACKEND": EMAIL}}
else:
    EMAIL_BACKEND = EMAIL
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

MIDDLEWARE = [
    "dynamo_single.middleware.UnavailableMiddleware",  # status 503 while DynamoDB is unavailable
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

ROOT_URLCONF = "helpdesk.urls"
WSGI_APPLICATION = "helpdesk.wsgi.application"
STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "var" / "static"
LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "dynamo_single.contrib.rest_framework.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_FILTER_BACKENDS": [
        "dynamo_single.contrib.rest_framework.filters.KeyFilterBackend",
        "dynamo_single.contrib.rest_framework.filters.KeySearchFilter",
        "dynamo_single.contrib.rest_framework.filters.KeyOrderingFilter",
    ],
    "DEFAULT_PAGINATION_CLASS": "dynamo_single.contrib.rest_framework.pagination.CursorPagination",
    "PAGE_SIZE": 20,
    "EXCEPTION_HANDLER": "dynamo_single.contrib.rest_framework.errors.exception_handler",
}
