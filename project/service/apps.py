"""The user service."""

from django.apps import AppConfig


class ServiceConfig(AppConfig):
    """Users, their e-mail addresses and their beneficiaries."""

    name = "project.service"
    verbose_name = "User service"
