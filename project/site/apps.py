"""The public site."""

from django.apps import AppConfig


class SiteConfig(AppConfig):
    """Templates, styles, the front page and commands; it has no models."""

    name = "project.site"
    verbose_name = "Site"
