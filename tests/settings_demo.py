"""The settings of a demo in a test: the demo's without slow password hashes."""

from project.settings import *  # noqa: F403 - settings modules build on each other by names

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
