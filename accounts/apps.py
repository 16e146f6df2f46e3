"""The Django app."""

from django.apps import AppConfig
from django.core import checks


class AccountsConfig(AppConfig):
    """Users and the ways they log in."""

    name = "accounts"
    verbose_name = "Accounts"

    def ready(self) -> None:
        """Refuse wrong settings, and have what is right only on one's own machine checked before deployment."""
        from accounts.checks import check_client_address
        from accounts.conf import account_settings

        account_settings()
        checks.register(check_client_address, checks.Tags.security, deploy=True)
