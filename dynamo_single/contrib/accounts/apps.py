"""The Django app."""

from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in
from django.core import checks
from django.utils.translation import gettext_lazy as _


class AccountsConfig(AppConfig):
    """The pages, forms and checks of users and their login methods; the models are in an app of the project."""

    name = "dynamo_single.contrib.accounts"
    label = "dynamo_accounts"
    verbose_name = _("Accounts")

    def ready(self) -> None:
        """Raise ``ConfigurationError`` for invalid settings, and register the checks, some of them for deployment."""
        from dynamo_single.contrib.accounts import addresses
        from dynamo_single.contrib.accounts.checks import (
            check_client_address,
            check_names,
            check_pepper_key,
            check_phone_sender,
        )
        from dynamo_single.contrib.accounts.conf import account_settings

        account_settings()
        user_logged_in.connect(addresses.keep, dispatch_uid="accounts.keep")
        checks.register(check_client_address, checks.Tags.security, deploy=True)
        checks.register(check_pepper_key, checks.Tags.security, deploy=True)
        checks.register(check_names, checks.Tags.database)
        checks.register(check_phone_sender, checks.Tags.security)
