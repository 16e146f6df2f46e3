"""A project with Django's stock apps and no SQL database; the admin's site omits models without storage."""

SECRET_KEY = "only for tests"
DATABASES = {"default": {"ENGINE": "dynamo_single.backend"}}
DYNAMO_SINGLE = {"default": "dynamodb://127.0.0.1:1/single-table?region=us-east-1"}
INSTALLED_APPS = [
    "dynamo_single.admin.apps.DynamoAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.sites",
    "django.contrib.staticfiles",
    "dynamo_single",
    "tests.backend_project.shop",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
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
            ]
        },
    }
]
CACHES = {"default": {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "cache"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROOT_URLCONF = "tests.backend_project.urls"
STATIC_URL = "static/"
SESSION_ENGINE = "dynamo_single.sessions"
# It has no logins, and tests only its SQL models.
SILENCED_SYSTEM_CHECKS = ["dynamo_single.W902", "dynamo_single.W912"]
USE_TZ = True
SITE_ID = 1
