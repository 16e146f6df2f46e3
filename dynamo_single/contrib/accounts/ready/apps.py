"""The Django app."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AccountsConfig(AppConfig):
    """The users of a project that does not declare its own user model."""

    name = "dynamo_single.contrib.accounts.ready"
    label = "accounts"
    verbose_name = _("Accounts")
