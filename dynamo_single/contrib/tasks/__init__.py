"""Django's tasks in the table: a backend for ``TASKS``, and ``manage.py dynamo_worker``, which runs them.

Importing it with a Django that has no ``django.tasks`` raises ``ConfigurationError``.
"""

from importlib.util import find_spec

from django import get_version

from dynamo_single.exceptions import ConfigurationError

if find_spec("django.tasks") is None:
    raise ConfigurationError(
        f"Cannot import dynamo_single.contrib.tasks with Django {get_version()}, which has no django.tasks. Install "
        'Django 6.1, or remove "dynamo_single.contrib.tasks" from INSTALLED_APPS.'
    )
