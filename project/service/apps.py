"""The user service."""

from django.apps import AppConfig


class ServiceConfig(AppConfig):
    """Users, their e-mail addresses and whom they belong to."""

    name = "project.service"
    verbose_name = "User service"
