"""The Django app."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Users and the ways they log in."""

    name = "accounts"
    verbose_name = "Accounts"

    def ready(self) -> None:
        """Refuse wrong settings."""
        from accounts.conf import account_settings

        account_settings()
