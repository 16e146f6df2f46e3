"""The demo as in production: without DEBUG, and with the quick password hashes of the baseline."""

from project.settings import *  # noqa: F403 - settings modules build on each other by names

DEBUG = False
ALLOWED_HOSTS = ["localhost"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
