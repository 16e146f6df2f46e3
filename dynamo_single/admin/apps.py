"""The admin's app, for ``INSTALLED_APPS`` in the place of ``django.contrib.admin``."""

from __future__ import annotations

from django.contrib.admin.apps import AdminConfig


class DynamoAdminConfig(AdminConfig):
    """Django's admin with a site that keeps its log where the users are."""

    default = False
    default_site = "dynamo_single.admin.sites.DynamoAdminSite"

    def ready(self) -> None:
        """Register the log's model before anything is read, then find the apps' ``admin`` modules."""
        from dynamo_single.admin import history

        if history.is_in_dynamodb():
            from dynamo_single.admin import log  # noqa: F401 - registers the model
        super().ready()
