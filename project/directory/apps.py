"""The demo app."""

from django.apps import AppConfig


class DirectoryConfig(AppConfig):
    """Companies, people and offices."""

    name = "project.directory"
    verbose_name = "Directory"
