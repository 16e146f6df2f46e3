"""The Django app."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Users and the ways they log in."""

    name = "accounts"
    verbose_name = "Accounts"
