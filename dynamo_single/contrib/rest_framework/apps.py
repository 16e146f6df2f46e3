"""The Django app, which only the tokens need."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class RestFrameworkConfig(AppConfig):
    """Tokens of an API."""

    name = "dynamo_single.contrib.rest_framework"
    label = "dynamo_rest_framework"
    verbose_name = _("API tokens")
