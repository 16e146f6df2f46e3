"""The settings of Django's own test runs, with our engine and our table instead of its databases."""

from pathlib import Path

from tests.upstream.catalogue import INDEXES

# The folder in which the app looks for the local engine.
BASE_DIR = Path(__file__).resolve().parents[2]
SECRET_KEY = "django_tests_secret_key"
DATABASES = {
    "default": {"ENGINE": "dynamo_single.backend"},
    "other": {"ENGINE": "dynamo_single.backend"},
}
DYNAMO_SINGLE = {
    "default": {
        "TABLE_NAME": "upstream",
        "REGION": "us-east-1",
        # No server listens here: each run starts a separate engine.
        "ENDPOINT_URL": "http://127.0.0.1:1",
        "INDEXES": list(INDEXES),
    }
}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
# The other settings of Django's runtests.py.
INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "dynamo_single",
    # It must replace auth's user before other models refer to it.
    "tests.upstream.stock",
    "django.contrib.sites",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.admin.apps.SimpleAdminConfig",
    "django.contrib.staticfiles",
]
SESSION_ENGINE = "dynamo_single.sessions"
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
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
    }
]
ROOT_URLCONF = "urls"
STATIC_URL = "static/"
LANGUAGE_CODE = "en"
SITE_ID = 1
MIGRATION_MODULES = {"admin": None, "auth": None, "contenttypes": None, "sessions": None, "sites": None}
SILENCED_SYSTEM_CHECKS = ["fields.W342"]
