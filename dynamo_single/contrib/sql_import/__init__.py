"""Import the rows of an SQL database as objects: ``manage.py dynamo_import_sql``."""

from django.apps import apps

from dynamo_single.exceptions import ConfigurationError

# The import knows Django's users and groups, whose module cannot be imported without these apps.
for _app in ("django.contrib.auth", "django.contrib.contenttypes"):
    if not apps.is_installed(_app):
        raise ConfigurationError(
            f"dynamo_import_sql needs {_app!r}, as it imports users and groups too. Nothing was written. Add it to "
            "INSTALLED_APPS. Neither app needs an SQL database."
        )
