"""Records of any shape."""

from django.apps import AppConfig


class RecordsConfig(AppConfig):
    """Books."""

    name = "project.records"
    verbose_name = "Records"
