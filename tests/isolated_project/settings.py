"""A project without SQL, whose tests write into test tables; the development table is at ``DYNAMO_TEST_URL``."""

import os
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parents[2]
SECRET_KEY = "only for tests"
DATABASES = {"default": {"ENGINE": "dynamo_single.backend"}}
DYNAMO_SINGLE = {"default": os.environ.get("DYNAMO_TEST_URL", "dynamodb://127.0.0.1:1/notes?region=us-east-1")}
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "dynamo_single",
    "tests.isolated_project.notes",
]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
SEED = "DYNAMO_TEST_SEED" in os.environ
ROOT_URLCONF = "tests.isolated_project.urls"
STATIC_URL = "static/"
USE_TZ = True
