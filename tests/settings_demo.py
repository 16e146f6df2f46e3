"""The settings of a demo that a test runs: the demo's, but for slow hashes of passwords."""

from project.settings import *  # noqa: F403 - settings modules build on each other by names

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
