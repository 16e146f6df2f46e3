"""The Django app."""

from django.apps import AppConfig


class DeskConfig(AppConfig):
    """Organizations with their members, tickets and comments."""

    name = "desk"
